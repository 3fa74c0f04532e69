{{/* Name of everything in the release: the release's own, or with the chart's where it says nothing. */}}
{{- define "tidegate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels that pods are selected by; they never change. */}}
{{- define "tidegate.selector" -}}
app.kubernetes.io/name: tidegate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: control
{{- end }}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/part-of: tidegate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "tidegate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "tidegate.name" .) }}
{{- end }}

{{/* The namespace whose policies are followed; empty for all. */}}
{{- define "tidegate.watched" -}}
{{- if eq .Values.scope "namespace" }}{{ .Values.watchNamespace | default .Release.Namespace }}{{ end }}
{{- end }}

{{- define "tidegate.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "tidegate.name" .)) }}
{{- end }}

{{- define "tidegate.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}
