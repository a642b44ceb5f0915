"""Simulates the BuildConfig controller: starts Builds, counts them, deletes old ones.

In: the key of a BuildConfig. Out: Builds, and its lastVersion. Never: runs a Build itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.annotations import START_BUILD
from argosy.kube.client import Admitter
from argosy.kube.controller import Context, Watch
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.constants import is_dying, is_played_by_others, own_key, reference_to, unmarked
from argosy.sandbox.simulators.openshift.builds import CONFIG, NUMBER, number_of, phase_of
from argosy.sandbox.simulators.openshift.constants import BUILD, BUILD_CONFIG, SERVER
from argosy.sandbox.simulators.writes import change, create_once, keep_status, patient, remove

PAUSED: Final = "openshift.io/build-config.paused"
COPIED: Final = (
    "source", "strategy", "output", "revision", "resources", "serviceAccount", "completionDeadlineSeconds",
    "nodeSelector", "postCommit",
)  # fmt: skip
TYPES: Final = {
    "strategy": {
        "dockerStrategy": "Docker",
        "sourceStrategy": "Source",
        "customStrategy": "Custom",
        "jenkinsPipelineStrategy": "JenkinsPipeline",
    },
    "source": {"git": "Git", "binary": "Binary", "dockerfile": "Dockerfile", "images": "Image"},
}
LIMITS: Final = {"successfulBuildsHistoryLimit": 5, "failedBuildsHistoryLimit": 5}


def completed(manifest: Manifest, old: Manifest | None = None) -> Manifest:
    """Set the defaults that the server stores: the type of source and strategy, and history limits."""
    spec = manifest.get("spec") or {}
    if is_played_by_others(manifest):
        return manifest
    typed: dict[str, Any] = {}
    for field, words in TYPES.items():
        part = spec.get(field)
        word = next((words[each] for each in words if each in (part or {})), "")
        if part and not part.get("type") and word:
            typed[field] = {**part, "type": word}
    limits = LIMITS if manifest["kind"] == BUILD_CONFIG.kind else {}
    return {**manifest, "spec": {**limits, **spec, **typed}}


def _admitter(kind: GroupKind) -> Admitter:
    return Admitter(kind, f"{kind.kind.lower()}.openshift.io", SERVER, completed)


ADMITTERS: Final = (_admitter(BUILD_CONFIG), _admitter(BUILD))


def _config(build: Manifest) -> Iterable[ResourceKey]:
    if name := (build["metadata"].get("labels") or {}).get(CONFIG):
        yield own_key(BUILD_CONFIG, build["metadata"]["namespace"], name)


class BuildConfigs:
    name = "simulated-buildconfigs"
    watches = (Watch(BUILD_CONFIG, unmarked), Watch(BUILD, _config))

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return
        if is_paused(live):
            return
        last = int((live.get("status") or {}).get("lastVersion") or 0)
        if annotation(live, START_BUILD):
            await _start_by_wish(live, last + 1, context)
        elif not last and _has_config_trigger(live):
            await create_once(build_from(live, 1, "Build configuration change"), context.cluster)
            await keep_status(live, {"lastVersion": 1}, context.cluster)
        else:
            await _count(live, last, context)
            await _forget(live, context)


def is_paused(live: Manifest) -> bool:
    return annotation(live, PAUSED) == "true"


def _has_config_trigger(live: Manifest) -> bool:
    return any(each.get("type") == "ConfigChange" for each in live["spec"].get("triggers") or ())


async def _start_by_wish(live: Manifest, number: int, context: Context) -> None:
    """Start a Build because of the start-build annotation.

    Interrupted at any point, the next run creates the same Build again or finds it and only counts it.
    """
    await create_once(build_from(live, number, "Manually triggered"), context.cluster)
    changed = await change(live, {"metadata": {"annotations": {START_BUILD: None}}}, context.cluster)
    await keep_status(changed, {"lastVersion": number}, context.cluster)


async def _count(live: Manifest, last: int, context: Context) -> None:
    """Raise lastVersion to the highest existing Build number."""
    highest = max((number_of(each) for each in _builds(live, context)), default=0)
    if highest > last:
        await keep_status(live, {"lastVersion": highest}, context.cluster)


def _builds(live: Manifest, context: Context) -> Sequence[Manifest]:
    place, name = live["metadata"]["namespace"], live["metadata"]["name"]
    return list(context.cache.list(BUILD, namespace=place, labels={CONFIG: name}))


def build_from(config: Manifest, number: int, why: str) -> Manifest:
    metadata, spec = config["metadata"], config["spec"]
    name = _build_name(config, number)
    annotations = {CONFIG: metadata["name"], NUMBER: str(number), "openshift.io/build.pod-name": f"{name}-build"}
    labels = {
        **(metadata.get("labels") or {}),
        "buildconfig": metadata["name"],
        CONFIG: metadata["name"],
        "openshift.io/build.start-policy": spec.get("runPolicy") or "Serial",
    }
    return {
        "apiVersion": "build.openshift.io/v1",
        "kind": "Build",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [reference_to(config)],
        },
        "spec": {
            **{field: spec[field] for field in COPIED if field in spec},
            "triggeredBy": [{"message": why}],
        },
    }


def _build_name(config: Manifest, number: int) -> str:
    return f"{config['metadata']['name']}-{number}"


async def _forget(live: Manifest, context: Context) -> None:
    """Delete finished Builds above the history limits."""
    builds = _builds(live, context)
    for field, phases in (
        ("successfulBuildsHistoryLimit", ("Complete",)),
        ("failedBuildsHistoryLimit", ("Failed", "Error", "Cancelled")),
    ):
        limit = live["spec"].get(field)
        ended = sorted((each for each in builds if phase_of(each) in phases and not is_dying(each)), key=number_of)
        for each in ended[: max(len(ended) - int(limit), 0)] if limit is not None else ():
            await remove(each, context.cluster)
