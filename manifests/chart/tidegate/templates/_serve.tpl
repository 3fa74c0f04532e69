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
    "HEALTH_LISTEN" "0.0.0.0:18081"
    "XDS_LISTEN" (printf "%s:18000" (ternary "0.0.0.0" "127.0.0.1" .Values.xds.enabled))
    "LOG" .Values.log.filter
    "LOG_FORMAT" .Values.log.format
}}
{{- with .Values.module.sha256 }}{{ $_ := set $settings "EXTENSION_SHA256" . }}{{ end }}
{{- if .Values.disabled }}{{ $_ := set $settings "DISABLED" "true" }}{{ end }}
{{- $versions := list }}
{{- range $name, $version := .Values.module.versions }}
  {{- $checksum := "" }}
  {{- with $version.sha256 }}{{ $checksum = printf "#sha256:%s" . }}{{ end }}
  {{- $versions = append $versions (printf "%s=%s%s" $name $version.url $checksum) }}
{{- end }}
{{- with $versions }}{{ $_ := set $settings "EXTENSION_VERSION" (join "," .) }}{{ end }}
{{- $namespaces := list }}
{{- range $namespace, $name := .Values.module.namespaces }}
  {{- $namespaces = append $namespaces (printf "%s=%s" $namespace $name) }}
{{- end }}
{{- with $namespaces }}{{ $_ := set $settings "NAMESPACE_VERSION" (join "," .) }}{{ end }}
{{- with .Values.module.pullSecret }}{{ $_ := set $settings "EXTENSION_PULL_SECRET" . }}{{ end }}
{{- with .Values.proxyNamespaces }}{{ $_ := set $settings "PROXY_NAMESPACE" (join "," .) }}{{ end }}
{{- with include "tidegate.watched" . }}{{ $_ := set $settings "WATCH_NAMESPACE" . }}{{ end }}
{{- if $isPlain }}
  {{- $_ := set $settings "ALLOW_PLAINTEXT" "true" }}
{{- else }}
  {{- $_ := set $settings "TLS_CERT" "/etc/tidegate/tls/tls.crt" }}
  {{- $_ := set $settings "TLS_KEY" "/etc/tidegate/tls/tls.key" }}
  {{- if .Values.tls.clientCertificates }}
    {{- $_ := set $settings "TLS_CLIENT_CA" "/etc/tidegate/tls/ca.crt" }}
    {{- if .Values.tls.allowClients }}{{ $_ := set $settings "CLIENT_LIST" "/etc/tidegate/lists/clients" }}{{ end }}
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

{{/* A probe of a path, on the port that asks for no certificate, because kubelets have none. */}}
{{- define "tidegate.probe" -}}
httpGet: {path: {{ . }}, port: health, scheme: HTTP}
{{- end }}
