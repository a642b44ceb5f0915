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
from datetime import datetime
from typing import Any, Final
from weakref import WeakValueDictionary

from argosy.errors import ArgosyError, TransientError, UserError
from argosy.features.notifications import constants
from argosy.features.notifications.commit_metadata import CommitMetadataReader
from argosy.features.notifications.condition_and_template_evaluation import (
    ConditionResult,
    ConfinedPool,
    evaluate_conditions,
    join_trigger_texts,
    render_notification,
)
from argosy.features.notifications.drift_lookup import load_drift
from argosy.features.notifications.notification_pass_state import DueMessage, NotificationPass
from argosy.features.notifications.receiver_backoff import ReceiverBackoff
from argosy.features.notifications.sent_messages import build_state_key, read_pending, read_state
from argosy.features.notifications.services import MessageDelivery, deliver_in_thread
from argosy.features.notifications.settings import NotificationSettings, list_used_variables, uses_notebook_jobs
from argosy.features.notifications.settings_cache import NotificationSettingsCache, SettingsVersions
from argosy.features.notifications.subscriptions import NotificationDestination, list_destinations
from argosy.http_client.allowed_host_request import DeliveryUnknown
from argosy.kube.controller import ControllerContext, Requeue, Watch, itself
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, NOTEBOOK_JOB, SECRET

log = logging.getLogger(__name__)
TIME_CONDITION_INTERVAL_SECONDS: Final = 30.0  # seconds until a condition that uses time.Now is evaluated again
ABANDONED_CLAIM_SECONDS: Final = 60.0  # seconds after which a claim of another process is abandoned
MAX_REMEMBERED_MESSAGES: Final = 10_000


