"""Context and result of one trigger execution.

In: an entry, its record. Out: values for the modules that act. Never: acts itself, except for one guarded patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from argosy.annotations import TRIGGERED_BY
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.triggers import permission
from argosy.features.notebooks.triggers.entries import Entry
from argosy.features.notebooks.triggers.permission import Wish
from argosy.features.notebooks.triggers.records import Record
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, annotation, key_of
from argosy.kube.objects.timestamps import written

MANAGER: Final = "notebooks"
MOST_MARKS: Final = 10
SOON, PACE = 0.05, 1.0


@dataclass(frozen=True)
class Acted:
    """Result of a step. `requeue_seconds`: None when done. `fields` are stored before the next step."""

    message: str
    again: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Turn:
    entry: Entry
    job: Job
    record: Record
    mark: str
    plural: str  # plural of the target's kind
    cluster: Cluster
    now: datetime
    has_acted: bool = False  # in this execution

    @property
    def time(self) -> str:
        return written(self.now)

    async def may_patch(self, target: Manifest) -> None:
        key = key_of(target)
        await permission.check(self.job, Wish("patch", key.group, self.plural, key.namespace, key.name), self.cluster)

    def is_marked(self, target: Manifest) -> bool:
        """True if this trigger was already executed on the target, possibly by a process that died before recording
        it.
        """
        return bool(self.record.get("acted")) or self.mark in _marks(target)

    async def patch(self, target: Manifest, changes: Mapping[str, Any], annotations: Mapping[str, str]) -> Manifest:
        """Patch the version that was read, together with the mark, so that nothing is done twice. Raises Conflict.

        Marks of other triggers may push this one out while it waits, so the execution is also recorded in the status.
        """
        marks = [*_marks(target), self.mark][-MOST_MARKS:]
        metadata = {
            "resourceVersion": target["metadata"]["resourceVersion"],
            "annotations": {**annotations, TRIGGERED_BY: " ".join(marks)},
        }
        patched = await self.cluster.patch(key_of(target), {**changes, "metadata": metadata}, manager=MANAGER)
        self.has_acted = True
        return patched


def _marks(target: Manifest) -> list[str]:
    return annotation(target, TRIGGERED_BY).split()


def called(target: Manifest) -> str:
    metadata = target["metadata"]
    return f"{target['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
