"""Removes fields from action results that the comparison ignores, by kind: times of the run and derived values.

In: a manifest. Out: a copy with these fields normalized. Never: removes other fields of a kind that is not listed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from argosy.gitops.health.test_suite.manifest_identity import read_group_kind
from argosy.kube.objects import Manifest

ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_RESTARTED_AT_ANNOTATION: Final = "kubectl.kubernetes.io/restartedAt"
_TEMPLATE_ANNOTATIONS: Final = ("spec", "template", "metadata", "annotations")
_ANNOTATIONS: Final = ("metadata", "annotations")
_FLUX_KINDS: Final = {
    "helm.toolkit.fluxcd.io": ("HelmRelease",),
    "source.toolkit.fluxcd.io": ("Bucket", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"),
    "image.toolkit.fluxcd.io": ("ImageRepository", "ImageUpdateAutomation"),
    "kustomize.toolkit.fluxcd.io": ("Kustomization",),
    "notification.toolkit.fluxcd.io": ("Receiver",),
}

NormalizationStep = Callable[[Manifest], Manifest]


def normalize_manifest(manifest: Manifest) -> Manifest:
    """argo: removes creationTimestamp, and the fields that its tests ignore for this kind."""
    manifest = _remove_field(manifest, "metadata", "creationTimestamp")
    for step in _STEPS.get(read_group_kind(manifest), ()):
        manifest = step(manifest)
    return manifest


def zero_times_where_expected(desired: Any, live: Any) -> Any:
    """Replace times in `live` with the zero time where `desired` has the zero time.

    Argo CD's tests have a list of time fields by kind; tests of other kinds use the zero time instead.
    """
    if isinstance(desired, dict) and isinstance(live, dict):
        return {name: zero_times_where_expected(desired.get(name), part) for name, part in live.items()}
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return [zero_times_where_expected(desired_part, part) for desired_part, part in zip(desired, live)]
    if desired == ZERO_TIME and isinstance(live, str) and _TIME.fullmatch(live):
        return ZERO_TIME
    return live


def _remove_field(manifest: Any, *path: str) -> Any:
    if not isinstance(manifest, dict) or path[0] not in manifest:
        return manifest
    if len(path) == 1:
        return {name: part for name, part in manifest.items() if name != path[0]}
    return manifest | {path[0]: _remove_field(manifest[path[0]], *path[1:])}


def _set_field(manifest: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy with the value at the path; unchanged if a part of the path is not a map."""
    if not path:
        return value
    if not isinstance(manifest, dict):
        return manifest
    return manifest | {path[0]: _set_field(manifest.get(path[0], {}), path[1:], value)}


def _removal_step(*path: str) -> NormalizationStep:
    return lambda manifest: _remove_field(manifest, *path)


def _replacement_step(path: tuple[str, ...], value: Mapping[str, str]) -> NormalizationStep:
    """argo: replaces all annotations, so that no other annotation is compared."""
    return lambda manifest: _set_field(manifest, path, dict(value))


def _zero_time_step(path: tuple[str, ...], *names: str) -> NormalizationStep:
    def add_times(manifest: Manifest) -> Manifest:
        for name in names:
            manifest = _set_field(manifest, (*path, name), ZERO_TIME)
        return manifest

    return add_times


def _zero_failure_time(manifest: Manifest) -> Manifest:
    status = manifest.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list):
        return manifest
    normalized_conditions = [
        condition | {"lastTransitionTime": ZERO_TIME}
        if isinstance(condition, dict) and condition.get("type") == "FailureTarget"
        else condition
        for condition in conditions
    ]
    return _set_field(manifest, ("status", "conditions"), normalized_conditions)  # type: ignore[no-any-return]


def _encode_string_data(manifest: Manifest) -> Manifest:
    """argo: merges stringData of a Secret into data, and replaces null with an empty string."""
    data, texts = manifest.get("data"), manifest.get("stringData")
    merged: dict[str, Any] = dict(data) if isinstance(data, dict) else {}
    for name, value in (texts if isinstance(texts, dict) else {}).items():
        merged[name] = base64.b64encode(value.encode()).decode() if isinstance(value, str) else value
    if not merged:
        return manifest
    other_fields = {name: part for name, part in manifest.items() if name != "stringData"}
    return other_fields | {"data": {name: "" if value is None else value for name, value in merged.items()}}


def _drop_empty_rules(manifest: Manifest) -> Manifest:
    return _remove_field(manifest, "rules") if manifest.get("rules") == [] else manifest


_normalize_restart: Final = _replacement_step(_TEMPLATE_ANNOTATIONS, {_RESTARTED_AT_ANNOTATION: ZERO_TIME})
_normalize_force_sync: Final = _replacement_step(_ANNOTATIONS, {"force-sync": ZERO_TIME})
_normalize_reconcile_request: Final = _replacement_step(_ANNOTATIONS, {"reconcile.fluxcd.io/requestedAt": ZERO_TIME})
_STEPS: Final[Mapping[tuple[str, str], tuple[NormalizationStep, ...]]] = {
    ("", "Secret"): (_encode_string_data,),
    ("rbac.authorization.k8s.io", "ClusterRole"): (_drop_empty_rules,),
    ("rbac.authorization.k8s.io", "Role"): (_drop_empty_rules,),
    ("batch", "Job"): (_zero_failure_time,),
    ("apps", "DaemonSet"): (_normalize_restart,),
    ("apps", "StatefulSet"): (_normalize_restart,),
    ("apps", "Deployment"): (_normalize_restart, _removal_step("status"), _removal_step("metadata", "generation")),
    ("argoproj.io", "Rollout"): (_removal_step("spec", "restartAt"),),
    ("argoproj.io", "Workflow"): (
        _removal_step("metadata", "resourceVersion"),
        _removal_step("metadata", "uid"),
        _removal_step("metadata", "annotations", "workflows.argoproj.io/scheduled-time"),
    ),
    ("external-secrets.io", "ExternalSecret"): (_normalize_force_sync,),
    ("external-secrets.io", "PushSecret"): (_normalize_force_sync,),
    ("postgresql.cnpg.io", "Cluster"): (
        _zero_time_step(_ANNOTATIONS, "cnpg.io/reloadedAt", _RESTARTED_AT_ANNOTATION),
        _removal_step("status", "targetPrimaryTimestamp"),
    ),
} | {(group, kind): (_normalize_reconcile_request,) for group, kinds in _FLUX_KINDS.items() for kind in kinds}
