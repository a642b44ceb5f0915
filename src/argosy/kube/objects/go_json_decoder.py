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
from argosy.kube.objects.input_limits import MAX_DEPTH, build_depth_error, check_depth

_MAX_DUPLICATES: Final = 100
_MAX_RESCAN_BYTES: Final = 128 * 1024
"""Larger bad JSON is not scanned again: the scan is slow, and a client could keep the server busy with it."""


class ParsedJson(NamedTuple):
    value: Any
    duplicates: tuple[str, ...]
    """Paths of repeated keys, such as `spec.containers[0].name`; the last value was kept."""


def read_json(data: bytes, *, where: str = "", strict: bool = False) -> ParsedJson:
    """Parse one JSON text. Repeated keys are searched for only if `strict`."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if len(data) > _MAX_RESCAN_BYTES:
            raise ManifestError(f"{error}: correct the JSON there", where=where, line=error.lineno) from None
        data = _normalize_like_go(data, where)
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ManifestError(_describe_number_error(data, str(error)), where=where, line=error.lineno) from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        check_depth(value, MAX_DEPTH, where)
    if not strict or orjson.dumps(value) == data.rstrip():
        return ParsedJson(value, ())
    return ParsedJson(value, _find_duplicate_paths(data))


class _KeyValuePairs(list[tuple[str, Any]]):
    """A JSON object that still contains its repeated keys."""


def _find_duplicate_paths(data: bytes) -> tuple[str, ...]:
    has_duplicates = False

    def keep_pairs(pairs: list[tuple[str, Any]]) -> _KeyValuePairs:
        nonlocal has_duplicates
        if len(dict(pairs)) != len(pairs):
            has_duplicates = True
        return _KeyValuePairs(pairs)

    tree = json.loads(data, object_pairs_hook=keep_pairs, parse_int=str, parse_float=str)
    if not has_duplicates:
        return ()
    paths: dict[str, None] = {}
    _collect_duplicate_paths(tree, "", paths)
    return tuple(paths)[:_MAX_DUPLICATES]


def _collect_duplicate_paths(node: Any, path: str, paths: dict[str, None]) -> None:
    if isinstance(node, _KeyValuePairs):
        keys: set[str] = set()
        for key, child in node:
            child_path = f"{path}.{key}" if path else key
            if key in keys:
                paths[child_path] = None
            keys.add(key)
            _collect_duplicate_paths(child, child_path, paths)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            _collect_duplicate_paths(child, f"{path}[{index}]", paths)


_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_STRING_START = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?)?)?|[eE][+-]?)?)?")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _normalize_like_go(data: bytes, where: str) -> bytes:
    """Convert text that Go accepts so that orjson can parse it: invalid characters become U+FFFD."""
    try:
        _check_syntax(data, where)
    except _JsonSyntaxError as fault:
        raise ManifestError(str(fault), where=where, line=fault.line) from None
    data = data.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)


def _describe_number_error(data: bytes, message: str) -> str:
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|(-?[0-9][0-9.eE+-]*)', data):
        if token[1] and float(token[1]) in (float("inf"), float("-inf")):
            text = token[1][:40].decode()
            return f"json: cannot unmarshal number {text} into Go value of type float64"
    return message


class _JsonSyntaxError(Exception):
    """A JSON syntax error with Go's message."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _check_syntax(data: bytes, where: str) -> None:
    """Check the syntax like Go's scanner; raises an error that names the first wrong character."""
    closers = bytearray()
    offset = _skip_space(data, 0)
    expected = "value"
    while True:
        if expected == "value":
            offset, expected = _scan_value(data, offset, closers)
        elif expected == "key":
            offset = _scan_key(data, offset)
            expected = "value"
        elif not closers:
            break
        else:
            offset, expected = _scan_after_value(data, offset, closers)
        if len(closers) > MAX_DEPTH:
            raise build_depth_error(MAX_DEPTH, where)
        offset = _skip_space(data, offset)
    if offset < len(data):
        raise _build_syntax_error(data, offset, "after top-level value")


def _skip_space(data: bytes, offset: int) -> int:
    match = _SPACE.match(data, offset)
    return match.end() if match else offset


