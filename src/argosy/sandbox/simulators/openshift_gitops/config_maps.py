"""Builds the data of argocd-cm and argocd-rbac-cm as the operator writes it.

In: the spec of an ArgoCD resource. Out: the complete data of a ConfigMap. Never: keeps anything that was there before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.annotations import INSTANCE_LABEL
from argosy.kube.objects import dump_yaml

ArgoCDSpec = Mapping[str, Any]
ConfigMapData = dict[str, str]

CUSTOMIZATIONS_KEY: Final = "resource.customizations"
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
    """Build the data of argocd-rbac-cm. An empty text is kept; only a missing field gets a default."""
    rbac = spec.get("rbac") or {}
    fields_by_key = {"policy.csv": "policy", "policy.default": "defaultPolicy", "scopes": "scopes"}
    defaults = {"policy.csv": "", "policy.default": "role:readonly", "scopes": "[groups]"}
    data = {key: defaults[key] if rbac.get(field) is None else rbac[field] for key, field in fields_by_key.items()}
    if rbac.get("policyMatcherMode") is not None:
        data["policy.matchMode"] = rbac["policyMatcherMode"]
    return data


def render_exclusions(*extra_exclusions: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Render `resource.exclusions`: kinds that change constantly or are never deployed, and extra ones."""
    entries = [
        {"apiGroups": list(groups), "kinds": list(kinds), "clusters": ["*"]}
        for groups, kinds in (*DEFAULT_EXCLUSIONS, *extra_exclusions)
    ]
    return dump_yaml(entries)


def _list_customizations(spec: ArgoCDSpec) -> Iterator[tuple[str, str]]:
    """Yield customizations in order; the last of two entries for one kind wins silently."""
    for entry in _list_entries(spec, "resourceHealthChecks"):
        yield f"{CUSTOMIZATIONS_KEY}.health.{_format_kind_key(entry)}", entry.get("check") or ""
    ignore_differences = spec.get("resourceIgnoreDifferences") or {}
    if ignored_everywhere := ignore_differences.get("all"):
        yield f"{CUSTOMIZATIONS_KEY}.ignoreDifferences.all", dump_yaml(ignored_everywhere)
    for entry in _list_entries(ignore_differences, "resourceIdentifiers"):
        yield (
            f"{CUSTOMIZATIONS_KEY}.ignoreDifferences.{_format_kind_key(entry)}",
            dump_yaml(entry.get("customization") or {}),
        )
    for entry in _list_entries(spec, "resourceActions"):
        yield f"{CUSTOMIZATIONS_KEY}.actions.{_format_kind_key(entry)}", entry.get("action") or ""


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
    }
    connector = {"type": "openshift", "id": "openshift", "name": "OpenShift", "config": config}
    yield "dex.config", dump_yaml({"connectors": [connector]})


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