class NotificationController:
    def __init__(
        self,
        kind: GroupKind,
        pool: Callable[[], ConfinedPool],
        loader: NotificationSettingsCache,
        commits: CommitMetadataReader,
    ) -> None:
        self.kind, self._commits = kind, commits
        self._pool, self._loader = pool, loader
        self._process_id = secrets.token_hex(8)
        self._failed_messages: dict[tuple[ResourceKey, str], SettingsVersions] = {}
        # Messages of this process, and whether they were accepted.
        self._finished_messages: dict[tuple[ResourceKey, str], bool] = {}
        # A lock lives as long as a task holds it or waits for it.
        self._locks: WeakValueDictionary[ResourceKey, asyncio.Lock] = WeakValueDictionary()
        self._receiver_backoff = ReceiverBackoff()

    @property
    def name(self) -> str:
        return f"notifications of {self.kind.kind}s"

    @property
    def watches(self) -> Sequence[Watch]:
        return (
            Watch(self.kind, itself),
            Watch(CONFIG_MAP, _yield_own_key_if_settings, metadata_only=True),
            Watch(SECRET, _yield_own_key_if_settings, metadata_only=True),
        )

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        if key.group_kind == self.kind:
            return await self._reconcile_locked(key, context)
        for object_key in sorted(context.cache.keys(self.kind)):  # new settings affect every object
            try:
                await self._reconcile_locked(object_key, context)
            except ArgosyError as error:
                log.info("cannot send notifications: object=%s error=%s", object_key, error)
        return None

    async def _reconcile_locked(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        """Reconcile one object under its lock, because a settings change also reconciles every object."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            return await self._reconcile_object(key, context)

    async def _reconcile_object(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        manifest = context.cache.get(key)
        if manifest is None or _is_comparison_due(manifest):
            return None
        versions, settings = await self._loader.load_settings(key.namespace, context.cluster, context.cache)
        destinations_by_trigger = self._list_destinations(manifest, settings)
        notification_pass = NotificationPass(manifest, settings, versions, context.clock.now())
        notification_pass.state, notification_pass.pending = read_state(manifest), read_pending(manifest)
        await self._report_abandoned_claims(notification_pass, context)
        if destinations_by_trigger:
            await self._send_due_messages(notification_pass, destinations_by_trigger, context)
        if not notification_pass.is_written():
            await notification_pass.write_result(context.cluster, self._process_id)
        if any(
            "time.Now" in condition.when
            for trigger in destinations_by_trigger
            for condition in settings.triggers[trigger]
        ):
            notification_pass.requeue_delays.append(TIME_CONDITION_INTERVAL_SECONDS)
        return Requeue(min(notification_pass.requeue_delays)) if notification_pass.requeue_delays else None

    def _list_destinations(
        self, manifest: Manifest, settings: NotificationSettings
    ) -> dict[str, list[NotificationDestination]]:
        destinations_by_trigger = list_destinations(manifest, settings)
        is_for_jobs = self.kind == NOTEBOOK_JOB
        return {
            trigger: trigger_destinations
            for trigger, trigger_destinations in destinations_by_trigger.items()
            if trigger in settings.triggers and uses_notebook_jobs(settings.triggers[trigger]) == is_for_jobs
        }

    async def _report_abandoned_claims(self, notification_pass: NotificationPass, context: ControllerContext) -> None:
        """Report abandoned claims of other processes as unclear, because their messages may have been sent."""
        for key, claim in list(notification_pass.pending.items()):
            age = notification_pass.now.timestamp() - float(claim.get("since") or 0)
            was_accepted = self._finished_messages.get((notification_pass.key, key))
            if claim.get("by") != self._process_id and age < ABANDONED_CLAIM_SECONDS:
                notification_pass.requeue_delays.append(ABANDONED_CLAIM_SECONDS - age)
                continue
            del notification_pass.pending[key]
            if was_accepted is not None:  # sent by this process, but the result could not be written
                if not was_accepted:
                    notification_pass.state.pop(key, None)
                continue
            message = (
                "the sending process stopped before it finished; not sent again, check whether the message arrived"
            )
            target = (str(claim.get("trigger")), str(claim.get("to")))
            await notification_pass.record_event(context.cluster, constants.UNCLEAR_REASON, *target, message)

    async def _send_due_messages(
        self,
        notification_pass: NotificationPass,
        destinations_by_trigger: Mapping[str, list[NotificationDestination]],
        context: ControllerContext,
    ) -> None:
        conditions = {trigger: notification_pass.settings.triggers[trigger] for trigger in destinations_by_trigger}
        if any("drift" in list_used_variables(item) for item in conditions.values()):
            notification_pass.drift = await load_drift(notification_pass.manifest, context.cluster)
        arguments = (
            notification_pass.manifest,
            conditions,
            notification_pass.settings,
            notification_pass.drift,
            notification_pass.now,
        )
        notification_pass.commits = await self._fetch_commits(
            notification_pass, "".join(map(str, conditions.values())), context
        )
        results = await evaluate_conditions(self._pool(), *arguments, notification_pass.commits)
        for item in results:
            if item.fault:
                fault = notification_pass.settings.mask_secrets(item.fault)
                log.info(
                    "trigger failed: object=%s trigger=%s error=%s",
                    notification_pass.key,
                    item.trigger,
                    fault,
                )
            for destination in destinations_by_trigger[item.trigger]:
                await self._send_if_new(notification_pass, item, destination, context)

    async def _send_if_new(
        self,
        notification_pass: NotificationPass,
        condition_result: ConditionResult,
        destination: NotificationDestination,
        context: ControllerContext,
    ) -> None:
        if not condition_result.holds:
            # Without oncePer, the next transition sends again; with oncePer, the recorded message stays sent.
            notification_pass.state.pop(
                build_state_key(
                    condition_result.trigger, condition_result.index, condition_result.condition.when, "", destination
                ),
                None,
            )
            return
        key = build_state_key(
            condition_result.trigger,
            condition_result.index,
            condition_result.condition.when,
            condition_result.once_per,
            destination,
        )
        if (
            key in notification_pass.state
            or self._failed_messages.get((notification_pass.key, key)) == notification_pass.versions
        ):
            return
        backoff_arguments = (
            notification_pass.key,
            destination,
            notification_pass.versions,
            context.clock.monotonic(),
        )
        if remaining_seconds := self._receiver_backoff.get_remaining_seconds(*backoff_arguments):
            notification_pass.requeue_delays.append(remaining_seconds)
            return
        await self._send_message(notification_pass, DueMessage(condition_result, destination, key), context)

    async def _send_message(
        self, notification_pass: NotificationPass, due_message: DueMessage, context: ControllerContext
    ) -> None:
        destination_text, trigger = (
            f"{due_message.destination.service}:{due_message.destination.recipient}",
            due_message.condition_result.trigger,
        )
        texts = join_trigger_texts(notification_pass.settings, [due_message.condition_result.condition])
        notification_pass.commits = notification_pass.commits or await self._fetch_commits(
            notification_pass, texts, context
        )
        try:
            delivery = await self._build_delivery(notification_pass, due_message)
        except UserError as error:
            await self._record_failure(notification_pass, due_message, destination_text, error, context)
            return
        notification_pass.state[due_message.state_key] = int(notification_pass.now.timestamp())
        notification_pass.pending[due_message.state_key] = {
            "by": self._process_id,
            "since": notification_pass.now.timestamp(),
            "trigger": trigger,
            "to": destination_text,
        }
        self._finished_messages.pop((notification_pass.key, due_message.state_key), None)
        # Raises Conflict if the object changed; then nothing was sent.
        await notification_pass.write_annotations(context.cluster)
        try:
            await deliver_in_thread(delivery)
            self._record_finished(notification_pass, due_message, is_accepted=True)
        except DeliveryUnknown as error:
            self._record_finished(notification_pass, due_message, is_accepted=True)
            reason = notification_pass.settings.mask_secrets(str(error))
            await notification_pass.record_event(
                context.cluster, constants.UNCLEAR_REASON, trigger, destination_text, reason
            )
        except TransientError as error:
            self._record_finished(notification_pass, due_message, is_accepted=False)
            await self._schedule_retry(notification_pass, due_message, destination_text, error, context)
        except UserError as error:
            self._record_finished(notification_pass, due_message, is_accepted=False)
            self._receiver_backoff.reset(notification_pass.key, due_message.destination)
            await self._record_failure(notification_pass, due_message, destination_text, error, context)
        else:
            first_line = notification_pass.settings.mask_secrets((delivery.message.strip().splitlines() or ["sent"])[0])
            await notification_pass.record_event(
                context.cluster, constants.SENT_REASON, trigger, destination_text, first_line
            )

    async def _fetch_commits(
        self, notification_pass: NotificationPass, texts: str, context: ControllerContext
    ) -> dict[str, Any]:
        return await self._commits.fetch_commits_if_used(
            notification_pass.manifest, texts, notification_pass.versions[0], context.cluster
        )

    async def _build_delivery(self, notification_pass: NotificationPass, due_message: DueMessage) -> MessageDelivery:
        service = notification_pass.settings.services.get(due_message.destination.service)
        if service is None:
            service_name = due_message.destination.service
            config_map = constants.SETTINGS_CONFIG_MAP
            raise UserError(f"service {service_name} not found; add service.<type>.{service_name} to {config_map}")
        template_names = due_message.condition_result.condition.send
        notification = await render_notification(
            self._pool(),
            notification_pass.manifest,
            template_names,
            notification_pass.settings,
            due_message.destination,
            notification_pass.drift,
            notification_pass.now,
            notification_pass.commits,
        )
        uid = str(notification_pass.manifest["metadata"].get("uid") or "")
        idempotency_key = hashlib.sha256(
            f"{uid}\n{due_message.state_key}\n{_get_occurrence_id(notification_pass, due_message)}".encode()
        ).hexdigest()[:32]
        target = (due_message.destination.service, due_message.destination.recipient)
        return MessageDelivery(
            service.kind,
            *target,
            service.options,
            notification,
            idempotency_key,
            notification_pass.now,
            notification_pass.settings.hosts,
        )

    def _record_finished(
        self, notification_pass: NotificationPass, due_message: DueMessage, *, is_accepted: bool
    ) -> None:
        if len(self._finished_messages) > MAX_REMEMBERED_MESSAGES:
            self._finished_messages.clear()
        self._finished_messages[notification_pass.key, due_message.state_key] = is_accepted
        notification_pass.pending.pop(due_message.state_key, None)
        if is_accepted:
            self._receiver_backoff.reset(notification_pass.key, due_message.destination)
        else:
            notification_pass.state.pop(due_message.state_key, None)

    async def _schedule_retry(
        self,
        notification_pass: NotificationPass,
        due_message: DueMessage,
        destination_text: str,
        error: ArgosyError,
        context: ControllerContext,
    ) -> None:
        """Schedule a retry and record each attempt, the only trace of a receiver that is down for long."""
        backoff_arguments = (
            notification_pass.key,
            due_message.destination,
            notification_pass.versions,
            context.clock.monotonic(),
        )
        failures, delay_seconds = self._receiver_backoff.record_failure(*backoff_arguments)
        notification_pass.requeue_delays.append(delay_seconds)
        failures_text = "the first time" if failures == 1 else f"{failures} times in a row"
        reason = notification_pass.settings.mask_secrets(
            f"{error}; failed {failures_text}, again in {delay_seconds:.0f} s"
        )
        await notification_pass.record_event(
            context.cluster, constants.DELAYED_REASON, due_message.condition_result.trigger, destination_text, reason
        )

    async def _record_failure(
        self,
        notification_pass: NotificationPass,
        due_message: DueMessage,
        destination_text: str,
        error: ArgosyError,
        context: ControllerContext,
    ) -> None:
        """Record the failure once, and do not send again until the settings change."""
        if len(self._failed_messages) > MAX_REMEMBERED_MESSAGES:
            self._failed_messages.clear()
        self._failed_messages[notification_pass.key, due_message.state_key] = notification_pass.versions
        reason = notification_pass.settings.mask_secrets(str(error))
        await notification_pass.record_event(
            context.cluster, constants.FAILED_REASON, due_message.condition_result.trigger, destination_text, reason
        )


def _is_comparison_due(manifest: Manifest) -> bool:
    """argo: True if an operation ended after the last comparison: the next one writes the status, with conditions."""
    try:
        finished = datetime.fromisoformat(manifest["status"]["operationState"]["finishedAt"])
        return datetime.fromisoformat(manifest["status"]["reconciledAt"]) < finished
    except (KeyError, TypeError, ValueError):
        return False


def _get_occurrence_id(notification_pass: NotificationPass, due_message: DueMessage) -> str:
    """Return the value that distinguishes one occurrence of a trigger from the next."""
    return due_message.condition_result.once_per or str(
        notification_pass.manifest["metadata"].get("resourceVersion") or ""
    )


def _yield_own_key_if_settings(manifest: Manifest) -> Iterable[ResourceKey]:
    settings = (constants.SETTINGS_CONFIG_MAP, constants.SETTINGS_SECRET, constants.ARGOSY_CONFIG_MAP)
    if manifest["metadata"]["name"] in settings:
        yield key_of(manifest)
