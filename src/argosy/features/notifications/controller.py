"""Notification controller: sends the due messages of an object, each one at most once.

In: the key of an Application or a NotebookValidationJob. Out: messages, and annotations that record them. Never: sends
before the claim is written; resends a message that may have been sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from weakref import WeakValueDictionary

from argosy.errors import ArgosyError, Conflict, TransientError, UserError
from argosy.features.notifications import names
from argosy.features.notifications.commit_metadata import Commits
from argosy.features.notifications.drift_lookup import look_for_drift
from argosy.features.notifications.events import tell
from argosy.features.notifications.messages import Confined, Drift, Judged, compose, judge_all, texts_of
from argosy.features.notifications.receiver_backoff import Patience
from argosy.features.notifications.sent_messages import annotations_for, read_pending, read_state, state_key
from argosy.features.notifications.services import Delivery, deliver
from argosy.features.notifications.settings import Settings, asks_of_jobs, names_used
from argosy.features.notifications.settings_cache import Loader, Versions
from argosy.features.notifications.subscriptions import Destination, destinations
from argosy.http_client.checked_request import Unanswered
from argosy.kube.controller import Context, Requeue, Watch, itself
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
LOOK_AGAIN: Final = 30.0  # seconds until a condition that uses time.Now is evaluated again
STRANGE: Final = 60.0  # seconds after which a claim of another process is abandoned
MOST_GIVEN_UP: Final = 10_000


@dataclass(frozen=True)
class Due:
    judged: Judged
    destination: Destination
    state: str  # key in the state annotation


@dataclass
class Round:
    """State of one reconciliation of one object, including changes that are not written yet."""

    manifest: Manifest
    settings: Settings
    versions: Versions
    now: datetime
    drift: Drift = None
    commits: dict[str, Any] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)  # seconds until the object must be reconciled again

    def is_written(self) -> bool:
        return read_state(self.manifest) == self.state and read_pending(self.manifest) == self.pending


class Notifier:
    def __init__(self, kind: GroupKind, pool: Callable[[], Confined], loader: Loader, commits: Commits) -> None:
        self.kind, self._commits = kind, commits
        self._pool, self._loader = pool, loader
        self._me = secrets.token_hex(8)
        self._given_up: dict[tuple[ResourceKey, str], Versions] = {}
        self._ended: dict[
            tuple[ResourceKey, str], bool
        ] = {}  # messages of this process, and whether they were accepted
        # A lock lives as long as a task holds it or waits for it.
        self._turns: WeakValueDictionary[ResourceKey, asyncio.Lock] = WeakValueDictionary()
        self._patience = Patience()

    @property
    def name(self) -> str:
        return f"notifications of {self.kind.kind}s"

    @property
    def watches(self) -> Sequence[Watch]:
        return (
            Watch(self.kind, itself),
            Watch(names.CONFIG_MAP, _settings_only, metadata_only=True),
            Watch(names.SECRET, _settings_only, metadata_only=True),
        )

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        if key.group_kind == self.kind:
            return await self._notify(key, context)
        for each in sorted(context.cache.keys(self.kind)):  # new settings affect every object
            try:
                await self._notify(each, context)
            except ArgosyError as error:
                log.info("cannot send notifications: object=%s error=%s", each, error)
        return None

    async def _notify(self, key: ResourceKey, context: Context) -> Requeue | None:
        """Reconcile one object under its lock, because a settings change also reconciles every object."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            return await self._turn(key, context)

    async def _turn(self, key: ResourceKey, context: Context) -> Requeue | None:
        manifest = context.cache.get(key)
        if manifest is None:
            return None
        versions, settings = await self._loader.settings(key.namespace, context.cluster, context.cache)
        wanted = self._wanted(manifest, settings)
        turn = Round(manifest, settings, versions, context.clock.now())
        turn.state, turn.pending = read_state(manifest), read_pending(manifest)
        await self._settle_strangers(turn, context)
        if wanted:
            await self._send_due(turn, wanted, context)
        if not turn.is_written():
            await self._conclude(turn, context)
        if any("time.Now" in each.when for trigger in wanted for each in settings.triggers[trigger]):
            turn.waits.append(LOOK_AGAIN)
        return Requeue(min(turn.waits)) if turn.waits else None

    def _wanted(self, manifest: Manifest, settings: Settings) -> dict[str, list[Destination]]:
        found = destinations(manifest, settings)
        of_jobs = self.kind == names.JOB
        return {
            trigger: those
            for trigger, those in found.items()
            if trigger in settings.triggers and asks_of_jobs(settings.triggers[trigger]) == of_jobs
        }

    async def _settle_strangers(self, turn: Round, context: Context) -> None:
        """Report abandoned claims of other processes as unclear, because their messages may have been sent."""
        for key, each in list(turn.pending.items()):
            age = turn.now.timestamp() - float(each.get("since") or 0)
            ended = self._ended.get((key_of(turn.manifest), key))
            if each.get("by") != self._me and age < STRANGE:
                turn.waits.append(STRANGE - age)
                continue
            del turn.pending[key]
            if ended is not None:  # sent by this process, but the result could not be written
                if not ended:
                    turn.state.pop(key, None)
                continue
            what = "the sending process stopped before it finished; not sent again, check whether the message arrived"
            where = (str(each.get("trigger")), str(each.get("to")))
            await tell(context.cluster, turn.manifest, names.UNCLEAR, *where, what, turn.now)

    async def _send_due(self, turn: Round, wanted: Mapping[str, list[Destination]], context: Context) -> None:
        conditions = {trigger: turn.settings.triggers[trigger] for trigger in wanted}
        if any("drift" in names_used(each) for each in conditions.values()):
            turn.drift = await look_for_drift(turn.manifest, context.cluster)
        asked = (turn.manifest, conditions, turn.settings, turn.drift, turn.now)
        turn.commits = await self._known_commits(turn, "".join(map(str, conditions.values())), context)
        judged = await judge_all(self._pool(), *asked, turn.commits)
        for each in judged:
            if each.fault:
                fault = turn.settings.masked(each.fault)
                log.info("trigger failed: object=%s trigger=%s error=%s", key_of(turn.manifest), each.trigger, fault)
            for destination in wanted[each.trigger]:
                await self._consider(turn, each, destination, context)

    async def _consider(self, turn: Round, judged: Judged, destination: Destination, context: Context) -> None:
        if not judged.holds:
            # Without oncePer, the next transition sends again; with oncePer, the recorded message stays sent.
            turn.state.pop(state_key(judged.trigger, judged.place, judged.condition.when, "", destination), None)
            return
        key = state_key(judged.trigger, judged.place, judged.condition.when, judged.once_per, destination)
        if key in turn.state or self._given_up.get((key_of(turn.manifest), key)) == turn.versions:
            return
        since = (key_of(turn.manifest), destination, turn.versions, context.clock.monotonic())
        if left := self._patience.left(*since):
            turn.waits.append(left)
            return
        await self._send(turn, Due(judged, destination, key), context)

    async def _send(self, turn: Round, due: Due, context: Context) -> None:
        to, trigger = f"{due.destination.service}:{due.destination.recipient}", due.judged.trigger
        texts = texts_of(turn.settings, [due.judged.condition])
        turn.commits = turn.commits or await self._known_commits(turn, texts, context)
        try:
            delivery = await self._composed(turn, due)
        except UserError as error:
            await self._give_up(turn, due, to, error, context)
            return
        turn.state[due.state] = int(turn.now.timestamp())
        turn.pending[due.state] = {"by": self._me, "since": turn.now.timestamp(), "trigger": trigger, "to": to}
        self._ended.pop((key_of(turn.manifest), due.state), None)
        await self._write(turn, context)  # raises Conflict if the object changed: then nothing was sent
        try:
            await asyncio.to_thread(deliver, delivery)
            self._end(turn, due, is_taken=True)
        except Unanswered as error:
            self._end(turn, due, is_taken=True)
            why = turn.settings.masked(str(error))
            await tell(context.cluster, turn.manifest, names.UNCLEAR, trigger, to, why, turn.now)
        except TransientError as error:
            self._end(turn, due, is_taken=False)
            await self._put_off(turn, due, to, error, context)
        except UserError as error:
            self._end(turn, due, is_taken=False)
            self._patience.answered(key_of(turn.manifest), due.destination)
            await self._give_up(turn, due, to, error, context)
        else:
            said = turn.settings.masked((delivery.message.strip().splitlines() or ["sent"])[0])
            await tell(context.cluster, turn.manifest, names.SENT, trigger, to, said, turn.now)

    async def _known_commits(self, turn: Round, texts: str, context: Context) -> dict[str, Any]:
        return await self._commits.known(turn.manifest, texts, turn.versions[0], context.cluster)

    async def _composed(self, turn: Round, due: Due) -> Delivery:
        service = turn.settings.services.get(due.destination.service)
        if service is None:
            which = due.destination.service
            raise UserError(f"service {which} not found; add service.<type>.{which} to {names.SETTINGS}")
        sent = due.judged.condition.send
        said = await compose(
            self._pool(), turn.manifest, sent, turn.settings, due.destination, turn.drift, turn.now, turn.commits
        )
        uid = str(turn.manifest["metadata"].get("uid") or "")
        mark = hashlib.sha256(f"{uid}\n{due.state}\n{_transition(turn, due)}".encode()).hexdigest()[:32]
        where = (due.destination.service, due.destination.recipient)
        return Delivery(service.kind, *where, service.options, said, mark, turn.now, turn.settings.hosts)

    def _end(self, turn: Round, due: Due, *, is_taken: bool) -> None:
        if len(self._ended) > MOST_GIVEN_UP:
            self._ended.clear()
        self._ended[key_of(turn.manifest), due.state] = is_taken
        turn.pending.pop(due.state, None)
        if is_taken:
            self._patience.answered(key_of(turn.manifest), due.destination)
        else:
            turn.state.pop(due.state, None)

    async def _put_off(self, turn: Round, due: Due, to: str, error: ArgosyError, context: Context) -> None:
        """Schedule a retry and record each attempt, the only trace of a receiver that is down for long."""
        asked = (key_of(turn.manifest), due.destination, turn.versions, context.clock.monotonic())
        failures, wait = self._patience.failed(*asked)
        turn.waits.append(wait)
        times = "the first time" if failures == 1 else f"{failures} times in a row"
        why = turn.settings.masked(f"{error}; failed {times}, again in {wait:.0f} s")
        await tell(context.cluster, turn.manifest, names.DELAYED, due.judged.trigger, to, why, turn.now)

    async def _give_up(self, turn: Round, due: Due, to: str, error: ArgosyError, context: Context) -> None:
        """Record the failure once, and do not send again until the settings change."""
        if len(self._given_up) > MOST_GIVEN_UP:
            self._given_up.clear()
        self._given_up[key_of(turn.manifest), due.state] = turn.versions
        why = turn.settings.masked(str(error))
        await tell(context.cluster, turn.manifest, names.FAILED, due.judged.trigger, to, why, turn.now)

    async def _write(self, turn: Round, context: Context) -> None:
        """Write the annotations with resourceVersion, because a concurrent writer may have sent the same message."""
        version = turn.manifest["metadata"].get("resourceVersion")
        patch = {"metadata": {"annotations": annotations_for(turn.state, turn.pending), "resourceVersion": version}}
        turn.manifest = await context.cluster.patch(key_of(turn.manifest), patch, manager=names.COMPONENT)

    async def _conclude(self, turn: Round, context: Context) -> None:
        """Write the result, and rebase it on unrelated concurrent changes. A new claim is never rebased."""
        for _ in range(4):
            try:
                return await self._write(turn, context)
            except Conflict:
                if not await self._follow(turn, context):
                    raise
        return await self._write(turn, context)

    async def _follow(self, turn: Round, context: Context) -> bool:
        """Reload the object; return True if others did not change its notification annotations.

        A claim of this process keeps others from sending. Without a claim, another process may have sent the same
        message and removed its record after the object recovered, so the object must be evaluated again.
        """
        if all(each.get("by") != self._me for each in read_pending(turn.manifest).values()):
            return False
        newest = await context.cluster.get(key_of(turn.manifest))
        if newest is None:
            return False
        if (read_state(newest), read_pending(newest)) != (read_state(turn.manifest), read_pending(turn.manifest)):
            return False
        turn.manifest = newest
        return True


def _transition(turn: Round, due: Due) -> str:
    """Return the value that distinguishes one occurrence of a trigger from the next."""
    return due.judged.once_per or str(turn.manifest["metadata"].get("resourceVersion") or "")


def _settings_only(manifest: Manifest) -> Iterable[ResourceKey]:
    if manifest["metadata"]["name"] in (names.SETTINGS, names.SECRETS, names.OWN_SETTINGS):
        yield key_of(manifest)
