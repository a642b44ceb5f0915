"""Builds the data of argocd-cm, argocd-rbac-cm and the other ConfigMaps as the operator writes them.

In: the spec of an ArgoCD resource. Out: the complete data of a ConfigMap. Never: keeps anything that was there before.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from argosy.annotations import INSTANCE_LABEL
from argosy.errors import UserError
from argosy.kube.objects import dump_yaml, read_yaml

ArgoCDSpec = Mapping[str, Any]
ConfigMapData = dict[str, str]

POLICY_FIELDS: Final = {
    "policy.csv": "policy",
    "policy.default": "defaultPolicy",
    "scopes": "scopes",
    "policy.matchMode": "policyMatcherMode",
}
_SIGN_ON_PROBLEM: Final = "illegal SSO configuration: "
CUSTOMIZATIONS_KEY: Final = "resource.customizations"
# argo: the operator writes the names of these fields in lower case, which Argo CD reads as well
IGNORED_FIELDS: Final = ("jqPathExpressions", "jsonPointers", "managedFieldsManagers")
DEFAULT_COMMAND_PARAMETERS: Final = {"controller.resource.health.persist": "true"}
TRACKING_METHODS: Final = ("annotation", "label", "annotation+label")
DEFAULT_EXCLUSIONS: Final = (
    (("", "discovery.k8s.io"), ("Endpoints", "EndpointSlice")),
    (("apiregistration.k8s.io",), ("APIService",)),
    (("coordination.k8s.io",), ("Lease",)),
    (
        ("authentication.k8s.io", "authorization.k8s.io"),
        ("SelfSubjectReview", "TokenReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview",
         "SelfSubjectRulesReview", "SubjectAccessReview"),
    ),
    (("certificates.k8s.io",), ("CertificateSigningRequest",)),
    (("cert-manager.io",), ("CertificateRequest",)),
    (("cilium.io",), ("CiliumIdentity", "CiliumEndpoint", "CiliumEndpointSlice")),
    (
        ("kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"),
        ("PolicyReport", "ClusterPolicyReport", "EphemeralReport", "ClusterEphemeralReport", "AdmissionReport",
         "ClusterAdmissionReport", "BackgroundScanReport", "ClusterBackgroundScanReport", "UpdateRequest"),
    ),
)  # fmt: skip


def build_settings_data(spec: ArgoCDSpec, *, url: str, account: str = "") -> ConfigMapData:
    """Build the data of argocd-cm. `account` is the service account's user name for single sign-on."""
    # argo: initialRepositories and repositoryCredentials are no longer read; both belong in Secrets
    data = {
        "admin.enabled": _format_bool(not spec.get("disableAdmin")),
        "application.instanceLabelKey": spec.get("applicationInstanceLabelKey") or INSTANCE_LABEL,
        "application.resourceTrackingMethod": _read_tracking_method(spec),
        "ga.anonymizeusers": _format_bool(spec.get("gaAnonymizeUsers")),
        "ga.trackingid": spec.get("gaTrackingID") or "",
        "help.chatText": spec.get("helpChatText") or "",
        "help.chatUrl": spec.get("helpChatURL") or "",
        "kustomize.buildOptions": spec.get("kustomizeBuildOptions") or "",
        "oidc.config": spec.get("oidcConfig") or "",
        "resource.exclusions": spec.get("resourceExclusions") or render_exclusions(),
        "resource.inclusions": spec.get("resourceInclusions") or "",
        "server.rbac.disableApplicationFineGrainedRBACInheritance": "false",
        "statusbadge.enabled": _format_bool(spec.get("statusBadgeEnabled")),
        "url": url,
        "users.anonymous.enabled": _format_bool(spec.get("usersAnonymousEnabled")),
    }
    for entries in (
        _list_customizations(spec),
        _list_optional_settings(spec),
        _list_sign_on_settings(spec, url, account),
        _list_local_user_settings(spec),
    ):
        data.update(entries)
    # argo: extraConfig is copied last without checks, and wins
    return {**data, **(spec.get("extraConfig") or {})}


