"""Client for `argosy notifications`: settings, test messages and history of a cluster.

In: a cluster, optionally settings in files. Out: history rows, rendered messages. Never: sends without --send.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from argosy.cli.connection import open_desk
from argosy.cli.target import TargetOptions
from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.features.notifications import names
from argosy.features.notifications.argocd_export import exported
from argosy.features.notifications.commit_metadata import Commits
from argosy.features.notifications.drift_lookup import look_for_drift
from argosy.features.notifications.events import Told, history, noted
from argosy.features.notifications.messages import Judged, compose, judge_all, texts_of
from argosy.features.notifications.services import Delivery, deliver
from argosy.features.notifications.settings import Condition, Settings, asks_of_jobs, names_used, read_settings
from argosy.features.notifications.settings_cache import load_settings
from argosy.features.notifications.subscriptions import Destination, destinations
from argosy.gitops.application_client.client import Desk
from argosy.isolation import Pool
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, read_manifests

__all__ = ["Message", "NotificationDesk", "Trial", "asks_of_jobs", "exported", "notification_desk"]
EVENT: Final = GroupKind("", "Event")
PREVIEW: Final = Destination("", "")  # used without subscribers, to show the message anyway


@dataclass(frozen=True)
class Message:
    destination: Destination
    notification: Mapping[str, Any]
    fault: str = ""
    is_sent: bool = False


@dataclass(frozen=True)
class Trial:
    """The result of testing a trigger on an object."""

    trigger: str
    judged: tuple[Judged, ...]
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class NotificationDesk:
    cluster: Cluster
    where: str
    control: str
    settings: Settings

    def conditions(self, trigger: str) -> tuple[Condition, ...]:
        wrong = f"{names.SETTINGS}: trigger.{trigger}: "
        if unreadable := [each for each in self.settings.problems if each.startswith(wrong)]:
            raise UserError(self.settings.masked(unreadable[0]))
        return self.settings.triggers[_known(trigger, self.settings.triggers, "trigger")]

    async def find(self, trigger: str, name: str) -> Manifest:
        """Load the Application, or the NotebookValidationJob if the trigger is about jobs."""
        kind = names.JOB if asks_of_jobs(self.conditions(trigger)) else names.APPLICATION
        namespace, _, plain = name.rpartition("/")
        if kind == names.APPLICATION or namespace:
            found = await self.cluster.get(ResourceKey(*kind, namespace or self.control, plain))
        else:
            all_of_them = (await self.cluster.list(kind, fields=f"metadata.name={plain}")).items
            found = all_of_them[0] if len(all_of_them) == 1 else None
        if found is None:
            raise UserError(f"{kind.kind} {name} not found; write it as NAMESPACE/NAME")
        return found

    async def trial(self, trigger: str, manifest: Manifest, to: Sequence[str], *, sends: bool) -> Trial:
        """Test a trigger. With `sends`, send to the recipients in `to` even if the condition is false."""
        now, conditions = datetime.now(UTC), self.conditions(trigger)
        drift = await look_for_drift(manifest, self.cluster) if "drift" in names_used(conditions) else None
        subscribed = destinations(manifest, self.settings).get(trigger, [])
        wanted = [_destination(each) for each in to] or subscribed or [PREVIEW]
        pool, looked = Pool(workers=1), Commits()
        try:
            commits = await looked.known(manifest, texts_of(self.settings, conditions), self.control, self.cluster)
            judged = await judge_all(pool, manifest, {trigger: conditions}, self.settings, drift, now, commits)
            holding = [each for each in judged if each.holds] or judged[:1]
            messages = []
            for each in holding:
                for destination in wanted:
                    sent = each.condition.send
                    said = (manifest, sent, destination, drift, now, commits)
                    messages.append(await self._message(pool, *said, sends=sends, is_trial=bool(to) and not sends))
        finally:
            looked.close()
            await pool.close()
        return Trial(trigger, tuple(judged), tuple(messages))

    async def _message(
        self,
        pool: Pool,
        manifest: Manifest,
        sent: Sequence[str],
        destination: Destination,
        drift: Mapping[str, Any] | None,
        now: datetime,
        commits: Mapping[str, Any],
        *,
        sends: bool,
        is_trial: bool,  # the service may be missing
    ) -> Message:
        try:
            said = await compose(pool, manifest, sent, self.settings, destination, drift, now, commits)
        except UserError as error:
            return Message(destination, {}, self.settings.masked(str(error)))
        service = self.settings.services.get(destination.service)
        if destination == PREVIEW or is_trial or (service is not None and not sends):
            return Message(destination, _masked(said, self.settings))
        if service is None:
            why = f"service {destination.service} not found in {names.SETTINGS}; add it"
            return Message(destination, _masked(said, self.settings), why)
        mark = f"test-{now.timestamp()}"
        where = (service.kind, destination.service, destination.recipient)
        delivery = Delivery(*where, service.options, said, mark, now, self.settings.hosts)
        try:
            await asyncio.to_thread(deliver, delivery)
        except ArgosyError as error:
            return Message(destination, _masked(said, self.settings), self.settings.masked(str(error)))
        return Message(destination, _masked(said, self.settings), is_sent=True)

    async def history(self, name: str = "", namespace: str = "") -> list[Told]:
        """List messages from Events, which expire after about an hour, and from annotations of the objects."""
        rows = history((await self.cluster.list(EVENT, namespace=namespace)).items)
        for kind in (names.APPLICATION, names.JOB):
            try:
                rows += noted((await self.cluster.list(kind, namespace=namespace)).items, rows)
            except ClusterError as error:
                if error.code not in (403, 404):
                    raise
        wanted = name.rpartition("/")[2]
        return sorted((each for each in rows if not wanted or each.name == wanted), reverse=True)


async def notification_desk(desk: Desk, files: Sequence[Path] = ()) -> NotificationDesk:
    settings = _from_files(files) if files else await _loaded(desk.control, desk.cluster)
    return NotificationDesk(desk.cluster, desk.where, desk.control, settings)


async def _loaded(control: str, cluster: Cluster) -> Settings:
    try:
        return await load_settings(control, cluster)
    except ClusterError as error:
        raise UserError(f"{control}: cannot read the settings ({error}); ask for permission") from error


def _from_files(files: Sequence[Path]) -> Settings:
    """Read settings from files, to test them before they are in the cluster."""
    found: dict[tuple[str, str], Manifest] = {}
    for file in files:
        for each in read_manifests(file.read_bytes(), where=str(file)):
            found[str(each.get("kind")), str((each.get("metadata") or {}).get("name"))] = each
    if ("ConfigMap", names.SETTINGS) not in found:
        raise UserError(f"ConfigMap {names.SETTINGS} not found in the files; name a file that contains it")
    keys = (("ConfigMap", names.SETTINGS), ("Secret", names.SECRETS), ("ConfigMap", names.OWN_SETTINGS))
    return read_settings(*(found.get(key) for key in keys))


def _known(name: str, those: Mapping[str, Any], what: str) -> str:
    if name in those:
        return name
    near = difflib.get_close_matches(name, those, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of: {', '.join(sorted(those))}"
    raise UserError(f"{what} {name} not found; {hint}")


def _destination(text: str) -> Destination:
    service, _, recipient = text.partition(":")
    return Destination(service, recipient)


def _masked(value: Any, settings: Settings) -> Any:
    if isinstance(value, dict):
        return {name: _masked(each, settings) for name, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, settings) for each in value]
    return settings.masked(value) if isinstance(value, str) else value


@asynccontextmanager
async def open_notifications(options: TargetOptions, files: Sequence[Path] = ()) -> AsyncIterator[NotificationDesk]:
    async with open_desk(options) as desk:
        yield await notification_desk(desk, files)
