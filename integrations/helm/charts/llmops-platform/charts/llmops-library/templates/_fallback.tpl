{{/*
The precedence of values that can be set in several places: the most specific one that is set wins.

  specific (the part's own value)  →  git.*  →  global.git.*  →  default

A path that is missing, null or of another type counts as empty; it never makes the rendering fail.
*/}}

{{/* The text at a dotted path of a map, or empty.   include "llmops-library.at" (dict "values" .Values "path" "global.git.repoURL") */}}
{{- define "llmops-library.at" -}}
{{- $found := .values -}}
{{- range splitList "." .path -}}
{{- if and (kindIs "map" $found) (hasKey $found .) -}}
{{- $found = get $found . -}}
{{- else -}}
{{- $found = "" -}}
{{- end -}}
{{- end -}}
{{- if not (or (kindIs "invalid" $found) (kindIs "map" $found) (kindIs "slice" $found)) -}}
{{- $found | toString | trim -}}
{{- end -}}
{{- end }}

{{/* The first value that is not empty.   include "llmops-library.first" (dict "values" .Values "paths" (list "a.b" "c") "default" "") */}}
{{- define "llmops-library.first" -}}
{{- $values := .values -}}
{{- $chosen := "" -}}
{{- range .paths -}}
{{- if not $chosen -}}
{{- $chosen = include "llmops-library.at" (dict "values" $values "path" .) -}}
{{- end -}}
{{- end -}}
{{- $chosen | default .default | default "" -}}
{{- end }}

{{/*
The Git URL; empty if it is not set. Objects that need it must not be rendered then.
  include "llmops-library.git.url" (dict "values" .Values "specific" "imageBuilds.gitRepository")
*/}}
{{- define "llmops-library.git.url" -}}
{{- include "llmops-library.first" (dict "values" .values "paths" (prepend (list "git.repoURL" "global.git.repoURL") (.specific | default ""))) -}}
{{- end }}

{{/* The same if the URL is required: without it, rendering fails with a message that names the value to set. */}}
{{- define "llmops-library.git.requiredURL" -}}
{{- include "llmops-library.git.url" . | required "git.repoURL is required" -}}
{{- end }}

{{/*
The Git ref: specific → git.revision → global.git.revision → main.
  include "llmops-library.git.ref" (dict "values" .Values "specific" "imageBuilds.gitRef")
*/}}
{{- define "llmops-library.git.ref" -}}
{{- include "llmops-library.first" (dict "values" .values "paths" (prepend (list "git.revision" "global.git.revision") (.specific | default "")) "default" "main") -}}
{{- end }}
