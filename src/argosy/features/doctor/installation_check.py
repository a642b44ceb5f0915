"""Reads the installation: the Argo CD, the owner of its settings, its health checks and its controllers.

In: a cluster, the control namespace. Out: InstallationState: a SettingsView, and violations of scripts and settings.
Never: writes; shows a value of a Secret.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.optional_reads import Asking
from argosy.features.doctor.own_checks import find_own_checks
from argosy.features.doctor.reverted_edits import find_hand_edits
from argosy.features.health_checks.argocd_install.merge import KEY_PREFIX
from argosy.features.health_checks.argocd_install.settings_location import Place as ChecksPlace
from argosy.features.health_checks.argocd_install.verification import Verification
from argosy.features.health_checks.lint import DISAGREES, lint_settings
from argosy.features.health_checks.sources import Source
from argosy.features.setup.openshift import DEPLOYMENT, PLACES
from argosy.gitops.analysis.live_view import OperatorState, SettingsView
from argosy.gitops.analysis.rules.live.health_checks import NOTEBOOK
from argosy.gitops.analysis.rules.live.stalled_syncs import spec_written
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.application_client.control_namespace import LEASE, LEASES, held, members_of
from argosy.gitops.coexistence.argocd_detection import seen_engines
from argosy.gitops.coexistence.argocd_settings import ARGOCD, CONFIG_MAP, SETTINGS, Installation
from argosy.gitops.health.kind_keys import joined, key_text
from argosy.gitops.health.settings import from_config_maps
from argosy.gitops.policy.application_sets import APPLICATION_SET, is_expanded
from argosy.gitops.reconciler.setting_errors import RESTRICTING_KEYS, describe_fallback
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, annotation, dump
from argosy.web.auth.identity_provider import PLACEHOLDER, read_provider, referenced_secrets, secret_value

POD: Final = GroupKind("", "Pod")
SECRETS: Final = GroupKind("", "Secret")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
OPERATOR: Final = "gitops-operator"
CONTROLLER: Final = "application-controller"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
OPERATORS: Final = ("gitops-operator", "argocd-operator", "manager")
LOG_LINES: Final = 200
LOG_SECONDS: Final = 3.0


# -- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    view: SettingsView
    told: Mapping[str, tuple[Sight, ...]]
    resource: Manifest | None = None
    config: Manifest | None = None


async def read_installation(asking: Asking, control: str) -> Settings:
    resources, config, lease, members, engines, unexpanded = await asyncio.gather(
        asking.all_of(ARGOCD, control),
        asking.get(ResourceKey(*CONFIG_MAP, control, SETTINGS)),
        asking.get(ResourceKey(*LEASES, control, LEASE)),
        members_of(asking.cluster, control),
        seen_engines(asking.cluster, control),
        _find_unexpanded(asking, control),
    )
    resource = resources[0] if len(resources) == 1 else None
    leases = held((lease, *members))
    data = {str(key): str(value) for key, value in mapping((config or {}).get("data")).items()}
    view = SettingsView(
        namespace=control,
        data=data if config is not None else None,
        is_there=config is not None or CONFIG_MAP in asking.unread,
        judged=_judged(data),
        is_engine=bool(leases) and not engines.over(control),  # an Argo CD in this namespace takes precedence
        has_argosy=bool(leases),
        has_argocd=any(each.namespace == control for each in engines.controllers) if engines.is_known else None,
        engines=engines,
        unexpanded=unexpanded,
        sso_fault=await _find_sso_fault(asking, control, data),
        has_stopped=lease is not None and not leases,
        sees_leases=LEASES not in asking.unread,
        renewed=max((str(mapping(each["spec"]).get("renewTime") or "") for each in leases), default=""),
        lease_seconds=max((_lease_seconds(each) for each in leases), default=0.0),
    )
    view = replace(view, owner=str(resource["metadata"]["name"]) if resource else _owner(config))
    if resource is not None and config is not None:
        view = await _operated(asking, view, resource, data)
    told = _told(view, resource, config)
    if resource is not None:
        known = {sight.field for sight in told.get(DISAGREES, ())}
        edits = await find_hand_edits(asking, view, known)
        told |= {DISAGREES: (*told.get(DISAGREES, ()), *edits)} if edits else {}
    return Settings(view, told, resource, config)


async def _find_sso_fault(asking: Asking, control: str, settings: Mapping[str, str]) -> str:
    """Return why sign-in with the identity provider fails; Secrets that are not readable count as valid."""
    names = sorted(referenced_secrets(settings))
    secrets = await asyncio.gather(*(asking.get(ResourceKey(*SECRETS, control, name)) for name in names))
    if SECRETS in asking.unread:
        return read_provider(settings, lambda _: PLACEHOLDER)[1]
    known = dict(zip(names, secrets, strict=True))
    return read_provider(settings, lambda reference: secret_value(reference, known.get))[1]


def _lease_seconds(lease: Manifest) -> float:
    return float(mapping(lease["spec"]).get("leaseDurationSeconds") or 0)


async def _find_unexpanded(asking: Asking, control: str) -> tuple[str, ...]:
    """List ApplicationSets that no controller expands; empty if they or the workloads are not readable."""
    if APPLICATION_SET not in await asking.kinds():
        return ()
    found = await asking.all_of(APPLICATION_SET, control)
    if not found:
        return ()
    kinds = (DEPLOYMENT, STATEFUL_SET, POD)
    listed = await asyncio.gather(*(asking.all_of(kind, control) for kind in kinds))
    if not asking.unread.isdisjoint(kinds):
        return ()
    workloads = [each for some in listed for each in some]
    return tuple(str(each["metadata"]["name"]) for each in found if not is_expanded(each, workloads))


def _owner(config: Manifest | None) -> str:
    """Find the ArgoCD resource by the owner reference, even if the resource itself is not readable."""
    references = mappings(((config or {}).get("metadata") or {}).get("ownerReferences"))
    return next((str(each.get("name")) for each in references if each.get("kind") == ARGOCD.kind), "")


def _judged(data: Mapping[str, str]) -> frozenset[GroupKind]:
    patterns = [check.pattern for check in from_config_maps(data).checks]
    return frozenset({NOTEBOOK} if any(fnmatchcase(key_text(*NOTEBOOK), each) for each in patterns) else ())


async def _operated(asking: Asking, view: SettingsView, resource: Manifest, data: Mapping[str, str]) -> SettingsView:
    place = ChecksPlace(Installation(view.namespace, view.owner), resource)
    found = Verification(place, data, tuple(place.scripts))
    keys = [KEY_PREFIX + joined(*of) for of in found.unpropagated]
    missing = tuple(key for key in keys if key not in place.data)  # extraConfig wins, so that is no operator problem
    return replace(
        view,
        asked=place.scripts,
        unpropagated=missing,
        overruled=tuple(key for key in keys if key in place.data),
        strays=tuple(found.strays),
        changed=spec_written(resource, ignoring=OPERATORS) or str(resource["metadata"].get("creationTimestamp") or ""),
        phase=str(mapping(resource.get("status")).get("phase") or ""),
        operator=await _operator(asking, has_to_tell=bool(missing)),
    )


async def _operator(asking: Asking, *, has_to_tell: bool) -> OperatorState:
    """Read the operator's Pods and log errors, only if settings have not arrived."""
    if not has_to_tell:
        return OperatorState()
    for namespace in reversed(PLACES):
        kinds = (DEPLOYMENT, POD)
        listed = await asyncio.gather(*(asking.all_of(kind, namespace) for kind in kinds))
        workloads, pods = ([each for each in some if OPERATOR in each["metadata"]["name"]] for some in listed)
        if workloads or pods:
            told = [f"Deployment {each['metadata']['name']} {_replicas(each)}" for each in workloads]
            told += [f"{each['metadata']['name']} {_pod_state(each)}" for each in pods]
            errors = await errors_of(asking, pods[0]) if pods else []
            return OperatorState(namespace, tuple(told), any(_is_ready(each) for each in pods), tuple(errors))
    is_seen = POD not in asking.unread
    return OperatorState(PLACES[-1], (), False if is_seen else None)


