{{/*
The minimal permissions of the service account of a wait Job. autoStart adds the permission to start a build.

  rules:
    {{- include "llmops-library.wait-for-image.rules" (dict "autoStart" true) | nindent 4 }}
*/}}
{{- define "llmops-library.wait-for-image.rules" -}}
- apiGroups: ["image.openshift.io"]
  resources: ["imagestreams", "imagestreamtags"]
  verbs: ["get", "list", "watch"]
- apiGroups: ["build.openshift.io"]
  resources: ["builds"]
  verbs: ["get", "list", "watch"]
{{- if .autoStart }}
- apiGroups: ["build.openshift.io"]
  resources: ["buildconfigs/instantiate"]
  verbs: ["create"]
{{- end }}
{{- end }}

{{/*
ServiceAccount, Role and RoleBinding of a wait Job, in an earlier wave. The account `default` belongs to the namespace: it is
bound but not rendered, so that a prune cannot delete it.

  {{ include "llmops-library.wait-for-image.rbac" (dict "serviceAccount" "image-waiter" "namespace" .Release.Namespace) }}

REQUIRED: serviceAccount, namespace. Optional: syncWave (-6), autoStart (false), labels.
*/}}
{{- define "llmops-library.wait-for-image.rbac" -}}
{{- $name := required "wait-for-image: serviceAccount is required" .serviceAccount -}}
{{- $namespace := required "wait-for-image: namespace is required" .namespace -}}
{{- $wave := include "llmops-library.wave" (dict "wave" .syncWave "default" -6) -}}
{{- if ne $name "default" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- with .labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{ $wave }}
---
{{ end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- with .labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{ $wave }}
rules:
  {{- include "llmops-library.wait-for-image.rules" . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- with .labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{ $wave }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $namespace }}
{{- end }}
