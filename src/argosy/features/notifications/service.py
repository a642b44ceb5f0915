"""Client for `argosy notifications`: settings, test messages and history of a cluster.

In: a cluster, optionally settings in files. Out: history rows, rendered messages. Never: sends without --send.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from argosy.cli.application_service_connection import open_service
from argosy.cli.cluster_target import TargetOptions
from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.features.notifications import constants
from argosy.features.notifications.argocd_export import build_export
from argosy.features.notifications.commit_metadata import CommitMetadataReader
from argosy.features.notifications.condition_and_template_evaluation import (
    ConditionResult,
    evaluate_conditions,
    join_trigger_texts,
    render_notification,
)
from argosy.features.notifications.delivery_events import (
    NotificationHistoryRow,
    list_messages_without_event,
    read_history,
)
from argosy.features.notifications.drift_lookup import load_drift
from argosy.features.notifications.services import MessageDelivery, deliver_in_thread
from argosy.features.notifications.settings import (
    NotificationSettings,
    TriggerCondition,
    list_used_variables,
    read_settings,
    uses_notebook_jobs,
)
from argosy.features.notifications.settings_cache import load_settings
from argosy.features.notifications.subscriptions import NotificationDestination, list_destinations
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.isolation import WorkerPool
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, read_manifests
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, EVENT, NOTEBOOK_JOB

__all__ = [
    "NotificationService",
    "TrialMessage",
    "TriggerTrial",
    "build_export",
    "load_notification_service",
    "uses_notebook_jobs",
]
PREVIEW_DESTINATION: Final = NotificationDestination("", "")  # used without subscribers, to show the message anyway


@dataclass(frozen=True)
class TrialMessage:
    destination: NotificationDestination
    notification: Mapping[str, Any]
    fault: str = ""
    is_sent: bool = False


@dataclass(frozen=True)
class TriggerTrial:
    """The result of testing a trigger on an object."""

    trigger: str
    condition_results: tuple[ConditionResult, ...]
    messages: tuple[TrialMessage, ...]


@dataclass(frozen=True)
class NotificationService:
    cluster: Cluster
    where: str
    control: str
    settings: NotificationSettings

    def find_conditions(self, trigger: str) -> tuple[TriggerCondition, ...]:
        error_prefix = f"{constants.SETTINGS_CONFIG_MAP}: trigger.{trigger}: "
        if errors := [problem for problem in self.settings.problems if problem.startswith(error_prefix)]:
            raise UserError(self.settings.mask_secrets(errors[0]))
        return self.settings.triggers[_check_known_name(trigger, self.settings.triggers, "trigger")]

    async def find_object(self, trigger: str, name: str) -> Manifest:
        """Load the Application, or the NotebookValidationJob if the trigger is about jobs."""
        kind = NOTEBOOK_JOB if uses_notebook_jobs(self.find_conditions(trigger)) else APPLICATION
        namespace, _, object_name = name.rpartition("/")
        if kind == APPLICATION or namespace:
            manifest = await self.cluster.get(ResourceKey(*kind, namespace or self.control, object_name))
        else:
            manifests = (await self.cluster.list(kind, fields=f"metadata.name={object_name}")).items
            manifest = manifests[0] if len(manifests) == 1 else None
        if manifest is None:
            raise UserError(f"{kind.kind} {name} not found; write it as NAMESPACE/NAME")
        return manifest

    async def test_trigger(
        self, trigger: str, manifest: Manifest, recipients: Sequence[str], *, should_send: bool
    ) -> TriggerTrial:
        """Test a trigger. With `sends`, send to the recipients in `to` even if the condition is false."""
        now, conditions = datetime.now(UTC), self.find_conditions(trigger)
        drift = await load_drift(manifest, self.cluster) if "drift" in list_used_variables(conditions) else None
        subscribed = list_destinations(manifest, self.settings).get(trigger, [])
        wanted_destinations = [_parse_destination(item) for item in recipients] or subscribed or [PREVIEW_DESTINATION]
        pool, commit_reader = WorkerPool(workers=1), CommitMetadataReader()
        try:
            commits = await commit_reader.fetch_commits_if_used(
                manifest, join_trigger_texts(self.settings, conditions), self.control, self.cluster
            )
            results = await evaluate_conditions(
                pool, manifest, {trigger: conditions}, self.settings, drift, now, commits
            )
            true_results = [item for item in results if item.holds] or results[:1]
            messages = []
            for item in true_results:
                for destination in wanted_destinations:
                    template_names = item.condition.send
                    arguments = (manifest, template_names, destination, drift, now, commits)
                    messages.append(
                        await self._render_and_send_message(
                            pool, *arguments, should_send=should_send, is_trial=bool(recipients) and not should_send
                        )
                    )
        finally:
            commit_reader.close()
            await pool.close()
        return TriggerTrial(trigger, tuple(results), tuple(messages))

    async def _render_and_send_message(
        self,
        pool: WorkerPool,
        manifest: Manifest,
        template_names: Sequence[str],
        destination: NotificationDestination,
        drift: Mapping[str, Any] | None,
        now: datetime,
        commits: Mapping[str, Any],
        *,
        should_send: bool,
        is_trial: bool,  # the service may be missing
    ) -> TrialMessage:
        try:
            notification = await render_notification(
                pool, manifest, template_names, self.settings, destination, drift, now, commits
            )
        except UserError as error:
            return TrialMessage(destination, {}, self.settings.mask_secrets(str(error)))
        masked = self.settings.redactor.redact_strings(notification)
        service = self.settings.services.get(destination.service)
        if destination == PREVIEW_DESTINATION or is_trial or (service is not None and not should_send):
            return TrialMessage(destination, masked)
        if service is None:
            reason = f"service {destination.service} not found in {constants.SETTINGS_CONFIG_MAP}; add it"
            return TrialMessage(destination, masked, reason)
        idempotency_key = f"test-{now.timestamp()}"
        target = (service.kind, destination.service, destination.recipient)
        delivery = MessageDelivery(*target, service.options, notification, idempotency_key, now, self.settings.hosts)
        try:
            await deliver_in_thread(delivery)
        except ArgosyError as error:
            return TrialMessage(destination, masked, self.settings.mask_secrets(str(error)))
        return TrialMessage(destination, masked, is_sent=True)

    async def list_history(self, name: str = "", namespace: str = "") -> list[NotificationHistoryRow]:
        """List messages from Events, which expire after about an hour, and from annotations of the objects."""
        rows = read_history((await self.cluster.list(EVENT, namespace=namespace)).items)
        for kind in (APPLICATION, NOTEBOOK_JOB):
            try:
                rows += list_messages_without_event((await self.cluster.list(kind, namespace=namespace)).items, rows)
            except ClusterError as error:
                if error.code not in (403, 404):
                    raise
        object_name = name.rpartition("/")[2]
        return sorted((row for row in rows if not object_name or row.name == object_name), reverse=True)


async def load_notification_service(service: ApplicationService, files: Sequence[Path] = ()) -> NotificationService:
    settings = (
        _load_settings_from_files(files) if files else await _load_settings(service.control_namespace, service.cluster)
    )
    return NotificationService(service.cluster, service.cluster_name, service.control_namespace, settings)


async def _load_settings(namespace: str, cluster: Cluster) -> NotificationSettings:
    try:
        return await load_settings(namespace, cluster)
    except ClusterError as error:
        raise UserError(f"{namespace}: cannot read the settings ({error}); ask for permission") from error


def _load_settings_from_files(files: Sequence[Path]) -> NotificationSettings:
    """Read settings from files, to test them before they are in the cluster."""
    manifests_by_name: dict[tuple[str, str], Manifest] = {}
    for file in files:
        for manifest in read_manifests(file.read_bytes(), where=str(file)):
            manifests_by_name[str(manifest.get("kind")), str((manifest.get("metadata") or {}).get("name"))] = manifest
    if ("ConfigMap", constants.SETTINGS_CONFIG_MAP) not in manifests_by_name:
        raise UserError(
            f"ConfigMap {constants.SETTINGS_CONFIG_MAP} not found in the files; name a file that contains it"
        )
    keys = (
        ("ConfigMap", constants.SETTINGS_CONFIG_MAP),
        ("Secret", constants.SETTINGS_SECRET),
        ("ConfigMap", constants.ARGOSY_CONFIG_MAP),
    )
    return read_settings(*(manifests_by_name.get(key) for key in keys))


def _check_known_name(name: str, names_known: Mapping[str, Any], noun: str) -> str:
    if name in names_known:
        return name
    similar_names = difflib.get_close_matches(name, names_known, n=1)
    hint = f"did you mean {similar_names[0]}?" if similar_names else f"choose one of: {', '.join(sorted(names_known))}"
    raise UserError(f"{noun} {name} not found; {hint}")


def _parse_destination(text: str) -> NotificationDestination:
    service, _, recipient = text.partition(":")
    return NotificationDestination(service, recipient)


@asynccontextmanager
async def open_notifications(options: TargetOptions, files: Sequence[Path] = ()) -> AsyncIterator[NotificationService]:
    async with open_service(options) as service:
        yield await load_notification_service(service, files)
