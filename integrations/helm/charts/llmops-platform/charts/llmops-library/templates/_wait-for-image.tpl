{{/*
A Job that blocks a sync until an image is built: a Sync hook between the BuildConfig and the objects that pull the image.

  {{ include "llmops-library.wait-for-image" (dict "name" "notebook-validator" "imageTag" "notebook-validator:latest"
       "namespace" .Release.Namespace "syncWave" "-3" "serviceAccount" "image-waiter" "timeout" 3600) }}

REQUIRED: name, imageTag (name:tag), namespace, serviceAccount.
Optional: syncWave (-3), timeout (3600 s), interval (30 s), buildConfig (name; its builds are watched), autoStart (false),
image (the cluster's cli image), ttlSecondsAfterFinished (300), labels.
*/}}
{{- define "llmops-library.wait-for-image" -}}
{{- $name := required "wait-for-image: name is required" .name -}}
{{- $job := printf "wait-for-%s-image" $name -}}
{{- if gt (len $job) 63 -}}
{{- fail (printf "wait-for-image: %s is longer than 63 characters; choose a shorter name" $job) -}}
{{- end -}}
{{- $timeout := include "llmops-library.seconds" (dict "what" "timeout" "value" .timeout "default" 3600) | int -}}
{{- $interval := include "llmops-library.seconds" (dict "what" "interval" "value" .interval "default" 30) | int -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $job }}
  namespace: {{ required "wait-for-image: namespace is required" .namespace }}
  {{- with .labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{- include "llmops-library.wave" (dict "wave" .syncWave "default" -3) | nindent 4 }}
    argocd.argoproj.io/hook: Sync
    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
spec:
  backoffLimit: 0
  # The script has its own timeout; this one is for a pod that cannot start.
  activeDeadlineSeconds: {{ add $timeout 300 }}
  ttlSecondsAfterFinished: {{ .ttlSecondsAfterFinished | default 300 | int }}
  template:
    metadata:
      {{- with .labels }}
      labels:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      annotations:
        sidecar.istio.io/inject: "false" # a sidecar would keep the Job from completing
    spec:
      serviceAccountName: {{ required "wait-for-image: serviceAccount is required" .serviceAccount }}
      restartPolicy: Never
      containers:
        - name: wait
          image: {{ .image | default "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest" }}
          command: ["/bin/bash", "-c"]
          args:
            - |
              {{- include "llmops-library.wait-for-image.script" . | nindent 14 }}
          env:
            - name: IMAGE_TAG
              value: {{ required "wait-for-image: imageTag is required (name:tag)" .imageTag | quote }}
            - name: NAMESPACE
              value: {{ .namespace | quote }}
            - name: BUILD_CONFIG
              value: {{ .buildConfig | default $name | quote }}
            - name: TIMEOUT
              value: {{ $timeout | quote }}
            - name: INTERVAL
              value: {{ $interval | quote }}
            - name: AUTO_START
              value: {{ .autoStart | default false | quote }}
          resources:
            requests:
              cpu: 50m
              memory: 64Mi
            limits:
              cpu: 200m
              memory: 128Mi
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop: ["ALL"]
            runAsNonRoot: true
            seccompProfile:
              type: RuntimeDefault
{{- end }}

{{/* A whole number of seconds, at most a week. An empty value or 0 means the default, so that there is always a limit. */}}
{{- define "llmops-library.seconds" -}}
{{- $given := .value | default .default | toString -}}
{{- if or (not (regexMatch "^[1-9][0-9]{0,5}$" $given)) (gt (int $given) 604800) -}}
{{- fail (printf "wait-for-image: %s is %q; it must be a whole number of seconds, at most 604800" .what $given) -}}
{{- end -}}
{{- $given -}}
{{- end }}

{{/* One sync-wave annotation. 0 is a valid wave, so `default` cannot be used: only an empty value means the default. */}}
{{- define "llmops-library.wave" -}}
{{- $wave := ternary .default .wave (or (kindIs "invalid" .wave) (eq (toString .wave) "")) | toString -}}
{{- if not (regexMatch "^-?[0-9]+$" $wave) -}}
{{- fail (printf "sync wave %q must be a whole number" $wave) -}}
{{- end -}}
argocd.argoproj.io/sync-wave: {{ $wave | quote }}
{{- end }}
