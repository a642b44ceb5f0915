"""Splits a Lua script into tokens.

In: its text. Out: `LuaTokens`, three lists of equal length: kind, value and line. The kind of a keyword or operator is
its text. Never: takes more than linear time; raises anything but LuaSyntaxError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from argosy.errors import UserError

MOST_TEXT = 256 * 1024
BYTE_ORDER_MARK = "\ufeff"

NAME, STRING, NUMBER, END = "<name>", "<string>", "<number>", "<eof>"
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
_LONG = re.compile(r"\[(=*+)\[")
_NUMERAL = re.compile(
    r"0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)(?:[pP][+-]?[0-9]++)?"
    r"|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
)
_SUFFIX = re.compile(r"(?:[uU]?[lL]{2}|[iI])")  # number suffixes of LuaJIT
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
class Tokens:
    kinds: list[str]
    values: list[str]
    lines: list[int]


def tokenize(text: str) -> Tokens:
    """Return the tokens. The value of a string token is the decoded string, of any other token its text."""
    if len(text) > MOST_TEXT or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > MOST_TEXT):
        raise LuaSyntaxError(1, f"the script is longer than {MOST_TEXT // 1024} KiB; make it smaller")
    kinds: list[str] = []
    values: list[str] = []
    lines: list[int] = []
    place, line, size = _beginning(text), 1, len(text)
    while place < size:
        found = _TOKEN.match(text, place)
        if found is None:
            raise _unexpected(text, place, line)
        group = found.lastgroup or ""
        word, end = found[group], found.end()
        next_line = line
        if group == "word":
            kind = word if word in KEYWORDS else NAME
        elif group == "sign":
            kind = word
        elif group == "number":
            kind, word = NUMBER, _number(word, line)
        elif group == "string":
            next_line += word.count("\n")
            kind, word = STRING, _string(word, line)
        elif group == "long":
            begin = found.start(group)
            end, word = _long(text, begin, line, "string")
            next_line += text.count("\n", begin, end)
            kind = STRING
        else:  # whitespace, a comment or the end: not a token
            end = _after_comment(text, end, line) if group == "comment" else end
            line += text.count("\n", place, end)
            place = end
            continue
        kinds.append(kind)
        values.append(word)
        lines.append(line)
        place, line = end, next_line
    return Tokens([*kinds, END], [*values, END], [*lines, line])


def _beginning(text: str) -> int:
    """Return the offset after the parts that LuaJIT skips: a byte order mark, and a first line that starts with #."""
    place = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    if not text.startswith("#", place):
        return place
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _after_comment(text: str, place: int, line: int) -> int:
    if _LONG.match(text, place):
        return _long(text, place, line, "comment")[0]
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _long(text: str, place: int, line: int, what: str) -> tuple[int, str]:
    """Return the end and the content of `[==[ … ]==]` at this offset, without a leading line break."""
    opened = _LONG.match(text, place)
    assert opened is not None
    begin = opened.end()
    end = text.find(f"]{opened[1]}]", begin)
    if end < 0:
        raise LuaSyntaxError(line + text.count("\n", place), f"unfinished long {what} near '<eof>'")
    inner = text[begin:end].replace("\r\n", "\n")
    return end + len(opened[1]) + 2, inner.removeprefix("\n")


def _string(word: str, line: int) -> str:
    if "\\" not in word:
        return word[1:-1]

    def plain(found: re.Match[bytes]) -> bytes:
        decimal, two_hex, point, other = found.groups()
        if decimal and int(decimal) < 256:
            return bytes([int(decimal)])
        if two_hex:
            return bytes([int(two_hex, 16)])
        if point and int(point, 16) < 0x110000:
            return chr(int(point, 16)).encode("utf-8", "surrogatepass")
        if not (decimal or point or other):
            return b""  # \z skips the following whitespace
        if other in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[other]
        raise LuaSyntaxError(line, f"invalid escape sequence near '{_short(word)}'")

    # A script may write a character as single bytes, so escapes are decoded as bytes first.
    raw = word[1:-1].encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(plain, raw).decode("utf-8", "surrogateescape")


def _number(word: str, line: int) -> str:
    found = _NUMERAL.match(word)
    if found is None or (found.end() < len(word) and not _SUFFIX.fullmatch(word, found.end())):
        raise LuaSyntaxError(line, f"malformed number near '{_short(word)}'")
    return word


def _unexpected(text: str, place: int, line: int) -> LuaSyntaxError:
    while text[place] in " \t":
        place += 1
    sign = text[place]
    if sign in "'\"":
        end = text.find("\n", place)
        rest = text[place:] if end < 0 else text[place:end]
        return LuaSyntaxError(line, f"unfinished string near '{_short(rest)}'")
    return LuaSyntaxError(line, f"unexpected symbol near '{sign if sign.isprintable() else ascii(sign)[1:-1]}'")


def _short(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:37]}..."
