"""Simulates the life of a Pod's containers: start, run, become ready, exit, restart.

In: the previous container status, the simulation settings and the time. Out: the current state and the time until the
next change.
Never: runs a program; reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import CLOCK_SKEW, remaining_delay
from argosy.sandbox.simulators.constants import BY, told
from argosy.sandbox.simulators.fault_injection import ENDING, Fault, Wishes
from argosy.sandbox.simulators.images import missing_of
from argosy.sandbox.simulators.timestamps import Moments, left, span

FIRST_BACKOFF, MOST_BACKOFF = 10.0, 300.0
PULL_SECONDS: Final = 1.0
NOT_PULLED: Final = ("ErrImagePull", "ImagePullBackOff")
NOT_CONFIGURED: Final = "CreateContainerConfigError"
NOT_CREATED: Final = (*NOT_PULLED, "ContainerCreating", "PodInitializing", NOT_CONFIGURED)
CREATING: Final = {"waiting": {"reason": "ContainerCreating"}}


@dataclass(frozen=True)
class Acting:
    """State shared by all containers of a Pod at one moment."""

    phase: str
    # as in a container status; `{image}` and `{name}` in messages are filled in per container
    state: Manifest
    last: Manifest = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    wait: float | None = None  # seconds until the state changes


@dataclass(frozen=True)
class Actor:
    """Inputs that decide the state of one Pod's containers."""

    pod: Manifest
    wishes: Wishes
    now: datetime
    moments: Moments
    failed_before: int = 0  # earlier Pods of the same owner that failed

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def policy(self) -> str:
        return str(self.pod["spec"].get("restartPolicy") or "Always")

    @property
    def cannot_pull(self) -> bool:
        if self.wishes.fail is Fault.IMAGE_PULL and self.is_failing(0):
            return True
        return missing_of(self.pod) or missing_of(self.pod, "initContainers")

    def is_failing(self, restarts: int) -> bool:
        """True if the injected fault still applies after this many restarts."""
        times = self.wishes.fail_times
        return self.wishes.fail is not None and (times is None or self.failed_before + restarts < times)


def act(actor: Actor) -> Acting:
    """Compute the current state of the Pod's containers from their last status."""
    status = actor.pod.get("status") or {}
    prior: Manifest = next(iter(status.get("containerStatuses") or ()), {})
    state = prior.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason") or ""
    if not state or waiting in NOT_CREATED:
        if actor.wishes.fail is Fault.STORAGE and actor.is_failing(0):
            return Acting("Pending", CREATING)
        if actor.cannot_pull:
            return _not_pulled(actor, waiting)
        return _running(actor, actor.now, 0, {})
    restarts, last = int(prior.get("restartCount") or 0), prior.get("lastState") or {}
    if "running" in state:
        return _running(actor, actor.moments.read(actor.uid, state["running"]["startedAt"]), restarts, last)
    if waiting:  # CrashLoopBackOff; removing the fault ends the wait at once
        resume = _resume(actor, last["terminated"], restarts + 1)
        if actor.is_failing(restarts + 1) and resume > 0:
            return Acting("Running", state, last, restarts, wait=resume)
        return _running(actor, actor.now, restarts + 1, last)
    return Acting(str(status.get("phase") or "Succeeded"), state, last, restarts)


def _not_pulled(actor: Actor, waiting: str) -> Acting:
    """k8s: ErrImagePull first, then ImagePullBackOff; the simulation stays in ImagePullBackOff."""
    began = (actor.pod.get("status") or {}).get("startTime")
    since = actor.moments.read(actor.uid, began) if began else actor.now
    wait = remaining_delay(since, PULL_SECONDS, actor.now)
    resolving = 'failed to resolve reference "{image}": {image}: not found'
    refused = told(f'rpc error: code = NotFound desc = failed to pull and unpack image "{{image}}": {resolving}')
    if wait > 0 and waiting != "ImagePullBackOff":
        return Acting("Pending", {"waiting": {"reason": "ErrImagePull", "message": refused}}, wait=wait)
    message = 'Back-off pulling image "{image}": ErrImagePull: ' + refused
    return Acting("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": message}})


def _running(actor: Actor, began: datetime, restarts: int, last: Manifest) -> Acting:
    """Replay exits and restarts since `started_at` and return the state at the current time."""
    if began > actor.now + CLOCK_SKEW:  # the clock was set back: count from now
        began = actor.now
    while True:
        ending = _ending(actor, restarts)
        if ending is None:
            break
        code, seconds = ending
        wait = left(began, seconds, actor.now)
        if wait > 0:
            return _alive(actor, began, restarts, last, until=wait)
        finished = began + timedelta(seconds=seconds)
        end = _terminated(actor, began, finished, code)
        if not (actor.policy == "Always" or (actor.policy == "OnFailure" and code)):
            return Acting("Failed" if code else "Succeeded", {"terminated": end}, last, restarts)
        restarts, last = restarts + 1, {"terminated": end}
        if restarts > 1:  # k8s: the first restart is immediate
            resume = _resume(actor, end, restarts)
            if resume > 0:  # k8s: the restart count rises when the container restarts
                waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": _back_off(actor, restarts)}}
                return Acting("Running", waiting, last, restarts - 1, wait=resume)
        began = max(finished, actor.now) if restarts > 1 else finished
    return _alive(actor, began, restarts, last)


def _back_off(actor: Actor, restarts: int) -> str:
    metadata = actor.pod["metadata"]
    which = f"{metadata['name']}_{metadata['namespace']}({actor.uid})"
    return told(f"back-off {span(_backoff(restarts))} restarting failed container={{name}} pod={which}")


def _ending(actor: Actor, restarts: int) -> tuple[int, float] | None:
    """Return the exit code and the run time in seconds, or None if the containers do not exit."""
    wishes = actor.wishes
    if wishes.fail in ENDING and actor.is_failing(restarts):
        return (137 if wishes.fail is Fault.OOM_KILLED else 1), wishes.run_for
    if actor.policy == "Always" or wishes.fail is Fault.EVICTED:
        return None
    return 0, wishes.run_for


def _alive(actor: Actor, began: datetime, restarts: int, last: Manifest, until: float | None = None) -> Acting:
    state = {"running": {"startedAt": actor.moments.write(actor.uid, began)}}
    if actor.wishes.fail is Fault.NOT_READY and actor.is_failing(restarts):
        return Acting("Running", state, last, restarts, ready=False, wait=until)
    wait = left(began, actor.wishes.ready_after, actor.now)
    waits = [each for each in (until, wait) if each is not None and each > 0]
    return Acting("Running", state, last, restarts, ready=wait <= 0, wait=min(waits, default=None))


def _terminated(actor: Actor, began: datetime, finished: datetime, code: int) -> dict[str, Any]:
    reason = {0: "Completed", 137: "OOMKilled"}.get(code, "Error")
    return {
        "exitCode": code,
        "reason": reason,
        "message": BY if not code else told(f"container {{name}} failed with exit code {code}"),
        "startedAt": actor.moments.write(actor.uid, began),
        "finishedAt": actor.moments.write(actor.uid, finished),
    }


def _resume(actor: Actor, end: Manifest, restarts: int) -> float:
    return remaining_delay(actor.moments.read(actor.uid, end["finishedAt"]), _backoff(restarts), actor.now)


def _backoff(restarts: int) -> float:
    return float(min(FIRST_BACKOFF * 2 ** min(max(restarts - 2, 0), 10), MOST_BACKOFF))
