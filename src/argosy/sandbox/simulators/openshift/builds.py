"""Simulates the build controller and its Pods: New, Pending, Running, then Complete with an image in the ImageStream.

In: the key of a Build. Out: its phase, its times, the tag that it pushes. Never: builds an image.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.constants import is_dying, is_played_by_others, own_key, told, unmarked
from argosy.sandbox.simulators.fault_injection import NONE, Fault, Wishes, asked, read_wishes
from argosy.sandbox.simulators.openshift.constants import BUILD, BUILD_CONFIG, IMAGE_STREAM, REGISTRY
from argosy.sandbox.simulators.openshift.image_streams import digest_of, pushed
from argosy.sandbox.simulators.timestamps import Moments
from argosy.sandbox.simulators.writes import keep_status, patient

CONFIG: Final = "openshift.io/build-config.name"
NUMBER: Final = "openshift.io/build.number"
ENDED: Final = ("Complete", "Failed", "Error", "Cancelled")
STRATEGIES: Final = {"dockerStrategy": "Docker", "sourceStrategy": "Source", "customStrategy": "Custom"}
FAILURES: Final = {
    Fault.IMAGE_PULL: ("PullBuilderImageFailed", "Failed pulling builder image."),
    Fault.OOM_KILLED: ("OutOfMemoryKilled", "The build pod was killed due to an out of memory condition."),
    Fault.EVICTED: ("BuildPodEvicted", "The build pod was evicted."),
}
BY_STRATEGY: Final = {
    "Docker": ("DockerBuildFailed", "Dockerfile build strategy has failed."),
    "Source": ("AssembleFailed", "Assemble script failed."),
    "Custom": ("GenericBuildFailed", "Generic Build failure - check logs for details."),
}
UNENDING: Final = (None, Fault.SLOW, Fault.NOT_READY, Fault.UNSCHEDULABLE)


class Builds:
    """Remembers unfinished Builds, to enqueue them when something they wait for may have changed."""

    name = "simulated-builds"

    def __init__(self) -> None:
        self._moments = Moments()
        self._going: set[ResourceKey] = set()
        self.watches = (
            Watch(BUILD, unmarked),
            *(Watch(kind, self._waiting) for kind in (BUILD, BUILD_CONFIG, IMAGE_STREAM)),
        )

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._going)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._going.discard(key)
        build = context.cache.get(key)
        if build is None or is_dying(build) or is_played_by_others(build) or phase_of(build) in ENDED:
            return None
        self._going.add(key)
        wishes, problem = _wishes(build, context.cache)
        status, wait = self._next(build, wishes, problem, context)
        if status.get("phase") == "Complete" and (target := _target(build)) is not None:
            await _push(build, *target, status["completionTimestamp"], context)
        if status.get("phase") in ENDED:
            self._going.discard(key)
        await keep_status(build, {**status, "conditions": _conditions(status)}, context.cluster)
        return Requeue(wait) if wait is not None else None

    def _next(
        self, build: Manifest, wishes: Wishes, problem: str, context: Context
    ) -> tuple[dict[str, Any], float | None]:
        """Return the next status, and the seconds until the following step if only time triggers it."""
        known, now = dict(build.get("status") or {}), context.clock.now()
        if known.get("cancelled"):
            return self._ended(build, known, "Cancelled", now, "CancelledBuild", "The build was cancelled."), None
        match known.get("phase"):
            case None:
                return {**known, "phase": "New", "config": _config(build), **_outcome(build)}, None
            case "New":
                return _begin(build, known, problem, context.cache), None
            case "Pending":
                if wishes.fail is Fault.UNSCHEDULABLE:
                    return known, None
                return {**known, "phase": "Running", "startTimestamp": self._moments.write(_uid(build), now)}, None
        return self._run(build, known, wishes, now)

    def _run(
        self, build: Manifest, known: dict[str, Any], wishes: Wishes, now: datetime
    ) -> tuple[dict[str, Any], float | None]:
        began = self._moments.read(_uid(build), known["startTimestamp"])
        wait = remaining_delay(began, wishes.run_for, now)
        if wishes.fail is Fault.NOT_READY:
            return known, None
        if wait > 0:
            return known, wait
        if wishes.fail in UNENDING:
            output = {"to": {"imageDigest": digest_of(_uid(build))}} if _target(build) else None
            return {**self._ended(build, known, "Complete", now), "output": output}, None
        reason, message = FAILURES.get(wishes.fail) or BY_STRATEGY.get(_strategy(build), BY_STRATEGY["Custom"])
        return self._ended(build, known, "Failed", now, reason, message), None

    def _ended(
        self, build: Manifest, known: dict[str, Any], phase: str, now: datetime, reason: str = "", message: str = ""
    ) -> dict[str, Any]:
        uid = _uid(build)
        began = self._moments.read(uid, known["startTimestamp"]) if known.get("startTimestamp") else now
        duration = max(int((now - began).total_seconds() * 1e9), 1)
        said = {"reason": reason or None, "message": told(message) if message else None}
        return {
            **known,
            "phase": phase,
            "completionTimestamp": self._moments.write(uid, now),
            "duration": duration,
            **said,
        }


def phase_of(build: Manifest) -> str:
    return str((build.get("status") or {}).get("phase") or "")


def number_of(build: Manifest) -> int:
    return int((build["metadata"].get("annotations") or {}).get(NUMBER) or 0)


def config_of(build: Manifest) -> str:
    return str((build["metadata"].get("labels") or {}).get(CONFIG) or "")


def siblings(build: Manifest, cache: Cache) -> list[Manifest]:
    """List the other Builds of the same BuildConfig."""
    place = build["metadata"]["namespace"]
    found = cache.list(BUILD, namespace=place, labels={CONFIG: config_of(build)}) if config_of(build) else ()
    return [each for each in found if key_of(each) != key_of(build)]


def _begin(build: Manifest, known: dict[str, Any], problem: str, cache: Cache) -> dict[str, Any]:
    """Return the status of a New Build: Pending if it may start, else the reason why not."""
    target = _target(build)
    if problem:
        return {**known, "reason": "BuildPodCreationFailed", "message": problem}
    if target is not None and cache.get(own_key(IMAGE_STREAM, target[0], target[1])) is None:
        return {
            **known,
            "reason": "InvalidOutputReference",
            "message": told(f"Output image could not be resolved: ImageStream {target[0]}/{target[1]} not found."),
        }
    policy = _policy(build, cache)
    before = [each for each in siblings(build, cache) if number_of(each) < number_of(build)]
    if policy == "SerialLatestOnly" and any(number_of(each) > number_of(build) for each in siblings(build, cache)):
        message = told("The build was cancelled because of its configuration run policy.")
        return {**known, "phase": "Cancelled", "reason": "CancelledBuild", "message": message}
    if policy != "Parallel" and any(phase_of(each) not in ENDED for each in before):
        return {**known, "reason": None, "message": None}
    return {**known, "phase": "Pending", "reason": None, "message": None}


def _policy(build: Manifest, cache: Cache) -> str:
    config = cache.get(own_key(BUILD_CONFIG, build["metadata"]["namespace"], config_of(build)))
    return str(((config or {}).get("spec") or {}).get("runPolicy") or "Serial")


def _target(build: Manifest) -> tuple[str, str, str] | None:
    """Return namespace, stream and tag that the Build pushes to, or None if the output is no ImageStreamTag."""
    to = ((build.get("spec") or {}).get("output") or {}).get("to") or {}
    if to.get("kind") != "ImageStreamTag":
        return None
    stream, _, tag = str(to.get("name") or "").partition(":")
    return to.get("namespace") or build["metadata"]["namespace"], stream, tag or "latest"


def _outcome(build: Manifest) -> dict[str, Any]:
    target = _target(build)
    if target is None:
        to = ((build.get("spec") or {}).get("output") or {}).get("to") or {}
        return {"outputDockerImageReference": to["name"]} if to.get("name") else {}
    return {"outputDockerImageReference": f"{REGISTRY}/{target[0]}/{target[1]}:{target[2]}"}


async def _push(build: Manifest, namespace: str, stream: str, tag: str, now: str, context: Context) -> None:
    """Write the tag before the Build is Complete, so that its image exists by then."""
    live = context.cache.get(own_key(IMAGE_STREAM, namespace, stream))
    if live is not None:
        tags = pushed(live, tag, digest_of(_uid(build)), now)
        await keep_status(live, {"tags": tags}, context.cluster)


def _wishes(build: Manifest, cache: Cache) -> tuple[Wishes, str]:
    config = cache.get(own_key(BUILD_CONFIG, build["metadata"]["namespace"], config_of(build)))
    try:
        return read_wishes([asked(build), *([asked(config)] if config else [])]), ""
    except UserError as error:
        return NONE, str(error)


def _config(build: Manifest) -> Manifest | None:
    name = config_of(build)
    if not name:
        return None
    return {"kind": "BuildConfig", "name": name, "namespace": build["metadata"]["namespace"]}


def _strategy(build: Manifest) -> str:
    strategy = (build.get("spec") or {}).get("strategy") or {}
    return str(strategy.get("type") or next((STRATEGIES[each] for each in STRATEGIES if each in strategy), "Custom"))


def _conditions(status: Manifest) -> list[Manifest] | None:
    if not status.get("phase"):
        return None
    moment = status.get("completionTimestamp") or status.get("startTimestamp")
    said = {name: status[name] for name in ("reason", "message") if status.get(name)}
    dated = {"lastTransitionTime": moment} if moment else {}
    return [{"type": status["phase"], "status": "True", **said, **dated}]


def _uid(build: Manifest) -> str:
    return str(build["metadata"]["uid"])
