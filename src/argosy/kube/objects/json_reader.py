"""Reads JSON from HTTP bodies, as Go's encoding/json does.

In: bytes of any origin. Out: a value, and the paths of repeated keys. Never: returns a value deeper than the limit.

JSON that orjson rejects is scanned again, for two reasons: to report the error in the words of Go's encoding/json,
which Kubernetes clients know, and because Go accepts a few texts that orjson rejects.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

import orjson

from argosy.errors import ManifestError
from argosy.kube.objects.input_limits import DEPTH, check_depth, depth_error

_MOST_DUPLICATES: Final = 100
_LOOKED_AT_AGAIN: Final = 128 * 1024
"""Larger bad JSON is not scanned again: the scan is slow, and a client could keep the server busy with it."""


class JsonRead(NamedTuple):
    value: Any
    duplicates: tuple[str, ...]
    """Paths of repeated keys, such as `spec.containers[0].name`; the last value was kept."""


def load_json(data: bytes, *, where: str = "", strict: bool = False) -> JsonRead:
    """Parse one JSON text. Repeated keys are searched for only if `strict`."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if len(data) > _LOOKED_AT_AGAIN:
            raise ManifestError(f"{error}: correct the JSON there", where=where, line=error.lineno) from None
        data = _as_go_reads(data, where)
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ManifestError(_number_error(data, str(error)), where=where, line=error.lineno) from None
    if data.count(b"{") + data.count(b"[") > DEPTH:
        check_depth(value, DEPTH, where)
    if not strict or orjson.dumps(value) == data.rstrip():
        return JsonRead(value, ())
    return JsonRead(value, _duplicates(data))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object that still contains its repeated keys."""


def _duplicates(data: bytes) -> tuple[str, ...]:
    repeated = False

    def keep(pairs: list[tuple[str, Any]]) -> _Pairs:
        nonlocal repeated
        if len(dict(pairs)) != len(pairs):
            repeated = True
        return _Pairs(pairs)

    tree = json.loads(data, object_pairs_hook=keep, parse_int=str, parse_float=str)
    if not repeated:
        return ()
    paths: dict[str, None] = {}
    _collect(tree, "", paths)
    return tuple(paths)[:_MOST_DUPLICATES]


def _collect(node: Any, path: str, paths: dict[str, None]) -> None:
    if isinstance(node, _Pairs):
        seen: set[str] = set()
        for key, child in node:
            at = f"{path}.{key}" if path else key
            if key in seen:
                paths[at] = None
            seen.add(key)
            _collect(child, at, paths)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            _collect(child, f"{path}[{index}]", paths)


_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_STRING_START = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?)?)?|[eE][+-]?)?)?")
_WORDS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _as_go_reads(data: bytes, where: str) -> bytes:
    """Convert text that Go accepts so that orjson can parse it: invalid characters become U+FFFD."""
    try:
        _scan(data, where)
    except _SyntaxFault as fault:
        raise ManifestError(str(fault), where=where, line=fault.line) from None
    data = data.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)


def _number_error(data: bytes, said: str) -> str:
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|(-?[0-9][0-9.eE+-]*)', data):
        if token[1] and float(token[1]) in (float("inf"), float("-inf")):
            text = token[1][:40].decode()
            return f"json: cannot unmarshal number {text} into Go value of type float64"
    return said


class _SyntaxFault(Exception):
    """A JSON syntax error with Go's message."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _scan(data: bytes, where: str) -> None:
    """Check the syntax like Go's scanner; raises an error that names the first wrong character."""
    closers = bytearray()
    at = _space(data, 0)
    expects = "value"
    while True:
        if expects == "value":
            at, expects = _value(data, at, closers)
        elif expects == "key":
            at = _key(data, at)
            expects = "value"
        elif not closers:
            break
        else:
            at, expects = _after_value(data, at, closers)
        if len(closers) > DEPTH:
            raise depth_error(DEPTH, where)
        at = _space(data, at)
    if at < len(data):
        raise _invalid(data, at, "after top-level value")


def _space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _value(data: bytes, at: int, closers: bytearray) -> tuple[int, str]:
    first = data[at : at + 1]
    if first == b"{" or first == b"[":
        inside = _space(data, at + 1)
        closer = b"}" if first == b"{" else b"]"
        if data[inside : inside + 1] == closer:
            return inside + 1, "comma"
        closers += closer
        return at + 1, "key" if first == b"{" else "value"
    if first == b'"':
        return _string(data, at), "comma"
    if first and first in b"-0123456789":
        return _number(data, at), "comma"
    word = _WORDS.get(data[at]) if first else None
    if word is None:
        raise _invalid(data, at, "looking for beginning of value")
    for offset in range(1, len(word)):
        if data[at + offset : at + offset + 1] != word[offset : offset + 1]:
            context = f"in literal {word.decode()} (expecting {chr(word[offset])!r})"
            raise _invalid(data, at + offset, context)
    return at + len(word), "comma"


def _key(data: bytes, at: int) -> int:
    if data[at : at + 1] != b'"':
        raise _invalid(data, at, "looking for beginning of object key string")
    at = _space(data, _string(data, at))
    if data[at : at + 1] != b":":
        raise _invalid(data, at, "after object key")
    return at + 1


def _after_value(data: bytes, at: int, closers: bytearray) -> tuple[int, str]:
    in_object = closers[-1:] == b"}"
    if data[at : at + 1] == b",":
        return at + 1, "key" if in_object else "value"
    if data[at : at + 1] == closers[-1:]:
        del closers[-1:]
        return at + 1, "comma"
    raise _invalid(data, at, "after object key:value pair" if in_object else "after array element")


def _string(data: bytes, at: int) -> int:
    if match := _STRING.match(data, at):
        return match.end()
    begun = _STRING_START.match(data, at)
    at = begun.end() if begun else at
    if data[at : at + 1] != b"\\":
        raise _invalid(data, at, "in string literal")
    at += 1
    if data[at : at + 1] != b"u":
        raise _invalid(data, at, "in string escape code")
    at += 1
    while data[at : at + 1] and data[at : at + 1] in b"0123456789abcdefABCDEF":
        at += 1
    raise _invalid(data, at, "in \\u hexadecimal character escape")


def _number(data: bytes, at: int) -> int:
    match = _NUMBER.match(data, at)
    begun = _NUMBER_START.match(data, at)
    end = match.end() if match else at
    if begun is None or begun.end() <= end:
        return end
    last = begun[0][-1:]
    if last == b"-" and len(begun[0]) == 1:
        context = "in numeric literal"
    elif last == b".":
        context = "after decimal point in numeric literal"
    else:
        context = "in exponent of numeric literal"
    raise _invalid(data, begun.end(), context)


def _invalid(data: bytes, at: int, context: str) -> _SyntaxFault:
    line = data.count(b"\n", 0, at) + 1
    if at >= len(data):
        return _SyntaxFault("unexpected end of JSON input", line)
    character = data[at]
    if character == ord("'"):
        shown = "\\'"
    elif character == ord('"'):
        shown = '"'
    else:
        shown = _go_quoted(character)
    return _SyntaxFault(f"invalid character '{shown}' {context}", line)


def _go_quoted(byte: int) -> str:
    # k8s: Go prints the byte as a character, so the first byte of `é` is printed as `Ã`.
    named = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
    if byte in named:
        return named[byte]
    if byte < 0x20 or byte == 0x7F:
        return f"\\x{byte:02x}"
    if 0x80 <= byte <= 0xA0 or byte == 0xAD:
        return f"\\u{byte:04x}"
    return chr(byte)
