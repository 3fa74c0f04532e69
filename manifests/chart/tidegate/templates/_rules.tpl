{{/*
What the service may do with policies and what becomes of them. It reads policies, writes their status and
nothing else of them, and owns the objects of Istio that it makes (applied, which the API server counts as
patch, and for a new one as create).
*/}}
{{- define "tidegate.rules" -}}
- apiGroups: [tidegate.dev]
  resources: [breakerpolicies]
  verbs: [get, list, watch]
- apiGroups: [tidegate.dev]
  resources: [breakerpolicies/status]
  verbs: [patch, update]
- apiGroups: [extensions.istio.io]
  resources: [trafficextensions, wasmplugins]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
