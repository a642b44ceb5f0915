"""Writes YAML as `kubectl -o yaml` prints it.

In: plain JSON data. Out: YAML text. Never: loses data.
Block style, keys in Go's natural order, lists not indented, lines folded at spaces after column 80.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.kube.objects.go_format import format_float
from argosy.kube.objects.short_text_result_cache import MAX_CACHED_TEXT_LENGTH, cache_short_texts
from argosy.kube.objects.yaml_scalars import (
    INT64_MIN,
    UINT64_MAX,
    UNPRINTABLE,
    ScalarError,
    needs_quotes,
    to_json_number,
)

_FOLD_COLUMN: Final = 80
_MAX_SIMPLE_KEY_LENGTH: Final = 128
_NO_FOLD_COLUMN: Final = -(10**6)
"""A column from which no line is folded."""
# k8s: Go's writer escapes all characters beyond U+FFFF, tabs and carriage returns.
# The line separators U+2028 and U+2029 are escaped too: unescaped, other readers fold them into spaces.
_NEEDS_DOUBLE_QUOTES = re.compile(rf"[{UNPRINTABLE}\t\u2028\u2029]")
_ESCAPED_CHARACTERS = re.compile(rf"[{UNPRINTABLE}\t\u2028\u2029\n\"\\]")
_PLAIN_SAFE = re.compile(r"[A-Za-z_/$(\\](?:[!\"$-9;-~]|[ :](?=[!\"$-9;-~]))*")
"""Most strings of real manifests match this and need no quotes, except words such as `yes`."""
_INDICATOR_FIRST: Final = frozenset("#,[]{}&*!|>'\"%@`")
_NOT_PLAIN = re.compile(r"\A[?:-](?:[ \t]|\Z)|\A---|\A\.\.\.|:(?:[ \t]|\Z)|[ \t]#|\A | \Z")
_NOT_LITERAL_SAFE = re.compile(r" \Z| \n")
_NAMED_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip
_SPACES = re.compile("( +)")


def dump_yaml(value: Any) -> str:
    """Write one document. Strings that would be read as another type are quoted as Go quotes them."""
    out: list[str] = []
    _write_node(value, -2, out)
    out.append("\n")
    return "".join(out)


def dump_yaml_documents(values: Iterable[Any]) -> str:
    """Write several documents, separated by `---`."""
    return "---\n".join(map(dump_yaml, values))


def dump_on_one_line(value: Any) -> str:
    """Write a scalar as `dump_yaml` does, but without line breaks: a multi-line string is double-quoted."""
    if type(value) is str and "\n" in value:
        return _double_quote(value, 0, _NO_FOLD_COLUMN)
    return _format_scalar(value, 0, _NO_FOLD_COLUMN)


def _write_node(value: Any, indent: int, out: list[str]) -> None:
    """Write a value after `- ` or `: `, or the root; a nested collection starts on the same line."""
    kind = type(value)
    if kind is str:
        out.append(_string_cache.get(value) or _format_string(value, max(indent, 0) + 2, indent + 2))
    elif kind is dict and value:
        _write_mapping(value, indent + 2, True, out)
    elif (kind is list or kind is tuple) and value:
        _write_sequence(value, indent + 2, True, out)
    else:
        out.append(_format_scalar(value, max(indent, 0) + 2, indent + 2))


def _write_mapping(mapping: dict[str, Any], indent: int, same_line: bool, out: list[str]) -> None:
    newline = "\n" + " " * indent
    append = out.append
    for key in _sort_keys(mapping):
        if not same_line:
            append(newline)
        same_line = False
        value = mapping[key]
        text = _format_key(key)
        if text is None:
            append("? ")
            append(_format_string(key, indent + 2, indent + 2))
            append(newline + ": ")
            _write_node(value, indent, out)
            continue
        append(text)
        kind = type(value)
        if kind is str:
            append(": ")
            append(_string_cache.get(value) or _format_string(value, indent + 2, indent + len(text) + 2))
        elif kind is dict and value:
            append(":")
            _write_mapping(value, indent + 2, False, out)
        elif (kind is list or kind is tuple) and value:
            append(":")
            _write_sequence(value, indent, False, out)
        else:
            append(": ")
            append(_format_scalar(value, indent + 2, indent + len(text) + 2))


def _write_sequence(items: Sequence[Any], indent: int, same_line: bool, out: list[str]) -> None:
    newline = "\n" + " " * indent + "- "
    for item in items:
        out.append("- " if same_line else newline)
        same_line = False
        _write_node(item, indent, out)


def _format_scalar(value: Any, indent: int, column: int) -> str:
    kind = type(value)
    if kind is str:
        return _format_string(value, indent, column)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value) if INT64_MIN <= value <= UINT64_MAX else _format_float(_to_float(value))
    if kind is float:
        return _format_float(value)
    if kind is dict:
        return "{}"
    if kind is list or kind is tuple:
        return "[]"
    raise TypeError(f"a manifest holds plain JSON data, not {kind.__name__}")


def _to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ManifestError(f"a number of {value.bit_length()} bits is too large for JSON: use a smaller one") from None


def _format_float(value: float) -> str:
    try:
        number = to_json_number(value)
    except ScalarError as error:
        raise ManifestError(str(error)) from None
    return str(number) if type(number) is int else format_float(number)


_string_cache: dict[str, str] = {}
"""YAML text of short strings without spaces; emptied when full."""


def _format_string(text: str, indent: int, column: int) -> str:
    if " " in text or "\n" in text or len(text) > 40:
        return _choose_string_style(text, indent, column)
    if len(_string_cache) >= 8192:
        _string_cache.clear()
    return _string_cache.setdefault(text, _choose_string_style(text, indent, column))


def _choose_string_style(text: str, indent: int, column: int) -> str:
    if _PLAIN_SAFE.fullmatch(text) and not needs_quotes(text):
        return _fold_at_spaces(text, indent, column)
    if _NEEDS_DOUBLE_QUOTES.search(text):
        return _double_quote(text, indent, column)
    if "\n" in text:
        return _double_quote(text, indent, column) if _NOT_LITERAL_SAFE.search(text) else _format_literal(text, indent)
    if needs_quotes(text):
        return _double_quote(text, indent, column)
    if text[0] in _INDICATOR_FIRST or _NOT_PLAIN.search(text):
        return "'" + _fold_at_spaces(text.replace("'", "''"), indent, column + 1) + "'"
    return _fold_at_spaces(text, indent, column)


def _fold_at_spaces(text: str, indent: int, column: int) -> str:
    """Fold at single spaces after the last column; spaces at the ends and in runs stay."""
    if column + len(text) <= _FOLD_COLUMN + 1 or " " not in text:
        return text
    pieces = _SPACES.split(text)
    last = len(pieces) - 2
    for index, piece in enumerate(pieces):
        is_edge = (index == 1 and not pieces[0]) or (index == last and not pieces[-1])
        if index % 2 and len(piece) == 1 and column > _FOLD_COLUMN and not is_edge:
            pieces[index] = "\n" + " " * indent
            column = indent
        else:
            column += len(piece)
    return "".join(pieces)


def _double_quote(text: str, indent: int, column: int) -> str:
    pieces = _SPACES.split(_ESCAPED_CHARACTERS.sub(_escape, text))
    column += 1
    last = len(pieces) - 2
    for index, piece in enumerate(pieces):
        is_edge = (index == 1 and not pieces[0]) or (index == last and not pieces[-1] and len(piece) == 1)
        if index % 2 and column > _FOLD_COLUMN and not is_edge:
            continuation = "\\" + piece[1:] if len(piece) > 1 else ""
            pieces[index] = "\n" + " " * indent + continuation
            column = indent + len(continuation)
        else:
            column += len(piece)
    return '"' + "".join(pieces) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if named_escape := _NAMED_ESCAPES.get(character):
        return named_escape
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ManifestError(f"a string contains the lone surrogate U+{code:04X}: replace it with a valid character")
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _format_literal(text: str, indent: int) -> str:
    indent_hint = "2" if text[0] in " \n" else ""
    if not text.endswith("\n"):
        chomping = "-"
    else:
        chomping = "+" if text == "\n" or text.endswith("\n\n") else ""
        text = text[:-1]
    pad = "\n" + " " * indent
    body = "".join(pad + line if line else "\n" for line in text.split("\n"))
    return f"|{indent_hint}{chomping}{body}"


@cache_short_texts(4096)
def _format_key(key: str) -> str | None:
    """Format a key on one line; None if it needs the `? ` form."""
    if not isinstance(key, str):
        raise TypeError(f"a manifest's keys are strings, not {type(key).__name__}")
    if "\n" in key or len(key) > _MAX_SIMPLE_KEY_LENGTH or len(key.encode("utf-8", "replace")) > _MAX_SIMPLE_KEY_LENGTH:
        return None
    if key == "<<":
        return '"<<"'  # Go prints it unquoted, and would read it back as a merge
    return _format_string(key, 0, _NO_FOLD_COLUMN)


def _sort_keys(mapping: dict[str, Any]) -> Iterable[str]:
    if len(mapping) < 2:
        return mapping
    if len(mapping) > 64 or sum(map(len, mapping)) > MAX_CACHED_TEXT_LENGTH:
        return _sort_naturally(tuple(mapping))
    return _sort_naturally_cached(tuple(mapping))


def _sort_naturally(keys: tuple[str, ...]) -> tuple[str, ...]:
    if "".join(keys).isalpha():
        return tuple(sorted(keys))
    return tuple(sorted(keys, key=functools.cmp_to_key(_compare_naturally)))


_sort_naturally_cached = functools.lru_cache(maxsize=2048)(_sort_naturally)


def _compare_naturally(left: str, right: str) -> int:
    """k8s: letters after everything else, runs of digits by their number: a2 < a10, a-b < ab."""
    for index, (left_character, right_character) in enumerate(zip(left, right)):
        if left_character == right_character:
            continue
        if left_character.isalpha() and right_character.isalpha():
            return -1 if left_character < right_character else 1
        if left_character.isalpha() or right_character.isalpha():
            return -1 if right_character.isalpha() else 1
        initial_number = 0
        if left_character == "0" or right_character == "0":
            before = re.search(r"\d*\Z", left[:index])
            initial_number = 1 if before and before[0].strip("0") else 0
        left_number, left_end = _read_digits(left, index, initial_number)
        right_number, right_end = _read_digits(right, index, initial_number)
        if left_number != right_number:
            return -1 if left_number < right_number else 1
        if left_end != right_end:
            return -1 if left_end < right_end else 1
        return -1 if left_character < right_character else 1
    return len(left) - len(right)


def _read_digits(text: str, start: int, number: int) -> tuple[int, int]:
    """Read the number that starts at `start`; it overflows like a Go int64."""
    end = start
    while end < len(text) and text[end].isdecimal():
        number = (number * 10 + ord(text[end]) - 48 + 2**63) % 2**64 - 2**63
        end += 1
    return number, end