def _replicas(deployment: Manifest) -> str:
    ready = mapping(deployment.get("status")).get("readyReplicas") or 0
    return f"{ready}/{mapping(deployment.get('spec')).get('replicas', 1)} ready"


def _pod_state(pod: Manifest) -> str:
    phase = str(mapping(pod.get("status")).get("phase") or "Unknown")
    return f"{phase}, {'ready' if _is_ready(pod) else 'not ready'}"


def _is_ready(pod: Manifest) -> bool:
    conditions = mappings(mapping(pod.get("status")).get("conditions"))
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


async def controller_errors(asking: Asking, control: str) -> tuple[str, ...]:
    """Fetch log errors of the application controller about health checks; empty if the log is not readable."""
    pods = [each for each in await asking.all_of(POD, control) if CONTROLLER in each["metadata"]["name"]]
    found = await errors_of(asking, pods[0]) if pods else []
    return tuple(each for each in found if "lua" in each.lower() or "health" in each.lower())


async def errors_of(asking: Asking, pod: Manifest) -> list[str]:
    """Fetch the last log lines that contain "error"."""
    key = ResourceKey(*POD, str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"]))
    found: list[str] = []
    try:
        async with asyncio.timeout(LOG_SECONDS):
            lines = asking.cluster.logs(key, tail=LOG_LINES)
            found += [line.strip()[:200] async for line in lines if "error" in line.lower()]
    except (ArgosyError, TimeoutError):
        asking.note(f"the log of {key.name} cannot be read")
    return found[-3:]


def _told(view: SettingsView, resource: Manifest | None, config: Manifest | None) -> dict[str, tuple[Sight, ...]]:
    found: dict[str, list[Sight]] = {}
    for manifest in (resource, config if not view.owner else None):
        for rule, sight in _linted(manifest) if manifest is not None else ():
            found.setdefault(rule, []).append(sight)
    place = Place(f"ConfigMap/{SETTINGS}")
    way = "expected behaviour, use the CR: argosy health apply"
    for key in view.strays:
        text = f"{key} is in {SETTINGS}, but not in the ArgoCD CR {view.owner}: the operator will remove it"
        found.setdefault(DISAGREES, []).append(Sight(place, text, way, f"ConfigMap/{SETTINGS}", key))
    for key in view.overruled:
        text = f"spec.extraConfig of ArgoCD {view.owner} holds {key}, which wins over spec.resourceHealthChecks"
        name = f"ArgoCD/{view.owner}"
        found.setdefault(DISAGREES, []).append(Sight(Place(name), text, "remove it from spec.extraConfig", name, key))
    for key in _undone(view, config) if resource is not None else ():
        text = f"{key} was applied to {SETTINGS} by hand, and the operator has removed it: the ArgoCD CR lacks it"
        found.setdefault(DISAGREES, []).append(Sight(place, text, way, f"ConfigMap/{SETTINGS}", key))
    return {rule: tuple(sights) for rule, sights in found.items()}


def _linted(manifest: Manifest) -> list[tuple[str, Sight]]:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    shown = {**manifest, "metadata": {part: manifest["metadata"][part] for part in ("name", "namespace")}}
    try:
        remarks = lint_settings(Source(f"{kind}/{name}", dump(shown)).located()).remarks
    except ArgosyError:
        return []
    place, own = Place(f"{kind}/{name}"), find_own_checks(manifest)
    return [
        (each.rule, Sight(place, f"{each.place}: {each.message}", each.advice or "correct it", f"{kind}/{name}",
                          each.place, Severity(each.severity)))
        for each in remarks
        if each.severity != "info" and each.rule != DISAGREES and each.place not in own
    ]  # fmt: skip


def setting_sights(faults: Iterable[str], told: Mapping[str, tuple[Sight, ...]], namespace: str) -> tuple[Sight, ...]:
    """List invalid settings, except those that a health check rule already reports."""
    known = {sight.field for sights in told.values() for sight in sights if sight.field}
    sights = []
    for fault in faults:
        owner, _, rest = fault.partition(": ")
        key = rest.partition(": ")[0]
        if key in known or fault.endswith(tuple(f"({rule})" for rule in told)):
            continue
        subject = owner.replace(" ", "/", 1) if owner.startswith("AppProject ") else f"ConfigMap/{owner}"
        until = describe_fallback(fault)
        fix = f"correct it: argosy kubectl edit {subject.lower()} -n {namespace}; until then {until}"
        severity = Severity.ERROR if key in RESTRICTING_KEYS else None
        sights.append(Sight(Place(subject), fault, fix, subject, key, severity))
    return tuple(sights)


def _undone(view: SettingsView, config: Manifest | None) -> list[str]:
    """List keys in kubectl's last-applied annotation that no longer exist."""
    if not view.owner or config is None:
        return []
    try:
        applied = mapping(mapping(json.loads(annotation(config, LAST_APPLIED) or "{}")).get("data"))
    except ValueError:
        return []
    return sorted(key for key in applied if key.startswith(KEY_PREFIX) and key not in (view.data or {}))


__all__ = ["Settings", "read_installation", "setting_sights"]
