"""The built-in resources of a Kubernetes 1.32 server, in discovery order.

In: nothing. Out: BUILTIN_RESOURCES, one ApiResource for each kind in each served version. Never: knows custom kinds.
"""

from __future__ import annotations

from argosy.kube.resource_key import split_api_version
from argosy.kube.schema.api_resource import ALL_VERBS, ApiResource, Subresource

# A line without indent is an apiVersion; the others are: plural, kind, N(amespaced) or C(luster), then extras:
# `-x` short name, `+x` category, `=a,b` verbs, `/x` subresource.
# k8s: the first group wins a conflicting short name; a group's first version is the preferred one.
_TABLE = """
v1
  bindings Binding N =create
  componentstatuses ComponentStatus C -cs =get,list
  configmaps ConfigMap N -cm
  endpoints Endpoints N -ep
  events Event N -ev
  limitranges LimitRange N -limits
  namespaces Namespace C -ns =create,delete,get,list,patch,update,watch /finalize /status
  nodes Node C -no /proxy /status
  persistentvolumeclaims PersistentVolumeClaim N -pvc /status
  persistentvolumes PersistentVolume C -pv /status
  pods Pod N -po +all /attach /binding /ephemeralcontainers /eviction /exec /log /portforward /proxy /status
  podtemplates PodTemplate N
  replicationcontrollers ReplicationController N -rc +all /scale /status
  resourcequotas ResourceQuota N -quota /status
  secrets Secret N
  serviceaccounts ServiceAccount N -sa /token
  services Service N -svc +all /proxy /status
apiregistration.k8s.io/v1
  apiservices APIService C +api-extensions /status
apps/v1
  controllerrevisions ControllerRevision N
  daemonsets DaemonSet N -ds +all /status
  deployments Deployment N -deploy +all /scale /status
  replicasets ReplicaSet N -rs +all /scale /status
  statefulsets StatefulSet N -sts +all /scale /status
events.k8s.io/v1
  events Event N -ev
authentication.k8s.io/v1
  selfsubjectreviews SelfSubjectReview C =create
  tokenreviews TokenReview C =create
authorization.k8s.io/v1
  localsubjectaccessreviews LocalSubjectAccessReview N =create
  selfsubjectaccessreviews SelfSubjectAccessReview C =create
  selfsubjectrulesreviews SelfSubjectRulesReview C =create
  subjectaccessreviews SubjectAccessReview C =create
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler N -hpa +all /status
autoscaling/v1
  horizontalpodautoscalers HorizontalPodAutoscaler N -hpa +all /status
batch/v1
  cronjobs CronJob N -cj +all /status
  jobs Job N +all /status
certificates.k8s.io/v1
  certificatesigningrequests CertificateSigningRequest C -csr /approval /status
networking.k8s.io/v1
  ingressclasses IngressClass C
  ingresses Ingress N -ing /status
  networkpolicies NetworkPolicy N -netpol
policy/v1
  poddisruptionbudgets PodDisruptionBudget N -pdb /status
rbac.authorization.k8s.io/v1
  clusterrolebindings ClusterRoleBinding C
  clusterroles ClusterRole C
  rolebindings RoleBinding N
  roles Role N
storage.k8s.io/v1
  csidrivers CSIDriver C
  csinodes CSINode C
  csistoragecapacities CSIStorageCapacity N
  storageclasses StorageClass C -sc
  volumeattachments VolumeAttachment C /status
admissionregistration.k8s.io/v1
  mutatingwebhookconfigurations MutatingWebhookConfiguration C +api-extensions
  validatingadmissionpolicies ValidatingAdmissionPolicy C +api-extensions /status
  validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C +api-extensions
  validatingwebhookconfigurations ValidatingWebhookConfiguration C +api-extensions
apiextensions.k8s.io/v1
  customresourcedefinitions CustomResourceDefinition C -crd -crds +api-extensions /status
scheduling.k8s.io/v1
  priorityclasses PriorityClass C -pc
coordination.k8s.io/v1
  leases Lease N
node.k8s.io/v1
  runtimeclasses RuntimeClass C
discovery.k8s.io/v1
  endpointslices EndpointSlice N
flowcontrol.apiserver.k8s.io/v1
  flowschemas FlowSchema C /status
  prioritylevelconfigurations PriorityLevelConfiguration C /status
"""

_CONNECT_VERBS = ("create", "get")
_PROXY_VERBS = ("create", "delete", "get", "patch", "update")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_SUBRESOURCES = {
    subresource.name: subresource
    for subresource in (
        Subresource("approval", _SUBRESOURCE_VERBS),
        Subresource("attach", _CONNECT_VERBS, kind="PodAttachOptions"),
        Subresource("binding", ("create",), kind="Binding"),
        Subresource("ephemeralcontainers", _SUBRESOURCE_VERBS),
        Subresource("eviction", ("create",), "policy", "v1", "Eviction"),
        Subresource("exec", _CONNECT_VERBS, kind="PodExecOptions"),
        Subresource("finalize", ("update",)),
        Subresource("log", ("get",)),
        Subresource("portforward", _CONNECT_VERBS, kind="PodPortForwardOptions"),
        Subresource("scale", _SUBRESOURCE_VERBS, "autoscaling", "v1", "Scale"),
        Subresource("status", _SUBRESOURCE_VERBS),
        Subresource("token", ("create",), "authentication.k8s.io", "v1", "TokenRequest"),
    )
}


def _build_subresource(name: str, kind: str) -> Subresource:
    return Subresource("proxy", _PROXY_VERBS, kind=f"{kind}ProxyOptions") if name == "proxy" else _SUBRESOURCES[name]


def _read_resource(api_version: str, line: str) -> ApiResource:
    plural, kind, scope, *extras = line.split()
    group, version = split_api_version(api_version)
    extras_by_mark: dict[str, list[str]] = {}
    for extra in extras:
        extras_by_mark.setdefault(extra[0], []).append(extra[1:])
    verbs = extras_by_mark.get("=")
    return ApiResource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=scope == "N",
        verbs=tuple(verbs[0].split(",")) if verbs else ALL_VERBS,
        short_names=tuple(extras_by_mark.get("-", ())),
        categories=tuple(extras_by_mark.get("+", ())),
        subresources=tuple(_build_subresource(name, kind) for name in extras_by_mark.get("/", ())),
        list_kind=f"{kind}List",
    )


def _read_table(table: str) -> tuple[ApiResource, ...]:
    resources = []
    api_version = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            resources.append(_read_resource(api_version, line))
        else:
            api_version = line
    return tuple(resources)


BUILTIN_RESOURCES: tuple[ApiResource, ...] = _read_table(_TABLE)
