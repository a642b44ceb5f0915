"""Finds the line that wrote a changed field. In: the entry of the kustomization that was processed. Out: FieldAuthors.

Never: used unless origins are requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.application.step_results import Origin
from argosy.gitops.render.origins import KEYS, Guide
from argosy.kube.objects.field_lines import Marked

Place = Callable[[int], Origin]
"""Returns the origin of a line in the current file."""
Tree = Mapping[str, Any]
"""Origins in nested maps, by field name."""
IDENTITY: Final = ("apiVersion", "kind", "name", "namespace")
_ENTRY: Final = ("newTag", "digest", "newName", "tagSuffix", "count")


def line_of_entry(entry: Marked) -> int:
    """Return the line to edit for an image or a replica count."""
    fields = (entry.field(name) for name in _ENTRY)
    return next((each.line for each in fields if each is not None), entry.line)


class EntriesGuide(Guide):
    """Labels or annotations, each with its own line."""

    __slots__ = ("_entries",)

    def __init__(self, origin: Origin, entries: Mapping[str, Origin]) -> None:
        super().__init__(origin)
        self._entries = entries

    def field(self, name: str, value: Any) -> Guide:
        return Guide(self._entries[name]) if type(value) is str and name in self._entries else self


class TreeGuide(Guide):
    """Fields with known origins."""

    __slots__ = ("_tree",)

    def __init__(self, origin: Origin, tree: Tree) -> None:
        super().__init__(origin)
        self._tree = tree

    def field(self, name: str, value: Any) -> Guide:
        found = self._tree.get(name)
        if isinstance(found, Origin):
            return Guide(found)
        return TreeGuide(self.origin, found) if found else Guide(self.origin)


class PatchGuide(Guide):
    """A strategic merge patch, or the value of a JSON patch operation. Identifying names are not attributed to the
    patch.
    """

    __slots__ = ("_marked", "_names", "_patch", "_place")

    def __init__(self, patch: Any, marked: Marked, place: Place, line: int = 0, names: Sequence[str] = ()) -> None:
        super().__init__(place(line or marked.line), is_exact=True)
        self._names = names
        self._patch = patch
        self._marked = marked
        self._place = place

    def field(self, name: str, value: Any) -> Guide:
        marked = self._marked.field(name)
        if type(self._patch) is not dict or name not in self._patch or marked is None:
            return Guide(self.origin)
        if name in self._names and type(value) is not dict:
            return Guide(self._place(marked.line))
        return PatchGuide(self._patch[name], marked, self._place, names=self._names if name == "metadata" else ())

    def element(self, place: int, value: Any) -> Guide:
        below = self._marked.below
        if type(self._patch) is list and isinstance(below, list):
            for patch, marked in zip(self._patch, below):
                if _covers(value, patch):
                    return PatchGuide(patch, marked, self._place, names=KEYS)
        return Guide(self.origin)


def _covers(value: Any, patch: Any) -> bool:
    """True if a list element has everything that an element of the patch sets."""
    if type(patch) is dict:
        asked = {name: each for name, each in patch.items() if each is not None and not name.startswith("$")}
        return type(value) is dict and all(name in value and _covers(value[name], each) for name, each in asked.items())
    return type(value) is list if type(patch) is list else type(value) is type(patch) and bool(value == patch)


class _Operation:
    """A JSON patch operation, with the rest of its path below the current author."""

    __slots__ = ("line", "marked", "steps", "value")

    def __init__(self, steps: Sequence[str], value: Any, marked: Marked | None, line: int) -> None:
        self.steps = steps
        self.value = value
        self.marked = marked
        self.line = line

    def below(self) -> _Operation:
        return _Operation(self.steps[1:], self.value, self.marked, self.line)


def operations_guide(operations: Sequence[Any], marked: Marked, place: Place) -> Guide:
    found = []
    for each, mark in zip(operations, marked.below if isinstance(marked.below, list) else []):
        if isinstance(each, dict) and each.get("op") not in ("remove", "test"):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in str(each.get("path") or "").split("/")[1:]]
            value = mark.field("value")
            # The line to edit is that of the value; `copy` and `move` have none.
            found.append(_Operation(steps, each.get("value"), value, (value or mark).line))
    return OperationsGuide(found, place, marked.line)


class OperationsGuide(Guide):
    """Operations of a JSON patch: the last one that sets a field wrote it."""

    __slots__ = ("_operations", "_place")

    def __init__(self, operations: Sequence[_Operation], place: Place, line: int) -> None:
        super().__init__(place(operations[-1].line if operations else line), is_exact=True)
        self._operations = operations
        self._place = place

    def field(self, name: str, value: Any) -> Guide:
        return self._of([each for each in self._operations if each.steps[:1] == [name]])

    def element(self, place: int, value: Any) -> Guide:
        # Indexes shift while operations run: an operation with an equal value is more certain than one with this index.
        sets = [each for each in self._operations if len(each.steps) == 1 and each.value == value]
        deep = [each for each in self._operations if len(each.steps) > 1 and each.steps[0] == str(place)]
        return self._of([*deep, *sets])

    def _of(self, operations: Sequence[_Operation]) -> Guide:
        if not operations:
            return Guide(self.origin)
        last = operations[-1]
        if len(last.steps) > 1:
            return OperationsGuide([each.below() for each in operations if len(each.steps) > 1], self._place, last.line)
        return (
            PatchGuide(last.value, last.marked, self._place, last.line)
            if last.marked
            else Guide(self._place(last.line))
        )
