{{/*
What the service may do with policies and what becomes of them: the rights in docs/kubernetes.md, to which
ci/rights.py holds this file. A server-side apply counts as patch, and as create of what is not there yet.
*/}}
{{- define "tidegate.rules" -}}
- apiGroups: [tidegate.dev]
  resources: [breakerpolicies]
  verbs: [list, watch]
- apiGroups: [tidegate.dev]
  resources: [breakerpolicies/status]
  verbs: [patch]
- apiGroups: [extensions.istio.io]
  resources: [trafficextensions, wasmplugins]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [networking.istio.io]
  resources: [destinationrules]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Who of the replicas writes. What is created has no name yet for RBAC, so that create stands alone. */}}
{{- define "tidegate.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "tidegate.name" . }}]
  verbs: [get, update]
{{- end }}
