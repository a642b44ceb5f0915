"""Context and result of one trigger execution.

In: an entry, its record. Out: values for the modules that act. Never: acts itself, except for one guarded patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from argosy.annotations import TRIGGERED_BY
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.on_success_triggers import service_account_permission_check
from argosy.features.notebooks.on_success_triggers.records import TriggerRecord
from argosy.features.notebooks.on_success_triggers.service_account_permission_check import ResourceAccess
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import TriggerEntry
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp

MANAGER: Final = "notebooks"
MAX_MARKS: Final = 10
SHORT_DELAY_SECONDS, POLL_INTERVAL_SECONDS = 0.05, 1.0


@dataclass(frozen=True)
class TriggerStep:
    """Result of a step. `requeue_seconds`: None when done. `fields` are stored before the next step."""

    message: str
    requeue_seconds: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class TriggerExecution:
    entry: TriggerEntry
    job: NotebookJob
    record: TriggerRecord
    trigger_id: str
    plural: str  # plural of the target's kind
    cluster: Cluster
    now: datetime
    has_acted: bool = False  # in this execution

    @property
    def time(self) -> str:
        return format_timestamp(self.now)

    async def check_patch_permission(self, target: Manifest) -> None:
        key = key_of(target)
        await service_account_permission_check.check_permission(
            self.job, ResourceAccess("patch", key.group, self.plural, key.namespace, key.name), self.cluster
        )

    def was_executed_on(self, target: Manifest) -> bool:
        """True if this trigger was already executed on the target, possibly by a process that died before recording
        it.
        """
        return bool(self.record.get("acted")) or self.trigger_id in _read_marks(target)

    async def patch(self, target: Manifest, changes: Mapping[str, Any], annotations: Mapping[str, str]) -> Manifest:
        """Patch the version that was read, together with the mark, so that nothing is done twice. Raises Conflict.

        Marks of other triggers may push this one out while it waits, so the execution is also recorded in the status.
        """
        marks = [*_read_marks(target), self.trigger_id][-MAX_MARKS:]
        metadata = {
            "resourceVersion": target["metadata"]["resourceVersion"],
            "annotations": {**annotations, TRIGGERED_BY: " ".join(marks)},
        }
        patched = await self.cluster.patch(key_of(target), {**changes, "metadata": metadata}, manager=MANAGER)
        self.has_acted = True
        return patched


def _read_marks(target: Manifest) -> list[str]:
    return get_annotation(target, TRIGGERED_BY).split()


def describe_target(target: Manifest) -> str:
    metadata = target["metadata"]
    return f"{target['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
