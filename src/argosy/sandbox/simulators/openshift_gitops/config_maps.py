"""Builds the data of argocd-cm and argocd-rbac-cm as the operator writes it.

In: the spec of an ArgoCD resource. Out: the complete data of a ConfigMap. Never: keeps anything that was there before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.kube.objects import dump

Spec = Mapping[str, Any]
Data = dict[str, str]

CUSTOMIZATIONS: Final = "resource.customizations"
TRACKING_METHODS: Final = ("annotation", "label", "annotation+label")
NOISY_KINDS: Final = (
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


def settings(spec: Spec, *, url: str, account: str = "") -> Data:
    """Build the data of argocd-cm. `account` is the service account's user name for single sign-on."""
    # argo: initialRepositories and repositoryCredentials are no longer read; both belong in Secrets
    data = {
        "admin.enabled": _word(not spec.get("disableAdmin")),
        "application.instanceLabelKey": spec.get("applicationInstanceLabelKey") or "app.kubernetes.io/instance",
        "application.resourceTrackingMethod": _tracking_method(spec),
        "ga.anonymizeusers": _word(spec.get("gaAnonymizeUsers")),
        "ga.trackingid": spec.get("gaTrackingID") or "",
        "help.chatText": spec.get("helpChatText") or "",
        "help.chatUrl": spec.get("helpChatURL") or "",
        "kustomize.buildOptions": spec.get("kustomizeBuildOptions") or "",
        "oidc.config": spec.get("oidcConfig") or "",
        "resource.exclusions": spec.get("resourceExclusions") or exclusions(),
        "resource.inclusions": spec.get("resourceInclusions") or "",
        "server.rbac.disableApplicationFineGrainedRBACInheritance": "false",
        "statusbadge.enabled": _word(spec.get("statusBadgeEnabled")),
        "url": url,
        "users.anonymous.enabled": _word(spec.get("usersAnonymousEnabled")),
    }
    for part in (_customizations(spec), _optional(spec), _sign_on(spec, url, account), _local_users(spec)):
        data.update(part)
    # argo: extraConfig is copied last without checks, and wins
    return {**data, **(spec.get("extraConfig") or {})}


def policy(spec: Spec) -> Data:
    """Build the data of argocd-rbac-cm. An empty text is kept; only a missing field gets a default."""
    rbac = spec.get("rbac") or {}
    chosen = {"policy.csv": "policy", "policy.default": "defaultPolicy", "scopes": "scopes"}
    defaults = {"policy.csv": "", "policy.default": "role:readonly", "scopes": "[groups]"}
    data = {key: defaults[key] if rbac.get(field) is None else rbac[field] for key, field in chosen.items()}
    if rbac.get("policyMatcherMode") is not None:
        data["policy.matchMode"] = rbac["policyMatcherMode"]
    return data


def exclusions(*more: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Render `resource.exclusions`: kinds that change constantly or are never deployed, and extra ones."""
    entries = [
        {"apiGroups": list(groups), "kinds": list(kinds), "clusters": ["*"]} for groups, kinds in (*NOISY_KINDS, *more)
    ]
    return dump(entries)


def _customizations(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield customizations in order; the last of two entries for one kind wins silently."""
    for entry in _entries(spec, "resourceHealthChecks"):
        yield f"{CUSTOMIZATIONS}.health.{_kind(entry)}", entry.get("check") or ""
    ignored = spec.get("resourceIgnoreDifferences") or {}
    if everywhere := ignored.get("all"):
        yield f"{CUSTOMIZATIONS}.ignoreDifferences.all", dump(everywhere)
    for entry in _entries(ignored, "resourceIdentifiers"):
        yield f"{CUSTOMIZATIONS}.ignoreDifferences.{_kind(entry)}", dump(entry.get("customization") or {})
    for entry in _entries(spec, "resourceActions"):
        yield f"{CUSTOMIZATIONS}.actions.{_kind(entry)}", entry.get("action") or ""


def _optional(spec: Spec) -> Iterator[tuple[str, str]]:
    if spec.get("installationID"):
        yield "installationID", str(spec["installationID"])
    if (respect := (spec.get("controller") or {}).get("respectRBAC")) in ("strict", "normal"):
        yield "resource.respectRBAC", respect
    for entry in _entries(spec, "kustomizeVersions"):
        yield f"kustomize.version.{entry.get('version') or ''}", str(entry.get("path") or "")
    banner = spec.get("banner") or {}
    if banner.get("content"):
        keys = {"content": "ui.bannercontent", "url": "ui.bannerurl", "position": "ui.bannerposition"}
        yield from ((key, str(banner[field])) for field, key in keys.items() if banner.get(field))
        if banner.get("permanent"):
            yield "ui.bannerpermanent", "true"


def _sign_on(spec: Spec, url: str, account: str) -> Iterator[tuple[str, str]]:
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
    yield "dex.config", dump({"connectors": [connector]})


def uses_dex(spec: Spec) -> bool:
    return str((spec.get("sso") or {}).get("provider") or "").lower() == "dex"


def _local_users(spec: Spec) -> Iterator[tuple[str, str]]:
    chosen = {key.split(".")[1] for key in spec.get("extraConfig") or {} if key.startswith("accounts.")}
    for user in _entries(spec, "localUsers"):
        name = user.get("name") or ""
        if name in chosen:  # argo: a user that extraConfig configures is skipped
            continue
        may = [word for word in ("apiKey", "login") if user.get(word, word == "apiKey")]
        if may:
            yield f"accounts.{name}", ", ".join(may)
        yield f"accounts.{name}.enabled", _word(user.get("enabled", True))


def _tracking_method(spec: Spec) -> str:
    wanted = spec.get("resourceTrackingMethod")
    # argo: an unknown method counts as unset
    return wanted if wanted in TRACKING_METHODS else TRACKING_METHODS[0]


def _kind(entry: Mapping[str, Any]) -> str:
    """argo: `<group>_<Kind>`; a core kind has no group prefix."""
    group, kind = entry.get("group") or "", entry.get("kind") or ""
    return f"{group}_{kind}" if group else kind


def _entries(spec: Spec, field: str) -> Iterator[Mapping[str, Any]]:
    """List the entries of a field; the CRD does not type every list, so other values are skipped."""
    found = spec.get(field)
    return (entry for entry in (found if isinstance(found, list) else ()) if isinstance(entry, dict))


def _word(value: object) -> str:
    return "true" if value else "false"