def build_policy_data(spec: ArgoCDSpec) -> ConfigMapData:
    """Build the data of a new argocd-rbac-cm. An empty text is kept; only a missing field gets a default."""
    return {"policy.csv": "", "policy.default": "role:readonly", "scopes": "[groups]", **read_policy_settings(spec)}


def read_policy_settings(spec: ArgoCDSpec) -> ConfigMapData:
    """Return the keys of argocd-rbac-cm that the ArgoCD resource sets: the operator restores only these."""
    rbac = spec.get("rbac") or {}
    return {key: rbac[field] for key, field in POLICY_FIELDS.items() if rbac.get(field) is not None}


def build_command_parameters(spec: ArgoCDSpec) -> ConfigMapData:
    return {**DEFAULT_COMMAND_PARAMETERS, **(spec.get("cmdParams") or {})}


def build_known_hosts(spec: ArgoCDSpec) -> ConfigMapData:
    """Build the first data of argocd-ssh-known-hosts-cm."""
    settings = spec.get("initialSSHKnownHosts") or {}
    defaults = "" if settings.get("excludedefaulthosts") else _read_default_known_hosts()
    return {"ssh_known_hosts": f"{defaults}{settings.get('keys') or ''}"}


@functools.cache
def _read_default_known_hosts() -> str:
    return (resources.files(__package__) / "ssh_known_hosts.txt").read_text()


def build_certificates(spec: ArgoCDSpec) -> ConfigMapData:
    """Build the first data of argocd-tls-certs-cm."""
    return dict((spec.get("tls") or {}).get("initialCerts") or {})


