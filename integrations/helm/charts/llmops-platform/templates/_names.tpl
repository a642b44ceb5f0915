{{/* Labels of every object of the chart. */}}
{{- define "llmops-platform.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The URL of the image's source; empty if there is nothing to build. */}}
{{- define "llmops-platform.buildURL" -}}
{{- if .Values.imageBuilds.enabled -}}
{{- include "llmops-library.git.url" (dict "values" .Values "specific" "imageBuilds.gitRepository") -}}
{{- end -}}
{{- end }}

{{/* "true" if the sync must wait for the image. */}}
{{- define "llmops-platform.waits" -}}
{{- if and .Values.waitForImage.enabled (or (include "llmops-platform.buildURL" .) .Values.waitForImage.withoutBuild) -}}true{{- end -}}
{{- end }}

{{/* The wave of an object that needs the image: 0 or later, so that it is after the wait Job.   dict "what" "wave" "default" */}}
{{- define "llmops-platform.laterWave" -}}
{{- $annotation := include "llmops-library.wave" . -}}
{{- if contains "\"-" $annotation -}}
{{- fail (printf "%s: wave %v is before 0; objects that need the image must be in wave 0 or later" .what .wave) -}}
{{- end -}}
{{- $annotation -}}
{{- end }}
