{{/* Names, labels and what all pods have in common. */}}

{{- define "strandline.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "strandline.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "strandline.labels" -}}
{{ include "strandline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "strandline.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "strandline.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "strandline.adminSecret" -}}
{{- .Values.adminKey.existingSecret | default (printf "%s-admin-key" (include "strandline.name" .)) }}
{{- end }}

{{- define "strandline.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "strandline.env" -}}
{{- $names := keys .Values.settings }}
{{- range .Values.secretEnv }}
{{- if has .name $names }}{{ fail (printf "%s is set twice: name it once, in settings or in secretEnv" .name) }}{{ end }}
{{- $names = append $names .name }}
{{- end }}
- name: STRANDLINE_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}
{{- end }}

{{- define "strandline.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "strandline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "strandline.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: data
  mountPath: /data
{{- range $place, $file := .Values.secretFiles }}
- name: secret-{{ $place }}
  mountPath: {{ $file.path }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "strandline.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
- name: data
  emptyDir:
    sizeLimit: 64Mi
{{- range $place, $file := .Values.secretFiles }}
- name: secret-{{ $place }}
  secret:
    secretName: {{ $file.secret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "strandline.egress" -}}
{{- if .Values.networkPolicy.egress -}}
egress:
  - ports:
      - {port: 53, protocol: UDP}
      - {port: 53, protocol: TCP}
  {{- toYaml .Values.networkPolicy.egress | nindent 2 }}
{{- end }}
{{- end }}

{{- define "strandline.metricsIngress" -}}
{{- with .Values.networkPolicy.metricsFrom -}}
- ports:
    - {port: metrics, protocol: TCP}
  from:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}