def render_exclusions(*extra_exclusions: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Render `resource.exclusions`: kinds that change constantly or are never deployed, and extra ones."""
    entries = [{"apiGroups": list(groups), "kinds": list(kinds)} for groups, kinds in DEFAULT_EXCLUSIONS]
    extra = [{"apiGroups": list(groups), "kinds": list(kinds), "clusters": ["*"]} for groups, kinds in extra_exclusions]
    return dump_yaml([*entries, *extra])


def _list_customizations(spec: ArgoCDSpec) -> Iterator[tuple[str, str]]:
    """Yield customizations in order; the last of two entries for one kind wins silently."""
    for entry in _list_entries(spec, "resourceHealthChecks"):
        yield f"{CUSTOMIZATIONS_KEY}.health.{_format_kind_key(entry)}", entry.get("check") or ""
    ignore_differences = spec.get("resourceIgnoreDifferences") or {}
    yield from _list_rules_for_all_kinds(spec)
    for entry in _list_entries(ignore_differences, "resourceIdentifiers"):
        yield (
            f"{CUSTOMIZATIONS_KEY}.ignoreDifferences.{_format_kind_key(entry)}",
            _dump_ignored(entry.get("customization") or {}),
        )
    for entry in _list_entries(spec, "resourceActions"):
        yield f"{CUSTOMIZATIONS_KEY}.actions.{_format_kind_key(entry)}", entry.get("action") or ""


def _list_rules_for_all_kinds(spec: ArgoCDSpec) -> Iterator[tuple[str, str]]:
    """argo: without a rule for all kinds, the operator writes null; it omits only a rule without fields."""
    settings = spec.get("resourceIgnoreDifferences")
    if settings is None:
        return
    rule = settings.get("all")
    if rule is None or any(rule.get(name) is not None for name in IGNORED_FIELDS):
        yield f"{CUSTOMIZATIONS_KEY}.ignoreDifferences.all", "null\n" if rule is None else _dump_ignored(rule)


def _dump_ignored(rule: Mapping[str, Any]) -> str:
    return dump_yaml({name.lower(): list(rule.get(name) or ()) for name in IGNORED_FIELDS})


def _list_optional_settings(spec: ArgoCDSpec) -> Iterator[tuple[str, str]]:
    if spec.get("installationID"):
        yield "installationID", str(spec["installationID"])
    if (respect_rbac := (spec.get("controller") or {}).get("respectRBAC")) in ("strict", "normal"):
        yield "resource.respectRBAC", respect_rbac
    for entry in _list_entries(spec, "kustomizeVersions"):
        yield f"kustomize.version.{entry.get('version') or ''}", str(entry.get("path") or "")
    banner = spec.get("banner") or {}
    if banner.get("content"):
        keys = {"content": "ui.bannercontent", "url": "ui.bannerurl", "position": "ui.bannerposition"}
        yield from ((key, str(banner[field])) for field, key in keys.items() if banner.get(field))
        if banner.get("permanent"):
            yield "ui.bannerpermanent", "true"


def _list_sign_on_settings(spec: ArgoCDSpec, url: str, account: str) -> Iterator[tuple[str, str]]:
    if not uses_dex(spec):
        return
    dex = spec["sso"].get("dex") or {}
    if not dex.get("openShiftOAuth"):
        yield "dex.config", dex.get("config") or ""
        return
    config = {
        "issuer": "https://kubernetes.default.svc",
        "clientID": account,
        "clientSecret": "$oidc.dex.clientSecret",
        "redirectURI": f"{url}/api/dex/callback",
        "insecureCA": True,
        "groups": list(dex.get("groups") or ()),
    }
    connector = {"type": "openshift", "id": "openshift", "name": "OpenShift", "config": config}
    yield "dex.config", dump_yaml({"connectors": [connector], **_read_dex_settings(dex)})


def _read_dex_settings(dex: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read `config`, which replaces settings that the operator makes up; text that is no mapping has no effect."""
    try:
        settings = read_yaml(dex.get("config") or "")
    except UserError:
        return {}
    return settings if isinstance(settings, dict) else {}


def find_sign_on_problem(spec: ArgoCDSpec) -> str:
    """Return why the operator installs nothing, in its words; empty if single sign-on is right or not configured."""
    settings = spec.get("sso")
    if settings is None:
        return ""
    provider, dex = str(settings.get("provider") or "").lower(), settings.get("dex")
    if provider == "keycloak":
        return "keycloak is set as SSO provider, but keycloak support has been deprecated and is no longer available"
    if provider == "dex":
        if not dex or not (dex.get("openShiftOAuth") or dex.get("config")):
            return f"{_SIGN_ON_PROBLEM}must supply valid dex configuration when requested SSO provider is dex"
        if settings.get("keycloak") is not None:
            return (
                f"{_SIGN_ON_PROBLEM}keycloak configuration is specified even though Dex is enabled. "
                "Keycloak support has been deprecated and is no longer available."
            )
        return ""
    if not provider and dex is not None:
        return f"{_SIGN_ON_PROBLEM}Cannot specify SSO provider spec without specifying SSO provider type"
    return f"{_SIGN_ON_PROBLEM}Unsupported SSO provider type. Supported provider is dex"


def uses_dex(spec: ArgoCDSpec) -> bool:
    return str((spec.get("sso") or {}).get("provider") or "").lower() == "dex"


def _list_local_user_settings(spec: ArgoCDSpec) -> Iterator[tuple[str, str]]:
    configured_names = {key.split(".")[1] for key in spec.get("extraConfig") or {} if key.startswith("accounts.")}
    for user in _list_entries(spec, "localUsers"):
        name = user.get("name") or ""
        if name in configured_names:  # argo: a user that extraConfig configures is skipped
            continue
        capabilities = [
            capability for capability in ("apiKey", "login") if user.get(capability, capability == "apiKey")
        ]
        if capabilities:
            yield f"accounts.{name}", ", ".join(capabilities)
        yield f"accounts.{name}.enabled", _format_bool(user.get("enabled", True))


def _read_tracking_method(spec: ArgoCDSpec) -> str:
    method = spec.get("resourceTrackingMethod")
    # argo: an unknown method counts as unset
    return method if method in TRACKING_METHODS else TRACKING_METHODS[0]


def _format_kind_key(entry: Mapping[str, Any]) -> str:
    """argo: `<group>_<Kind>`; a core kind has no group prefix."""
    group, kind = entry.get("group") or "", entry.get("kind") or ""
    return f"{group}_{kind}" if group else kind


def _list_entries(spec: ArgoCDSpec, field: str) -> Iterator[Mapping[str, Any]]:
    """List the entries of a field; the CRD does not type every list, so other values are skipped."""
    items = spec.get(field)
    return (entry for entry in (items if isinstance(items, list) else ()) if isinstance(entry, dict))


def _format_bool(value: object) -> str:
    return "true" if value else "false"
