"""Finds the line that wrote a changed field. In: the entry of the kustomization that was processed. Out: FieldAuthors.

Never: used unless origins are requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.application.step_results import FieldOrigin
from argosy.gitops.render.field_origins import MERGE_KEY_FIELDS, FieldAuthor
from argosy.kube.objects.field_lines import LocatedNode

OriginOfLine = Callable[[int], FieldOrigin]
"""Returns the origin of a line in the current file."""
OriginMap = Mapping[str, Any]
"""Origins in nested maps, by field name."""
IDENTITY_FIELDS: Final = ("apiVersion", "kind", "name", "namespace")
_EDITABLE_FIELDS: Final = ("newTag", "digest", "newName", "tagSuffix", "count")


def find_editable_line(entry: LocatedNode) -> int:
    """Return the line to edit for an image or a replica count."""
    fields = (entry.find_field(name) for name in _EDITABLE_FIELDS)
    return next((field.line for field in fields if field is not None), entry.line)


class EntriesAuthor(FieldAuthor):
    """Labels or annotations, each with its own line."""

    __slots__ = ("_entries",)

    def __init__(self, origin: FieldOrigin, entries: Mapping[str, FieldOrigin]) -> None:
        super().__init__(origin)
        self._entries = entries

    def for_field(self, name: str, value: Any) -> FieldAuthor:
        return FieldAuthor(self._entries[name]) if type(value) is str and name in self._entries else self


class OriginMapAuthor(FieldAuthor):
    """Fields with known origins."""

    __slots__ = ("_tree",)

    def __init__(self, origin: FieldOrigin, tree: OriginMap) -> None:
        super().__init__(origin)
        self._tree = tree

    def for_field(self, name: str, value: Any) -> FieldAuthor:
        child = self._tree.get(name)
        if isinstance(child, FieldOrigin):
            return FieldAuthor(child)
        return OriginMapAuthor(self.origin, child) if child else FieldAuthor(self.origin)


class PatchAuthor(FieldAuthor):
    """A strategic merge patch, or the value of a JSON patch operation. Identifying names are not attributed to the
    patch.
    """

    __slots__ = ("_identity_names", "_marked", "_origin_of_line", "_patch")

    def __init__(
        self,
        patch: Any,
        marked: LocatedNode,
        origin_of_line: OriginOfLine,
        line: int = 0,
        identity_names: Sequence[str] = (),
    ) -> None:
        super().__init__(origin_of_line(line or marked.line), is_exact=True)
        self._identity_names = identity_names
        self._patch = patch
        self._marked = marked
        self._origin_of_line = origin_of_line

    def for_field(self, name: str, value: Any) -> FieldAuthor:
        marked = self._marked.find_field(name)
        if type(self._patch) is not dict or name not in self._patch or marked is None:
            return FieldAuthor(self.origin)
        if name in self._identity_names and type(value) is not dict:
            return FieldAuthor(self._origin_of_line(marked.line))
        return PatchAuthor(
            self._patch[name],
            marked,
            self._origin_of_line,
            identity_names=self._identity_names if name == "metadata" else (),
        )

    def for_element(self, index: int, value: Any) -> FieldAuthor:
        children = self._marked.children
        if type(self._patch) is list and isinstance(children, list):
            for patch, marked in zip(self._patch, children):
                if _contains_patch(value, patch):
                    return PatchAuthor(patch, marked, self._origin_of_line, identity_names=MERGE_KEY_FIELDS)
        return FieldAuthor(self.origin)


def _contains_patch(value: Any, patch: Any) -> bool:
    """True if a list element has everything that an element of the patch sets."""
    if type(patch) is dict:
        set_fields = {
            name: value_item
            for name, value_item in patch.items()
            if value_item is not None and not name.startswith("$")
        }
        return type(value) is dict and all(
            name in value and _contains_patch(value[name], value_item) for name, value_item in set_fields.items()
        )
    return type(value) is list if type(patch) is list else type(value) is type(patch) and bool(value == patch)


class _PendingOperation:
    """A JSON patch operation, with the rest of its path below the current author."""

    __slots__ = ("line", "marked", "steps", "value")

    def __init__(self, steps: Sequence[str], value: Any, marked: LocatedNode | None, line: int) -> None:
        self.steps = steps
        self.value = value
        self.marked = marked
        self.line = line

    def descend(self) -> _PendingOperation:
        return _PendingOperation(self.steps[1:], self.value, self.marked, self.line)


def build_operations_author(
    operations: Sequence[Any], marked: LocatedNode, origin_of_line: OriginOfLine
) -> FieldAuthor:
    pending = []
    for operation, marked_operation in zip(operations, marked.children if isinstance(marked.children, list) else []):
        if isinstance(operation, dict) and operation.get("op") not in ("remove", "test"):
            steps = [
                step.replace("~1", "/").replace("~0", "~") for step in str(operation.get("path") or "").split("/")[1:]
            ]
            marked_value = marked_operation.find_field("value")
            # The line to edit is that of the value; `copy` and `move` have none.
            pending.append(
                _PendingOperation(steps, operation.get("value"), marked_value, (marked_value or marked_operation).line)
            )
    return OperationsAuthor(pending, origin_of_line, marked.line)


class OperationsAuthor(FieldAuthor):
    """Operations of a JSON patch: the last one that sets a field wrote it."""

    __slots__ = ("_operations", "_origin_of_line")

    def __init__(self, operations: Sequence[_PendingOperation], origin_of_line: OriginOfLine, line: int) -> None:
        super().__init__(origin_of_line(operations[-1].line if operations else line), is_exact=True)
        self._operations = operations
        self._origin_of_line = origin_of_line

    def for_field(self, name: str, value: Any) -> FieldAuthor:
        return self._build_author([operation for operation in self._operations if operation.steps[:1] == [name]])

    def for_element(self, index: int, value: Any) -> FieldAuthor:
        # Indexes shift while operations run: an operation with an equal value is more certain than one with this index.
        setting_value = [
            operation for operation in self._operations if len(operation.steps) == 1 and operation.value == value
        ]
        below_index = [
            operation for operation in self._operations if len(operation.steps) > 1 and operation.steps[0] == str(index)
        ]
        return self._build_author([*below_index, *setting_value])

    def _build_author(self, operations: Sequence[_PendingOperation]) -> FieldAuthor:
        if not operations:
            return FieldAuthor(self.origin)
        last = operations[-1]
        if len(last.steps) > 1:
            return OperationsAuthor(
                [operation.descend() for operation in operations if len(operation.steps) > 1],
                self._origin_of_line,
                last.line,
            )
        return (
            PatchAuthor(last.value, last.marked, self._origin_of_line, last.line)
            if last.marked
            else FieldAuthor(self._origin_of_line(last.line))
        )