def _scan_value(data: bytes, offset: int, closers: bytearray) -> tuple[int, str]:
    first = data[offset : offset + 1]
    if first == b"{" or first == b"[":
        content_offset = _skip_space(data, offset + 1)
        closer = b"}" if first == b"{" else b"]"
        if data[content_offset : content_offset + 1] == closer:
            return content_offset + 1, "comma"
        closers += closer
        return offset + 1, "key" if first == b"{" else "value"
    if first == b'"':
        return _scan_string(data, offset), "comma"
    if first and first in b"-0123456789":
        return _scan_number(data, offset), "comma"
    literal = _LITERALS.get(data[offset]) if first else None
    if literal is None:
        raise _build_syntax_error(data, offset, "looking for beginning of value")
    for index in range(1, len(literal)):
        if data[offset + index : offset + index + 1] != literal[index : index + 1]:
            context = f"in literal {literal.decode()} (expecting {chr(literal[index])!r})"
            raise _build_syntax_error(data, offset + index, context)
    return offset + len(literal), "comma"


def _scan_key(data: bytes, offset: int) -> int:
    if data[offset : offset + 1] != b'"':
        raise _build_syntax_error(data, offset, "looking for beginning of object key string")
    offset = _skip_space(data, _scan_string(data, offset))
    if data[offset : offset + 1] != b":":
        raise _build_syntax_error(data, offset, "after object key")
    return offset + 1


def _scan_after_value(data: bytes, offset: int, closers: bytearray) -> tuple[int, str]:
    in_object = closers[-1:] == b"}"
    if data[offset : offset + 1] == b",":
        return offset + 1, "key" if in_object else "value"
    if data[offset : offset + 1] == closers[-1:]:
        del closers[-1:]
        return offset + 1, "comma"
    raise _build_syntax_error(data, offset, "after object key:value pair" if in_object else "after array element")


def _scan_string(data: bytes, offset: int) -> int:
    if match := _STRING.match(data, offset):
        return match.end()
    valid_part = _STRING_START.match(data, offset)
    offset = valid_part.end() if valid_part else offset
    if data[offset : offset + 1] != b"\\":
        raise _build_syntax_error(data, offset, "in string literal")
    offset += 1
    if data[offset : offset + 1] != b"u":
        raise _build_syntax_error(data, offset, "in string escape code")
    offset += 1
    while data[offset : offset + 1] and data[offset : offset + 1] in b"0123456789abcdefABCDEF":
        offset += 1
    raise _build_syntax_error(data, offset, "in \\u hexadecimal character escape")


def _scan_number(data: bytes, offset: int) -> int:
    match = _NUMBER.match(data, offset)
    longest_prefix = _NUMBER_START.match(data, offset)
    end = match.end() if match else offset
    if longest_prefix is None or longest_prefix.end() <= end:
        return end
    last = longest_prefix[0][-1:]
    if last == b"-" and len(longest_prefix[0]) == 1:
        context = "in numeric literal"
    elif last == b".":
        context = "after decimal point in numeric literal"
    else:
        context = "in exponent of numeric literal"
    raise _build_syntax_error(data, longest_prefix.end(), context)


def _build_syntax_error(data: bytes, offset: int, context: str) -> _JsonSyntaxError:
    line = data.count(b"\n", 0, offset) + 1
    if offset >= len(data):
        return _JsonSyntaxError("unexpected end of JSON input", line)
    character = data[offset]
    if character == ord("'"):
        quoted = "\\'"
    elif character == ord('"'):
        quoted = '"'
    else:
        quoted = _quote_like_go(character)
    return _JsonSyntaxError(f"invalid character '{quoted}' {context}", line)


def _quote_like_go(byte: int) -> str:
    # k8s: Go prints the byte as a character, so the first byte of `é` is printed as `Ã`.
    escapes = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
    if byte in escapes:
        return escapes[byte]
    if byte < 0x20 or byte == 0x7F:
        return f"\\x{byte:02x}"
    if 0x80 <= byte <= 0xA0 or byte == 0xAD:
        return f"\\u{byte:04x}"
    return chr(byte)
