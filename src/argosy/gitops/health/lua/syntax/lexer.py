"""Splits a Lua script into tokens.

In: its text. Out: `LuaTokens`, three lists of equal length: kind, value and line. The kind of a keyword or operator is
its text. Never: takes more than linear time; raises anything but LuaSyntaxError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from argosy.errors import UserError

MAX_SCRIPT_BYTES = 256 * 1024
BYTE_ORDER_MARK = "\ufeff"

NAME_TOKEN, STRING_TOKEN, NUMBER_TOKEN, END_TOKEN = "<name>", "<string>", "<number>", "<eof>"
KEYWORDS = frozenset(
    {
        "and",
        "break",
        "do",
        "else",
        "elseif",
        "end",
        "false",
        "for",
        "function",
        "goto",
        "if",
        "in",
        "local",
        "nil",
        "not",
        "or",
        "repeat",
        "return",
        "then",
        "true",
        "until",
        "while",
    }
)

_TOKEN = re.compile(
    r"""
    [ \t]*+ (?:
      (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>0[xX](?:[pP][+-]|[A-Za-z0-9_.])*+ | \.?[0-9](?:[eE][+-]|[A-Za-z0-9_.])*+)
    | (?P<string>"(?:[^"\\\r\n]|\\(?:\r\n|z[ \t\r\n\v\f]*+|[\s\S]))*+"
               | '(?:[^'\\\r\n]|\\(?:\r\n|z[ \t\r\n\v\f]*+|[\s\S]))*+')
    | (?P<space>[\r\n\v\f][ \t\r\n\v\f]*+)
    | (?P<comment>--)
    | (?P<long>\[=*+\[)
    | (?P<sign>\.\.\.|\.\.|==|~=|<=|>=|::|[-+*/%^\#<>=(){}\[\];:,.])
    | (?P<end>\Z)
    )
    """,
    re.VERBOSE,
)
_LONG_BRACKET = re.compile(r"\[(=*+)\[")
_NUMERAL = re.compile(
    r"0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)(?:[pP][+-]?[0-9]++)?"
    r"|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
)
_NUMBER_SUFFIX = re.compile(r"(?:[uU]?[lL]{2}|[iI])")  # number suffixes of LuaJIT
_ESCAPE = re.compile(
    rb"\\(?:([0-9]{1,3})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,8})\}|z[ \t\r\n\v\f]*+|(\r\n|\n\r|[\s\S]))"
)
_PLAIN_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b'"': b'"', b"'": b"'", b"\n": b"\n", b"\r": b"\n", b"\r\n": b"\n", b"\n\r": b"\n",
}  # fmt: skip


class LuaSyntaxError(UserError):
    """The text is not valid Lua, or exceeds a limit. Format of LuaJIT: `<string>:3: 'end' expected near '<eof>'`."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message, where="<string>", line=line)


@dataclass(frozen=True, slots=True)
class LuaTokens:
    kinds: list[str]
    values: list[str]
    lines: list[int]


def tokenize(text: str) -> LuaTokens:
    """Return the tokens. The value of a string token is the decoded string, of any other token its text."""
    if len(text) > MAX_SCRIPT_BYTES or (
        not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > MAX_SCRIPT_BYTES
    ):
        raise LuaSyntaxError(1, f"the script is longer than {MAX_SCRIPT_BYTES // 1024} KiB; make it smaller")
    kinds: list[str] = []
    values: list[str] = []
    lines: list[int] = []
    offset, line, size = _find_start(text), 1, len(text)
    while offset < size:
        match = _TOKEN.match(text, offset)
        if match is None:
            raise _unexpected_symbol_error(text, offset, line)
        group = match.lastgroup or ""
        token_text, end = match[group], match.end()
        next_line = line
        if group == "word":
            kind = token_text if token_text in KEYWORDS else NAME_TOKEN
        elif group == "sign":
            kind = token_text
        elif group == "number":
            kind, token_text = NUMBER_TOKEN, _check_number(token_text, line)
        elif group == "string":
            next_line += token_text.count("\n")
            kind, token_text = STRING_TOKEN, _decode_string(token_text, line)
        elif group == "long":
            start = match.start(group)
            end, token_text = _read_long_bracket(text, start, line, "string")
            next_line += text.count("\n", start, end)
            kind = STRING_TOKEN
        else:  # whitespace, a comment or the end: not a token
            end = _find_comment_end(text, end, line) if group == "comment" else end
            line += text.count("\n", offset, end)
            offset = end
            continue
        kinds.append(kind)
        values.append(token_text)
        lines.append(line)
        offset, line = end, next_line
    return LuaTokens([*kinds, END_TOKEN], [*values, END_TOKEN], [*lines, line])


def _find_start(text: str) -> int:
    """Return the offset after the parts that LuaJIT skips: a byte order mark, and a first line that starts with #."""
    offset = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    if not text.startswith("#", offset):
        return offset
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _find_comment_end(text: str, offset: int, line: int) -> int:
    if _LONG_BRACKET.match(text, offset):
        return _read_long_bracket(text, offset, line, "comment")[0]
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _read_long_bracket(text: str, offset: int, line: int, description: str) -> tuple[int, str]:
    """Return the end and the content of `[==[ … ]==]` at this offset, without a leading line break."""
    opening = _LONG_BRACKET.match(text, offset)
    assert opening is not None
    start = opening.end()
    end = text.find(f"]{opening[1]}]", start)
    if end < 0:
        raise LuaSyntaxError(line + text.count("\n", offset), f"unfinished long {description} near '<eof>'")
    inner = text[start:end].replace("\r\n", "\n")
    return end + len(opening[1]) + 2, inner.removeprefix("\n")


def _decode_string(literal: str, line: int) -> str:
    if "\\" not in literal:
        return literal[1:-1]

    def decode_escape(match: re.Match[bytes]) -> bytes:
        decimal, two_hex, point, character = match.groups()
        if decimal and int(decimal) < 256:
            return bytes([int(decimal)])
        if two_hex:
            return bytes([int(two_hex, 16)])
        if point and int(point, 16) < 0x110000:
            return chr(int(point, 16)).encode("utf-8", "surrogatepass")
        if not (decimal or point or character):
            return b""  # \z skips the following whitespace
        if character in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[character]
        raise LuaSyntaxError(line, f"invalid escape sequence near '{_shorten(literal)}'")

    # A script may write a character as single bytes, so escapes are decoded as bytes first.
    raw = literal[1:-1].encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(decode_escape, raw).decode("utf-8", "surrogateescape")


def _check_number(literal: str, line: int) -> str:
    match = _NUMERAL.match(literal)
    if match is None or (match.end() < len(literal) and not _NUMBER_SUFFIX.fullmatch(literal, match.end())):
        raise LuaSyntaxError(line, f"malformed number near '{_shorten(literal)}'")
    return literal


def _unexpected_symbol_error(text: str, offset: int, line: int) -> LuaSyntaxError:
    while text[offset] in " \t":
        offset += 1
    character = text[offset]
    if character in "'\"":
        end = text.find("\n", offset)
        remainder = text[offset:] if end < 0 else text[offset:end]
        return LuaSyntaxError(line, f"unfinished string near '{_shorten(remainder)}'")
    return LuaSyntaxError(
        line, f"unexpected symbol near '{character if character.isprintable() else ascii(character)[1:-1]}'"
    )


def _shorten(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:37]}..."
