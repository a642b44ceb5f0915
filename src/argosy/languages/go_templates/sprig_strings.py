"""Sprig's string functions.

In: a state (for its budget), values. Out: values. Never: the environment, random numbers, or a file.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import textwrap
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.languages.expr.lexer import ExprError
from argosy.languages.expr.nodes import MOST_SUBJECT, pattern
from argosy.languages.go_format import quoted, text_of
from argosy.languages.go_templates.lexer import TemplateError

Function = Callable[..., Any]
_GROUP: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"expected a string, not {text_of(value)[:40]!r}; toString makes one")


def texts(value: Any) -> list[str]:
    """Sprig converts the elements of a list to strings."""
    if value is None:
        return []
    return [text_of(each) for each in value if each is not None] if isinstance(value, list) else [text_of(value)]


def _repeat(state: Any, count: int, value: Any) -> str:
    state.meter.grow(len(text(value)) * max(0, count))
    return text(value) * count


def _replace(state: Any, old: Any, new: Any, value: Any) -> str:
    state.meter.grow(len(text(value)) + (value.count(old) if old else len(value) + 1) * len(text(new)))
    return text(value).replace(text(old), new)


def _indent(state: Any, count: int, value: Any) -> str:
    if not 0 <= count <= 1000:
        raise TemplateError("indent takes 0 to 1000 spaces")
    state.meter.grow((count + 1) * (text(value).count("\n") + 1))
    return " " * count + text(value).replace("\n", "\n" + " " * count)


def _trunc(state: Any, count: int, value: Any) -> str:
    return text(value)[count:] if count < 0 else text(value)[:count]


def _substr(state: Any, start: int, end: int, value: Any) -> str:
    return text(value)[max(0, start) : end if end >= 0 else None]


def _abbrev(state: Any, width: int, value: Any) -> str:
    return text(value) if len(value) <= width or width < 4 else value[: width - 3] + "..."


def _join(state: Any, separator: Any, value: Any) -> str:
    found = texts(value)
    state.meter.grow(sum(map(len, found)) + len(text(separator)) * len(found))
    return str(separator).join(found)


def _split(state: Any, separator: Any, value: Any) -> dict[str, str]:
    return {f"_{at}": each for at, each in enumerate(text(value).split(text(separator)))}


def _splitn(state: Any, separator: Any, most: int, value: Any) -> dict[str, str]:
    return {f"_{at}": each for at, each in enumerate(text(value).split(text(separator), max(0, most - 1)))}


def _wrap(state: Any, width: int, value: Any, mark: str = "\n") -> str:
    if not 0 < width <= 10_000:
        raise TemplateError("wrap takes a width from 1 to 10000")
    lines = text(value)[:MOST_SUBJECT].split("\n")
    return "\n".join(mark.join(textwrap.wrap(each, width, break_long_words=False)) or each for each in lines)


def _snake(value: Any) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", lambda m: f"{m[1] or m[3]}_{m[2] or ''}", text(value))
    return re.sub(r"[\s_.-]+", "_", spaced).strip("_").lower()


def _camel(value: Any) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\s_.-]+", text(value)) if part)


def _title(value: Any) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda found: found[1] + found[2].upper(), text(value))


def _untitle(value: Any) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda found: found[1] + found[2].lower(), text(value))


def _found(value: Any, source: Any) -> tuple[re.Pattern[str], str]:
    if len(text(value)) > MOST_SUBJECT:
        raise TemplateError(f"a pattern is limited to {MOST_SUBJECT} characters of text; shorten the text")
    try:
        return pattern(text(source)), value
    except ExprError as error:
        raise TemplateError(error.message) from error


def _find_all(state: Any, source: Any, value: Any, most: int) -> list[str]:
    compiled, subject = _found(value, source)
    found = [each[0] for each in compiled.finditer(subject)]
    return found if most < 0 else found[:most]


def _regex_replace(state: Any, source: Any, value: Any, new: Any) -> str:
    """Go writes groups as $1, ${1} and ${name}."""
    compiled, subject = _found(value, source)

    def group(found: re.Match[str], name: str) -> str:
        try:
            return found[int(name) if name.isdecimal() else name] or ""
        except (IndexError, ValueError):
            return ""

    def fill(found: re.Match[str]) -> str:
        made = _GROUP.sub(lambda each: group(found, each[1] or each[2]), text(new))
        state.meter.grow(len(made))
        return made

    return compiled.sub(fill, subject)


def _regex_literal(state: Any, source: Any, value: Any, new: Any) -> str:
    compiled, subject = _found(value, source)

    def fill(found: re.Match[str]) -> str:
        state.meter.grow(len(text(new)))
        return text(new)

    return compiled.sub(fill, subject)


def _regex_split(state: Any, source: Any, value: Any, most: int) -> list[str]:
    compiled, subject = _found(value, source)
    parts: list[str] = []
    at = 0
    for each in compiled.finditer(subject):
        if most > 0 and len(parts) == most - 1:
            break
        if each.end() == 0:
            continue
        parts.append(subject[at : each.start()])
        at = each.end()
    return [*parts, subject[at:]]


def _plural(state: Any, one: Any, many: Any, count: Any) -> Any:
    return one if count == 1 else many


def _decoded(decode: Callable[[str], bytes]) -> Function:
    def read(state: Any, value: Any) -> str:
        try:
            return decode(text(value)).decode("utf-8", "replace")
        except ValueError as error:
            return str(error)

    return read


def _url(state: Any, value: Any) -> dict[str, Any]:
    try:
        parts = urlsplit(text(value))
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise TemplateError(f"invalid URL {value[:60]!r} ({error}); correct it") from error
    return {"scheme": parts.scheme, "host": f"{host}{port}", "hostname": host, "path": parts.path,
            "query": parts.query, "fragment": parts.fragment, "opaque": "", "userinfo": ""}  # fmt: skip


def _digest(name: str) -> Function:
    return lambda state, value: hashlib.new(name, text(value).encode(), usedforsecurity=False).hexdigest()


TEXT: Final[Mapping[str, Function]] = {
    "trim": lambda state, value: text(value).strip(),
    "trimAll": lambda state, marks, value: text(value).strip(text(marks)),
    "trimPrefix": lambda state, start, value: text(value).removeprefix(text(start)),
    "trimSuffix": lambda state, end, value: text(value).removesuffix(text(end)),
    "upper": lambda state, value: text(value).upper(),
    "lower": lambda state, value: text(value).lower(),
    "title": lambda state, value: _title(value),
    "untitle": lambda state, value: _untitle(value),
    "repeat": _repeat,
    "replace": _replace,
    "substr": _substr,
    "trunc": _trunc,
    "abbrev": _abbrev,
    "nospace": lambda state, value: "".join(text(value).split()),
    "initials": lambda state, value: "".join(each[:1] for each in text(value).split()),
    "contains": lambda state, part, value: text(part) in text(value),
    "hasPrefix": lambda state, start, value: text(value).startswith(text(start)),
    "hasSuffix": lambda state, end, value: text(value).endswith(text(end)),
    "quote": lambda state, *values: " ".join(quoted(text_of(each)) for each in values if each is not None),
    "squote": lambda state, *values: " ".join(f"'{text_of(each)}'" for each in values if each is not None),
    "cat": lambda state, *values: " ".join(text_of(each) for each in values if each is not None),
    "indent": _indent,
    "nindent": lambda state, count, value: "\n" + _indent(state, count, value),
    "plural": _plural,
    "snakecase": lambda state, value: _snake(value),
    "kebabcase": lambda state, value: _snake(value).replace("_", "-"),
    "camelcase": lambda state, value: _camel(value),
    "swapcase": lambda state, value: text(value).swapcase(),
    "wrap": _wrap,
    "wrapWith": lambda state, width, mark, value: _wrap(state, width, value, text(mark)),
    "join": _join,
    "split": _split,
    "splitn": _splitn,
    "splitList": lambda state, separator, value: text(value).split(text(separator)),
    "toStrings": lambda state, value: texts(value),
    "sortAlpha": lambda state, value: sorted(texts(value)),
    "toString": lambda state, value: text_of(value),
    "regexMatch": lambda state, source, value: _found(value, source)[0].search(value) is not None,
    "regexFind": lambda state, source, value: (_find_all(state, source, value, 1) or [""])[0],
    "regexFindAll": _find_all,
    "regexReplaceAll": _regex_replace,
    "regexReplaceAllLiteral": _regex_literal,
    "regexSplit": _regex_split,
    "regexQuoteMeta": lambda state, value: re.escape(text(value)),
    "b64enc": lambda state, value: base64.b64encode(text(value).encode()).decode(),
    "b64dec": _decoded(lambda value: base64.b64decode(value, validate=True)),
    "b32enc": lambda state, value: base64.b32encode(text(value).encode()).decode(),
    "b32dec": _decoded(base64.b32decode),
    "sha1sum": _digest("sha1"),
    "sha256sum": _digest("sha256"),
    "sha512sum": _digest("sha512"),
    "adler32sum": lambda state, value: str(zlib.adler32(text(value).encode())),
    "urlParse": _url,
    "base": lambda state, value: posixpath.basename(text(value).rstrip("/")) or ("/" if value else "."),
    "dir": lambda state, value: posixpath.normpath(posixpath.dirname(text(value)) or "."),
    "clean": lambda state, value: posixpath.normpath(text(value) or "."),
    "ext": lambda state, value: posixpath.splitext(text(value))[1],
    "isAbs": lambda state, value: text(value).startswith("/"),
}
