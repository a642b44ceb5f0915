"""JSON patch (RFC 6902), as the kube-apiserver applies it.

In: a document and operations. Out: a new document that shares unchanged parts. Never: mutates its input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.errors import PatchError
from argosy.kube.objects.go_format import quote
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.patch.json_pointer import unescape

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_INTEGER = re.compile(r"[+-]?[0-9]+")
_ABSENT: Final = object()


class PatchTooLarge(PatchError):
    """The patch has too many operations: HTTP 413; every other patch error is HTTP 422."""


class _StepError(Exception):
    """One step inside a container failed; the operation adds the path."""


def apply(document: Any, operations: Sequence[Mapping[str, Any]], *, lenient_replace: bool = False) -> Any:
    """Apply all operations in order, or raise PatchError. `lenient_replace`: replacing a missing map key adds it."""
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    draft = _PatchedDocument(document, lenient_replace)
    for operation in operations:
        draft.run(operation)
    return draft.document


class _PatchedDocument:
    """The document being patched. Containers in `_copied_containers` are its own copies and may be changed in place."""

    def __init__(self, document: Any, lenient_replace: bool) -> None:
        self.document = document
        self._lenient_replace = lenient_replace
        self._copied_containers: dict[int, Any] = {}
        self._copied_bytes = 0

    def run(self, operation: Mapping[str, Any]) -> None:
        kind = operation.get("op") if isinstance(operation, Mapping) else None
        step = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if step is None:
            raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        step(self, operation)

    def add(self, operation: Mapping[str, Any]) -> None:
        path = _require_text(operation, "path", "add operation failed to decode path")
        location = self._find_container(path)
        if location is None:
            raise PatchError(f'add operation does not apply: doc is missing path: "{path}": missing value')
        _run_step(f"error in add for path: '{path}'", _insert, *location, operation.get("value"))

    def remove(self, operation: Mapping[str, Any]) -> None:
        path = _require_text(operation, "path", "remove operation failed to decode path")
        location = self._find_container(path)
        if location is None:
            raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": missing value')
        _run_step(f"error in remove for path: '{path}'", _remove, *location)

    def replace(self, operation: Mapping[str, Any]) -> None:
        path = _require_text(operation, "path", "replace operation failed to decode path")
        value = operation.get("value")
        if not path:
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array")
            self.document = value
            return
        location = self._find_container(path)
        if location is None:
            raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value")
        container, key = location
        if isinstance(container, dict):
            if key not in container and not self._lenient_replace:
                raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value")
            container[key] = value
            return
        try:
            container[_resolve_index(container, key)] = value
        except _StepError as error:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from error

    def move(self, operation: Mapping[str, Any]) -> None:
        source = _require_text(operation, "from", "move operation failed to decode from")
        location = self._find_container(source)
        if location is None:
            raise PatchError(f"move operation does not apply: doc is missing from path: {source}: missing value")
        value = _run_step(f"error in move for path: '{location[1]}'", _remove, *location)
        path = _require_text(operation, "path", "move operation failed to decode path")
        target = self._find_container(path)
        if target is None:
            raise PatchError(f"move operation does not apply: doc is missing destination path: {path}: missing value")
        _run_step(f"error in move for path: '{path}'", _insert, *target, value)

    def test(self, operation: Mapping[str, Any]) -> None:
        path = _require_text(operation, "path", "test operation failed to decode path")
        value: Any = self.document
        if path:
            location = self._find_container(path, writable=False)
            if location is None:
                raise PatchError(f"test operation does not apply: is missing path: {path}: missing value")
            value = _run_step(f"error in test for path: '{path}'", _get, *location)
        # k8s: a missing key of a map equals null.
        expected = operation.get("value", _ABSENT)
        if not is_equal_json(None if value is _ABSENT else value, expected):
            raise PatchError(f"testing value {path} failed: test failed")

    def copy(self, operation: Mapping[str, Any]) -> None:
        source = _require_text(operation, "from", "copy operation failed to decode from")
        location = self._find_container(source, writable=False)
        if location is None:
            raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: missing value")
        source_value = _run_step(f"error in copy for from: '{source}'", _get, *location)
        value = None if source_value is _ABSENT else source_value  # k8s: a missing key of a map is copied as null.
        path = _require_text(operation, "path", "copy operation failed to decode path")
        if source_value is not _ABSENT:
            self._count_copied_bytes(value)
        if isinstance(value, dict | list):
            self._copied_containers.clear()  # the value is shared by two paths now: neither may be changed in place
        target = self._find_container(path)
        if target is None:
            raise PatchError(f"copy operation does not apply: doc is missing destination path: {path}: missing value")
        _run_step("error while adding value during copy", _insert, *target, value)

    def _count_copied_bytes(self, value: Any) -> None:
        self._copied_bytes += len(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )

    def _find_container(self, path: str, *, writable: bool = True) -> tuple[Any, str] | None:
        """Return the container of the last token of `path`, and that token; None if the path to it does not exist."""
        tokens = path.split("/")  # k8s: text before the first slash is ignored
        if len(tokens) < 2:
            return None
        container = self._copy_on_write(self.document) if writable else self.document
        if writable:
            self.document = container
        for token in tokens[1:-1]:
            try:
                key = unescape(token)
                child = _get(container, key)
            except _StepError:
                return None
            if not isinstance(child, dict | list):
                return None
            if writable:
                child = self._make_child_writable(container, key, child)
            container = child
        return (container, unescape(tokens[-1])) if isinstance(container, dict | list) else None

    def _make_child_writable(self, parent: Any, key: str, child: Any) -> Any:
        writable_child = self._copy_on_write(child)
        if writable_child is not child:
            parent[key if isinstance(parent, dict) else _resolve_index(parent, key)] = writable_child
        return writable_child

    def _copy_on_write(self, container: Any) -> Any:
        if id(container) in self._copied_containers or not isinstance(container, dict | list):
            return container
        writable_copy = container.copy()
        self._copied_containers[id(writable_copy)] = writable_copy
        return writable_copy


_OPERATIONS: Final[Mapping[str, Callable[[_PatchedDocument, Mapping[str, Any]], None]]] = {
    "add": _PatchedDocument.add,
    "remove": _PatchedDocument.remove,
    "replace": _PatchedDocument.replace,
    "move": _PatchedDocument.move,
    "test": _PatchedDocument.test,
    "copy": _PatchedDocument.copy,
}


def _require_text(operation: Mapping[str, Any], name: str, error_prefix: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise PatchError(f"{error_prefix}: missing value")
    return text


def _run_step(error_prefix: str, step: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return step(*arguments)
    except _StepError as error:
        raise PatchError(f"{error_prefix}: {error}") from error


def _parse_index(key: str) -> int:
    if not _INTEGER.fullmatch(key) or len(key) > 18:
        raise _StepError(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    return int(key)


def _resolve_index(container: Sequence[Any], key: str) -> int:
    """k8s: negative indices count from the end."""
    return _check_bounds(_parse_index(key), len(container))


def _check_bounds(index: int, length: int) -> int:
    if not -length <= index < length:
        raise _StepError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _ABSENT)
    return container[_resolve_index(container, key)]


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            number = _parse_index(key)
        except _StepError as error:
            raise _StepError(f"value was not a proper array index: '{key}': {error}") from error
        container.insert(_check_bounds(number, len(container) + 1), value)


def _remove(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise _StepError(f"Unable to remove nonexistent key: {key}: missing value")
        return container.pop(key)
    return container.pop(_resolve_index(container, key))
