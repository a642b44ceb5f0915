"""Simulates the Job controller.

In: the key of a Job. Out: its Pods, its status, its deletion after ttlSecondsAfterFinished. Never: creates a Pod for a
finished or suspended Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from argosy.kube.controller import Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import (
    BY,
    JOB,
    POD,
    is_dying,
    is_played_by_others,
    letters,
    pod_from,
    unmarked,
)
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.job_status import (
    INDEX,
    Outlook,
    condition,
    index_of,
    is_finished,
    is_indexed,
    look,
    next_try,
    status_of,
)
from argosy.sandbox.simulators.job_tally import Tallies
from argosy.sandbox.simulators.pod_counts import pods_of
from argosy.sandbox.simulators.pod_creation import make_pods, remove_pods
from argosy.sandbox.simulators.timestamps import left, moment_of
from argosy.sandbox.simulators.writes import keep_status, patient, remove

MOST_AT_ONCE: Final = 100
REFUSED_SECONDS: Final = 1.0
CONTROLLER: Final = "kubernetes.io/job-controller"


class Jobs:
    name = "simulated-jobs"
    watches = (Watch(JOB, unmarked), Watch(POD, owner(JOB)))

    def __init__(self) -> None:
        self._events = Recorder("job-controller")
        self._tallies = Tallies()

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        job = context.cache.get(key)
        if job is None or is_dying(job) or is_played_by_others(job):
            self._tallies.forget(key)
            return None
        if job["spec"].get("managedBy", CONTROLLER) != CONTROLLER:
            return None  # k8s: another controller manages this Job
        if is_finished(job):
            self._tallies.forget(key)
            return await _clean_up(job, context)
        now, pods = context.clock.now(), pods_of(job, context.cache)
        outlook = look(job, pods, self._tallies.count(job, pods), now)
        wanted = status_of(job, outlook, now)
        if await keep_status(job, wanted, context.cluster):
            await self._events.tell(job, _news(job, wanted), context)
        if outlook.verdict or job["spec"].get("suspend"):
            if not outlook.verdict:
                self._tallies.excuse(job, outlook.active)
            await remove_pods(job, outlook.active, self._events, context)
            return None
        wanted_now = _wanted(job, outlook)
        surplus = list(reversed(outlook.active))[: max(len(outlook.active) - wanted_now, 0)]
        self._tallies.excuse(job, surplus)
        await remove_pods(job, surplus, self._events, context)
        waits = [outlook.deadline]
        if (wait := next_try(job, outlook, pods, now)) > 0:
            waits.append(wait)
        elif await _fill(job, outlook, wanted_now, pods, self._events, context):
            waits.append(REFUSED_SECONDS)
        return Requeue(min(each for each in waits if each is not None)) if any(waits) else None


async def _clean_up(job: Manifest, context: Context) -> Requeue | None:
    """Delete a finished Job after `ttlSecondsAfterFinished`."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None:
        return None
    ended = condition(job, "Complete") or condition(job, "Failed")
    wait = left(moment_of(ended["lastTransitionTime"]), float(seconds), context.clock.now())
    if wait > 0:
        return Requeue(wait)
    await remove(job, context.cluster)
    return None


def _news(job: Manifest, wanted: dict[str, Any]) -> Iterator[Happening]:
    """Yield an event for each new condition."""
    known = {(each["type"], each["status"]) for each in (job.get("status") or {}).get("conditions") or ()}
    for each in wanted["conditions"] or ():
        if (each["type"], each["status"]) in known:
            continue
        message = str(each["message"]).removesuffix(f" ({BY})")
        if each["type"] == "Complete":
            yield Happening("Completed", "Job completed")
        elif each["type"] == "Failed":
            yield Happening(each["reason"], message, is_warning=True)
        elif each["type"] == "Suspended":
            yield Happening("Suspended" if each["status"] == "True" else "Resumed", message)


def _wanted(job: Manifest, outlook: Outlook) -> int:
    """Return how many Pods should run: parallelism, but not more than the remaining completions."""
    completions, wanted = job["spec"].get("completions"), int(job["spec"].get("parallelism", 1))
    if completions is not None:
        return min(wanted, int(completions) - outlook.succeeded)
    # k8s: without completions, the first Pod that succeeds ends the work
    return min(wanted, len(outlook.active)) if outlook.succeeded else wanted


async def _fill(
    job: Manifest, outlook: Outlook, wanted: int, pods: Sequence[Manifest], recorder: Recorder, context: Context
) -> str:
    """Create the missing Pods; return why they cannot be created, or an empty string."""
    # k8s: a terminating Pod is replaced at once, unless podReplacementPolicy is Failed
    ending = len(outlook.dying) if job["spec"].get("podReplacementPolicy") == "Failed" else 0
    missing = min(wanted - len(outlook.active) - ending, MOST_AT_ONCE)
    if missing <= 0:
        return ""
    made = (_indexed if is_indexed(job) else _plain)(job, outlook, pods)
    return await make_pods(job, list(islice(made, missing)), recorder, context)


def _plain(job: Manifest, outlook: Outlook, pods: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield Pods with deterministic names, so that a Pod the cache does not show yet is not created twice."""
    metadata = job["metadata"]
    taken = {str(each["metadata"]["name"]) for each in pods}
    for number in range(len(pods) + MOST_AT_ONCE):
        name = f"{metadata['name'][:57]}-{letters(metadata['uid'] + '/' + str(number), 5)}"
        if name not in taken:
            yield pod_from(job["spec"]["template"], job, name)


def _indexed(job: Manifest, outlook: Outlook, pods: Sequence[Manifest]) -> Iterator[Manifest]:
    metadata = job["metadata"]
    working = {index_of(each) for each in (*outlook.active, *outlook.dying)}
    for index in range(int(job["spec"].get("completions") or 0)):
        if index in outlook.done or index in working:
            continue
        tries = sum(1 for each in pods if index_of(each) == index)
        mark = letters(f"{metadata['uid']}/{index}/{tries}", 5)
        pod = pod_from(_numbered(job["spec"]["template"], index), job, f"{metadata['name'][:50]}-{index}-{mark}")
        pod["metadata"]["labels"] = {**pod["metadata"]["labels"], INDEX: str(index)}
        pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), INDEX: str(index)}
        yield pod


def _numbered(template: Manifest, index: int) -> Manifest:
    number = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    containers: list[dict[str, Any]] = [
        {**each, "env": [*(each.get("env") or ()), number]} for each in template["spec"]["containers"]
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}
