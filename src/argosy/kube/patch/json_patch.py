"""JSON patch (RFC 6902), as the kube-apiserver applies it.

In: a document and operations. Out: a new document that shares unchanged parts. Never: mutates its input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.errors import PatchError
from argosy.kube.patch.go_format import quote
from argosy.kube.patch.json_pointer import unescape

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_INTEGER = re.compile(r"[+-]?[0-9]+")
_ABSENT: Final = object()


class PatchTooLarge(PatchError):
    """The patch has too many operations: HTTP 413; every other patch error is HTTP 422."""


class _Fault(Exception):
    """One step inside a container failed; the operation adds the path."""


def apply(document: Any, operations: Sequence[Mapping[str, Any]], *, lenient_replace: bool = False) -> Any:
    """Apply all operations in order, or raise PatchError. `lenient_replace`: replacing a missing map key adds it."""
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    draft = _Draft(document, lenient_replace)
    for operation in operations:
        draft.run(operation)
    return draft.document


def equal(one: Any, other: Any) -> bool:
    """Compare JSON values deeply; unlike in Python, `1`, `1.0` and `true` differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


class _Draft:
    """The document being patched. Containers in `_copied_containers` are its own copies and may be changed in place."""

    def __init__(self, document: Any, lenient_replace: bool) -> None:
        self.document = document
        self._lenient = lenient_replace
        self._own: dict[int, Any] = {}
        self._copied = 0

    def run(self, operation: Mapping[str, Any]) -> None:
        kind = operation.get("op") if isinstance(operation, Mapping) else None
        step = _STEPS.get(kind) if isinstance(kind, str) else None
        if step is None:
            raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        step(self, operation)

    def add(self, operation: Mapping[str, Any]) -> None:
        path = _text(operation, "path", "add operation failed to decode path")
        where = self._container(path)
        if where is None:
            raise PatchError(f'add operation does not apply: doc is missing path: "{path}": missing value')
        _during(f"error in add for path: '{path}'", _insert, *where, operation.get("value"))

    def remove(self, operation: Mapping[str, Any]) -> None:
        path = _text(operation, "path", "remove operation failed to decode path")
        where = self._container(path)
        if where is None:
            raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": missing value')
        _during(f"error in remove for path: '{path}'", _remove, *where)

    def replace(self, operation: Mapping[str, Any]) -> None:
        path = _text(operation, "path", "replace operation failed to decode path")
        value = operation.get("value")
        if not path:
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array")
            self.document = value
            return
        where = self._container(path)
        if where is None:
            raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value")
        container, key = where
        if isinstance(container, dict):
            if key not in container and not self._lenient:
                raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value")
            container[key] = value
            return
        try:
            container[_index(container, key)] = value
        except _Fault as fault:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from fault

    def move(self, operation: Mapping[str, Any]) -> None:
        source = _text(operation, "from", "move operation failed to decode from")
        where = self._container(source)
        if where is None:
            raise PatchError(f"move operation does not apply: doc is missing from path: {source}: missing value")
        value = _during(f"error in move for path: '{where[1]}'", _remove, *where)
        path = _text(operation, "path", "move operation failed to decode path")
        target = self._container(path)
        if target is None:
            raise PatchError(f"move operation does not apply: doc is missing destination path: {path}: missing value")
        _during(f"error in move for path: '{path}'", _insert, *target, value)

    def test(self, operation: Mapping[str, Any]) -> None:
        path = _text(operation, "path", "test operation failed to decode path")
        value: Any = self.document
        if path:
            where = self._container(path, writable=False)
            if where is None:
                raise PatchError(f"test operation does not apply: is missing path: {path}: missing value")
            value = _during(f"error in test for path: '{path}'", _get, *where)
        # k8s: a missing key of a map equals null.
        wanted = operation.get("value", _ABSENT)
        if not equal(None if value is _ABSENT else value, wanted):
            raise PatchError(f"testing value {path} failed: test failed")

    def copy(self, operation: Mapping[str, Any]) -> None:
        source = _text(operation, "from", "copy operation failed to decode from")
        where = self._container(source, writable=False)
        if where is None:
            raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: missing value")
        found = _during(f"error in copy for from: '{source}'", _get, *where)
        value = None if found is _ABSENT else found  # k8s: a missing key of a map is copied as null.
        path = _text(operation, "path", "copy operation failed to decode path")
        if found is not _ABSENT:
            self._count(value)
        if isinstance(value, dict | list):
            self._own.clear()  # the value is shared by two paths now: neither may be changed in place
        target = self._container(path)
        if target is None:
            raise PatchError(f"copy operation does not apply: doc is missing destination path: {path}: missing value")
        _during("error while adding value during copy", _insert, *target, value)

    def _count(self, value: Any) -> None:
        self._copied += len(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
        if self._copied > MAX_COPIED_BYTES:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )

    def _container(self, path: str, *, writable: bool = True) -> tuple[Any, str] | None:
        """Return the container of the last token of `path`, and that token; None if the path to it does not exist."""
        tokens = path.split("/")  # k8s: text before the first slash is ignored
        if len(tokens) < 2:
            return None
        container = self._writable(self.document) if writable else self.document
        if writable:
            self.document = container
        for token in tokens[1:-1]:
            try:
                key = unescape(token)
                child = _get(container, key)
            except _Fault:
                return None
            if not isinstance(child, dict | list):
                return None
            if writable:
                child = self._adopt(container, key, child)
            container = child
        return (container, unescape(tokens[-1])) if isinstance(container, dict | list) else None

    def _adopt(self, parent: Any, key: str, child: Any) -> Any:
        mine = self._writable(child)
        if mine is not child:
            parent[key if isinstance(parent, dict) else _index(parent, key)] = mine
        return mine

    def _writable(self, container: Any) -> Any:
        if id(container) in self._own or not isinstance(container, dict | list):
            return container
        mine = container.copy()
        self._own[id(mine)] = mine
        return mine


_STEPS: Final[Mapping[str, Callable[[_Draft, Mapping[str, Any]], None]]] = {
    "add": _Draft.add,
    "remove": _Draft.remove,
    "replace": _Draft.replace,
    "move": _Draft.move,
    "test": _Draft.test,
    "copy": _Draft.copy,
}


def _text(operation: Mapping[str, Any], name: str, otherwise: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise PatchError(f"{otherwise}: missing value")
    return text


def _during(what: str, step: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return step(*arguments)
    except _Fault as fault:
        raise PatchError(f"{what}: {fault}") from fault


def _number(key: str) -> int:
    if not _INTEGER.fullmatch(key) or len(key) > 18:
        raise _Fault(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    return int(key)


def _index(container: Sequence[Any], key: str) -> int:
    """k8s: negative indices count from the end."""
    return _bounded(_number(key), len(container))


def _bounded(index: int, length: int) -> int:
    if not -length <= index < length:
        raise _Fault(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _ABSENT)
    return container[_index(container, key)]


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            number = _number(key)
        except _Fault as fault:
            raise _Fault(f"value was not a proper array index: '{key}': {fault}") from fault
        container.insert(_bounded(number, len(container) + 1), value)


def _remove(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise _Fault(f"Unable to remove nonexistent key: {key}: missing value")
        return container.pop(key)
    return container.pop(_index(container, key))
