"""One trigger's turn: what is known while it is carried out, and what may come of it.

In: an entry, its record. Out: values for the parts that act. Never: acts itself, but for one guarded patch.
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
    """`again` in so many seconds; None: it is done. `fields` are added to the record before anything else is done."""

    message: str
    again: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Turn:
    entry: Entry
    job: Job
    record: Record
    mark: str
    plural: str  # of the target's kind
    cluster: Cluster
    now: datetime
    has_acted: bool = False  # in this very turn

    @property
    def time(self) -> str:
        return written(self.now)

    async def may_patch(self, target: Manifest) -> None:
        key = key_of(target)
        await permission.check(
            self.job, Wish("patch", key.group, self.plural, key.namespace, key.name), self.cluster
        )

    def is_marked(self, target: Manifest) -> bool:
        """Whether this very trigger was carried out on it, if by a process that could not say so any more."""
        return bool(self.record.get("acted")) or self.mark in _marks(target)

    async def patch(self, target: Manifest, changes: Mapping[str, Any], annotations: Mapping[str, str]) -> Manifest:
        """Only over what was read, and with the mark, so that nothing is done twice. Raises Conflict.

        Marks of others may push it out while its end is waited for: so that it was done is recorded too.
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
