"""Simulates the build controller and its Pods: New, Pending, Running, then Complete with an image in the ImageStream.

In: the key of a Build. Out: its phase, its times, the tag that it pushes. Never: builds an image.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import remaining_delay
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import BUILD, BUILD_CONFIG
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.openshift.image_streams import add_pushed_image, hash_to_digest
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import IMAGE_STREAM, REGISTRY_HOST
from argosy.sandbox.simulators.owner_references_and_marks import (
    append_simulated_note,
    build_key,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.simulation_annotations import (
    DEFAULT_SETTINGS,
    InjectedFault,
    SimulationSettings,
    read_simulation_annotations,
    read_simulation_settings,
)
from argosy.sandbox.simulators.timestamps_and_durations import ExactTimestamps

BUILD_CONFIG_LABEL: Final = "openshift.io/build-config.name"
BUILD_NUMBER_ANNOTATION: Final = "openshift.io/build.number"
FINISHED_PHASES: Final = ("Complete", "Failed", "Error", "Cancelled")
STRATEGY_TYPES: Final = {"dockerStrategy": "Docker", "sourceStrategy": "Source", "customStrategy": "Custom"}
FAILURES_BY_FAULT: Final = {
    InjectedFault.IMAGE_PULL: ("PullBuilderImageFailed", "Failed pulling builder image."),
    InjectedFault.OOM_KILLED: ("OutOfMemoryKilled", "The build pod was killed due to an out of memory condition."),
    InjectedFault.EVICTED: ("BuildPodEvicted", "The build pod was evicted."),
}
FAILURES_BY_STRATEGY: Final = {
    "Docker": ("DockerBuildFailed", "Dockerfile build strategy has failed."),
    "Source": ("AssembleFailed", "Assemble script failed."),
    "Custom": ("GenericBuildFailed", "Generic Build failure - check logs for details."),
}
FAULTS_WITHOUT_FAILURE: Final = (None, InjectedFault.SLOW, InjectedFault.NOT_READY, InjectedFault.UNSCHEDULABLE)


class BuildController:
    """Remembers unfinished Builds, to enqueue them when something they wait for may have changed."""

    name = "simulated-builds"

    def __init__(self) -> None:
        self._timestamps = ExactTimestamps()
        self._unfinished: set[ResourceKey] = set()
        self.watches = (
            Watch(BUILD, enqueue_if_unmarked),
            *(Watch(kind, self._enqueue_unfinished) for kind in (BUILD, BUILD_CONFIG, IMAGE_STREAM)),
        )

    def _enqueue_unfinished(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._unfinished)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._unfinished.discard(key)
        build = context.cache.get(key)
        if (
            build is None
            or is_being_deleted(build)
            or is_simulated_by_other_addon(build)
            or read_build_phase(build) in FINISHED_PHASES
        ):
            return None
        self._unfinished.add(key)
        settings, problem = _read_settings(build, context.cache)
        status, wait = self._compute_next_status(build, settings, problem, context)
        if status.get("phase") == "Complete" and (target := _find_output_tag(build)) is not None:
            await _push_image_tag(build, *target, status["completionTimestamp"], context)
        if status.get("phase") in FINISHED_PHASES:
            self._unfinished.discard(key)
        await update_status_if_changed(build, {**status, "conditions": _build_conditions(status)}, context.cluster)
        return Requeue(wait) if wait is not None else None

    def _compute_next_status(
        self, build: Manifest, settings: SimulationSettings, problem: str, context: ControllerContext
    ) -> tuple[dict[str, Any], float | None]:
        """Return the next status, and the seconds until the following step if only time triggers it."""
        current, now = dict(build.get("status") or {}), context.clock.now()
        if current.get("cancelled"):
            return self._build_finished_status(
                build, current, "Cancelled", now, "CancelledBuild", "The build was cancelled."
            ), None
        match current.get("phase"):
            case None:
                return {
                    **current,
                    "phase": "New",
                    "config": _build_config_reference(build),
                    **_build_output_fields(build),
                }, None
            case "New":
                return _compute_new_build_status(build, current, problem, context.cache), None
            case "Pending":
                if settings.fault is InjectedFault.UNSCHEDULABLE:
                    return current, None
                return {
                    **current,
                    "phase": "Running",
                    "startTimestamp": self._timestamps.format_and_remember(_read_uid(build), now),
                }, None
        return self._compute_running_status(build, current, settings, now)

    def _compute_running_status(
        self, build: Manifest, current: dict[str, Any], settings: SimulationSettings, now: datetime
    ) -> tuple[dict[str, Any], float | None]:
        started_at = self._timestamps.parse_exact(_read_uid(build), current["startTimestamp"])
        wait = remaining_delay(started_at, settings.run_for, now)
        if settings.fault is InjectedFault.NOT_READY:
            return current, None
        if wait > 0:
            return current, wait
        if settings.fault in FAULTS_WITHOUT_FAILURE:
            output = {"to": {"imageDigest": hash_to_digest(_read_uid(build))}} if _find_output_tag(build) else None
            return {**self._build_finished_status(build, current, "Complete", now), "output": output}, None
        reason, message = FAILURES_BY_FAULT.get(settings.fault) or FAILURES_BY_STRATEGY.get(
            _read_strategy_type(build), FAILURES_BY_STRATEGY["Custom"]
        )
        return self._build_finished_status(build, current, "Failed", now, reason, message), None

    def _build_finished_status(
        self, build: Manifest, current: dict[str, Any], phase: str, now: datetime, reason: str = "", message: str = ""
    ) -> dict[str, Any]:
        uid = _read_uid(build)
        started_at = (
            self._timestamps.parse_exact(uid, current["startTimestamp"]) if current.get("startTimestamp") else now
        )
        duration = max(int((now - started_at).total_seconds() * 1e9), 1)
        reason_fields = {"reason": reason or None, "message": append_simulated_note(message) if message else None}
        return {
            **current,
            "phase": phase,
            "completionTimestamp": self._timestamps.format_and_remember(uid, now),
            "duration": duration,
            **reason_fields,
        }


def read_build_phase(build: Manifest) -> str:
    return str((build.get("status") or {}).get("phase") or "")


def read_build_number(build: Manifest) -> int:
    return int((build["metadata"].get("annotations") or {}).get(BUILD_NUMBER_ANNOTATION) or 0)


def read_config_name(build: Manifest) -> str:
    return str((build["metadata"].get("labels") or {}).get(BUILD_CONFIG_LABEL) or "")


def list_sibling_builds(build: Manifest, cache: InformerCache) -> list[Manifest]:
    """List the other Builds of the same BuildConfig."""
    namespace = build["metadata"]["namespace"]
    builds = (
        cache.list(BUILD, namespace=namespace, labels={BUILD_CONFIG_LABEL: read_config_name(build)})
        if read_config_name(build)
        else ()
    )
    return [sibling for sibling in builds if key_of(sibling) != key_of(build)]


def _compute_new_build_status(
    build: Manifest, current: dict[str, Any], problem: str, cache: InformerCache
) -> dict[str, Any]:
    """Return the status of a New Build: Pending if it may start, else the reason why not."""
    target = _find_output_tag(build)
    if problem:
        return {**current, "reason": "BuildPodCreationFailed", "message": problem}
    if target is not None and cache.get(build_key(IMAGE_STREAM, target[0], target[1])) is None:
        return {
            **current,
            "reason": "InvalidOutputReference",
            "message": append_simulated_note(
                f"Output image could not be resolved: ImageStream {target[0]}/{target[1]} not found."
            ),
        }
    policy = _read_run_policy(build, cache)
    earlier_builds = [
        sibling
        for sibling in list_sibling_builds(build, cache)
        if read_build_number(sibling) < read_build_number(build)
    ]
    if policy == "SerialLatestOnly" and any(
        read_build_number(sibling) > read_build_number(build) for sibling in list_sibling_builds(build, cache)
    ):
        message = append_simulated_note("The build was cancelled because of its configuration run policy.")
        return {**current, "phase": "Cancelled", "reason": "CancelledBuild", "message": message}
    if policy != "Parallel" and any(read_build_phase(sibling) not in FINISHED_PHASES for sibling in earlier_builds):
        return {**current, "reason": None, "message": None}
    return {**current, "phase": "Pending", "reason": None, "message": None}


def _read_run_policy(build: Manifest, cache: InformerCache) -> str:
    config = cache.get(build_key(BUILD_CONFIG, build["metadata"]["namespace"], read_config_name(build)))
    return str(((config or {}).get("spec") or {}).get("runPolicy") or "Serial")


def _find_output_tag(build: Manifest) -> tuple[str, str, str] | None:
    """Return namespace, stream and tag that the Build pushes to, or None if the output is no ImageStreamTag."""
    to = ((build.get("spec") or {}).get("output") or {}).get("to") or {}
    if to.get("kind") != "ImageStreamTag":
        return None
    stream, _, tag = str(to.get("name") or "").partition(":")
    return to.get("namespace") or build["metadata"]["namespace"], stream, tag or "latest"


def _build_output_fields(build: Manifest) -> dict[str, Any]:
    target = _find_output_tag(build)
    if target is None:
        to = ((build.get("spec") or {}).get("output") or {}).get("to") or {}
        return {"outputDockerImageReference": to["name"]} if to.get("name") else {}
    return {"outputDockerImageReference": f"{REGISTRY_HOST}/{target[0]}/{target[1]}:{target[2]}"}


async def _push_image_tag(
    build: Manifest, namespace: str, stream: str, tag: str, now: str, context: ControllerContext
) -> None:
    """Write the tag before the Build is Complete, so that its image exists by then."""
    image_stream = context.cache.get(build_key(IMAGE_STREAM, namespace, stream))
    if image_stream is not None:
        tags = add_pushed_image(image_stream, tag, hash_to_digest(_read_uid(build)), now)
        await update_status_if_changed(image_stream, {"tags": tags}, context.cluster)


def _read_settings(build: Manifest, cache: InformerCache) -> tuple[SimulationSettings, str]:
    config = cache.get(build_key(BUILD_CONFIG, build["metadata"]["namespace"], read_config_name(build)))
    try:
        return read_simulation_settings(
            [read_simulation_annotations(build), *([read_simulation_annotations(config)] if config else [])]
        ), ""
    except UserError as error:
        return DEFAULT_SETTINGS, str(error)


def _build_config_reference(build: Manifest) -> Manifest | None:
    name = read_config_name(build)
    if not name:
        return None
    return {"kind": "BuildConfig", "name": name, "namespace": build["metadata"]["namespace"]}


def _read_strategy_type(build: Manifest) -> str:
    strategy = (build.get("spec") or {}).get("strategy") or {}
    return str(
        strategy.get("type") or next((STRATEGY_TYPES[field] for field in STRATEGY_TYPES if field in strategy), "Custom")
    )


def _build_conditions(status: Manifest) -> list[Manifest] | None:
    if not status.get("phase"):
        return None
    transitioned_at = status.get("completionTimestamp") or status.get("startTimestamp")
    reason_fields = {name: status[name] for name in ("reason", "message") if status.get(name)}
    time_fields = {"lastTransitionTime": transitioned_at} if transitioned_at else {}
    return [{"type": status["phase"], "status": "True", **reason_fields, **time_fields}]


def _read_uid(build: Manifest) -> str:
    return str(build["metadata"]["uid"])
