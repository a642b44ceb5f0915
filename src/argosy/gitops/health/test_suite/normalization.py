"""Removes fields from action results that the comparison ignores, by kind: times of the run and derived values.

In: a manifest. Out: a copy with these fields normalized. Never: removes other fields of a kind that is not listed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from argosy.gitops.health.test_suite.manifest_kind import kind_of
from argosy.kube.objects import Manifest

ZERO: Final = "0001-01-01T00:00:00Z"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_TEMPLATE: Final = ("spec", "template", "metadata", "annotations")
_ANNOTATIONS: Final = ("metadata", "annotations")
_FLUX: Final = {
    "helm.toolkit.fluxcd.io": ("HelmRelease",),
    "source.toolkit.fluxcd.io": ("Bucket", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"),
    "image.toolkit.fluxcd.io": ("ImageRepository", "ImageUpdateAutomation"),
    "kustomize.toolkit.fluxcd.io": ("Kustomization",),
    "notification.toolkit.fluxcd.io": ("Receiver",),
}

Step = Callable[[Manifest], Manifest]


def normalized(manifest: Manifest) -> Manifest:
    """argo: removes creationTimestamp, and the fields that its tests ignore for this kind."""
    manifest = _without(manifest, "metadata", "creationTimestamp")
    for step in _STEPS.get(kind_of(manifest), ()):
        manifest = step(manifest)
    return manifest


def with_times_of(desired: Any, live: Any) -> Any:
    """Replace times in `live` with the zero time where `desired` has the zero time.

    Argo CD's tests have a list of time fields by kind; tests of other kinds use the zero time instead.
    """
    if isinstance(desired, dict) and isinstance(live, dict):
        return {name: with_times_of(desired.get(name), part) for name, part in live.items()}
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return [with_times_of(mine, part) for mine, part in zip(desired, live)]
    if desired == ZERO and isinstance(live, str) and _TIME.fullmatch(live):
        return ZERO
    return live


def _without(manifest: Any, *path: str) -> Any:
    if not isinstance(manifest, dict) or path[0] not in manifest:
        return manifest
    if len(path) == 1:
        return {name: part for name, part in manifest.items() if name != path[0]}
    return manifest | {path[0]: _without(manifest[path[0]], *path[1:])}


def _with(manifest: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy with the value at the path; unchanged if a part of the path is not a map."""
    if not path:
        return value
    if not isinstance(manifest, dict):
        return manifest
    return manifest | {path[0]: _with(manifest.get(path[0], {}), path[1:], value)}


def _leave_out(*path: str) -> Step:
    return lambda manifest: _without(manifest, *path)


def _put(path: tuple[str, ...], value: Mapping[str, str]) -> Step:
    """argo: replaces all annotations, so that no other annotation is compared."""
    return lambda manifest: _with(manifest, path, dict(value))


def _add(path: tuple[str, ...], *names: str) -> Step:
    def added(manifest: Manifest) -> Manifest:
        for name in names:
            manifest = _with(manifest, (*path, name), ZERO)
        return manifest

    return added


def _failure_time(manifest: Manifest) -> Manifest:
    status = manifest.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list):
        return manifest
    timed = [
        each | {"lastTransitionTime": ZERO} if isinstance(each, dict) and each.get("type") == "FailureTarget" else each
        for each in conditions
    ]
    return _with(manifest, ("status", "conditions"), timed)  # type: ignore[no-any-return]


def _encoded(manifest: Manifest) -> Manifest:
    """argo: merges stringData of a Secret into data, and replaces null with an empty string."""
    data, texts = manifest.get("data"), manifest.get("stringData")
    merged: dict[str, Any] = dict(data) if isinstance(data, dict) else {}
    for name, value in (texts if isinstance(texts, dict) else {}).items():
        merged[name] = base64.b64encode(value.encode()).decode() if isinstance(value, str) else value
    if not merged:
        return manifest
    kept = {name: part for name, part in manifest.items() if name != "stringData"}
    return kept | {"data": {name: "" if value is None else value for name, value in merged.items()}}


def _ruled(manifest: Manifest) -> Manifest:
    return _without(manifest, "rules") if manifest.get("rules") == [] else manifest


_restarted: Final = _put(_TEMPLATE, {_RESTARTED: ZERO})
_forced: Final = _put(_ANNOTATIONS, {"force-sync": ZERO})
_requested: Final = _put(_ANNOTATIONS, {"reconcile.fluxcd.io/requestedAt": ZERO})
_STEPS: Final[Mapping[tuple[str, str], tuple[Step, ...]]] = {
    ("", "Secret"): (_encoded,),
    ("rbac.authorization.k8s.io", "ClusterRole"): (_ruled,),
    ("rbac.authorization.k8s.io", "Role"): (_ruled,),
    ("batch", "Job"): (_failure_time,),
    ("apps", "DaemonSet"): (_restarted,),
    ("apps", "StatefulSet"): (_restarted,),
    ("apps", "Deployment"): (_restarted, _leave_out("status"), _leave_out("metadata", "generation")),
    ("argoproj.io", "Rollout"): (_leave_out("spec", "restartAt"),),
    ("argoproj.io", "Workflow"): (
        _leave_out("metadata", "resourceVersion"),
        _leave_out("metadata", "uid"),
        _leave_out("metadata", "annotations", "workflows.argoproj.io/scheduled-time"),
    ),
    ("external-secrets.io", "ExternalSecret"): (_forced,),
    ("external-secrets.io", "PushSecret"): (_forced,),
    ("postgresql.cnpg.io", "Cluster"): (
        _add(_ANNOTATIONS, "cnpg.io/reloadedAt", _RESTARTED),
        _leave_out("status", "targetPrimaryTimestamp"),
    ),
} | {(group, kind): (_requested,) for group, kinds in _FLUX.items() for kind in kinds}
