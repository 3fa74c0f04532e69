{{/*
The settings of `tidegate serve`, as environment: entries have names, so that an overlay can replace one.
*/}}
{{- define "tidegate.env" -}}
{{- $isPlain := eq .Values.tls.source "none" -}}
{{- $settings := dict
    "KUBERNETES" "true"
    "EXTENSION_URL" (required "module.url: expected where proxies fetch the module, such as oci://registry.example.com/tidegate/filter:0.1.0" .Values.module.url)
    "EXTENSION_FAIL_STRATEGY" .Values.module.failStrategy
    "EXTENSION_PHASE" .Values.module.phase
    "EXTENSION_PRIORITY" (.Values.module.priority | int)
    "EXTENSION_API" .Values.api
    "LEASE_NAME" (include "tidegate.name" .)
    "FIELD_MANAGER" (include "tidegate.name" .)
    "LEASE_DURATION" .Values.leaseDuration
    "HTTP_LISTEN" "0.0.0.0:18080"
    "XDS_LISTEN" (printf "%s:18000" (ternary "0.0.0.0" "127.0.0.1" .Values.xds.enabled))
    "LOG" .Values.log.filter
    "LOG_FORMAT" .Values.log.format
}}
{{- with .Values.module.sha256 }}{{ $_ := set $settings "EXTENSION_SHA256" . }}{{ end }}
{{- with .Values.module.pullSecret }}{{ $_ := set $settings "EXTENSION_PULL_SECRET" . }}{{ end }}
{{- with include "tidegate.watched" . }}{{ $_ := set $settings "WATCH_NAMESPACE" . }}{{ end }}
{{- if $isPlain }}
  {{- $_ := set $settings "ALLOW_PLAINTEXT" "true" }}
{{- else }}
  {{- $_ := set $settings "TLS_CERT" "/etc/tidegate/tls/tls.crt" }}
  {{- $_ := set $settings "TLS_KEY" "/etc/tidegate/tls/tls.key" }}
  {{- if .Values.tls.clientCertificates }}
    {{- $_ := set $settings "TLS_CLIENT_CA" "/etc/tidegate/tls/ca.crt" }}
    {{- with .Values.tls.allowClients }}{{ $_ := set $settings "ALLOW_CLIENT" (join "," .) }}{{ end }}
  {{- end }}
{{- end }}
{{- range $name, $value := $settings }}
- name: TIDEGATE_{{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A probe of a path; where clients must show certificates, of the port, because kubelets have none. */}}
{{- define "tidegate.probe" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.tls.clientCertificates -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ index . 1 }}, port: http, scheme: {{ ternary "HTTP" "HTTPS" (eq $root.Values.tls.source "none") }}}
{{- end }}
{{- end }}
