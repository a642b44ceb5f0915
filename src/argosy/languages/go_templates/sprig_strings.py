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

from argosy.kube.objects.go_format import quote
from argosy.languages import go_regexp_replacement
from argosy.languages.expr.compiled_nodes import MAX_PATTERN_CHARACTERS, MAX_SUBJECT_CHARACTERS
from argosy.languages.go_printf import format_value
from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError, compile_go_regexp
from argosy.languages.go_templates.lexer import TemplateError

Function = Callable[..., Any]


def require_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"expected a string, not {format_value(value)[:40]!r}; toString makes one")


def to_strings(value: Any) -> list[str]:
    """Sprig converts the elements of a list to strings."""
    if value is None:
        return []
    return (
        [format_value(item) for item in value if item is not None] if isinstance(value, list) else [format_value(value)]
    )


def _repeat(state: Any, count: int, value: Any) -> str:
    state.budget.spend_characters(len(require_string(value)) * max(0, count))
    return require_string(value) * count


def _replace(state: Any, old: Any, new: Any, value: Any) -> str:
    state.budget.spend_characters(
        len(require_string(value)) + (value.count(old) if old else len(value) + 1) * len(require_string(new))
    )
    return require_string(value).replace(require_string(old), new)


def _indent(state: Any, count: int, value: Any) -> str:
    if not 0 <= count <= 1000:
        raise TemplateError("indent takes 0 to 1000 spaces")
    state.budget.spend_characters((count + 1) * (require_string(value).count("\n") + 1))
    return " " * count + require_string(value).replace("\n", "\n" + " " * count)


def _trunc(state: Any, count: int, value: Any) -> str:
    return require_string(value)[count:] if count < 0 else require_string(value)[:count]


def _substr(state: Any, start: int, end: int, value: Any) -> str:
    return require_string(value)[max(0, start) : end if end >= 0 else None]


def _abbrev(state: Any, width: int, value: Any) -> str:
    return require_string(value) if len(value) <= width or width < 4 else value[: width - 3] + "..."


def _join(state: Any, separator: Any, value: Any) -> str:
    strings = to_strings(value)
    state.budget.spend_characters(sum(map(len, strings)) + len(require_string(separator)) * len(strings))
    return str(separator).join(strings)


def _split(state: Any, separator: Any, value: Any) -> dict[str, str]:
    return {f"_{i}": part for i, part in enumerate(require_string(value).split(require_string(separator)))}


def _splitn(state: Any, separator: Any, max_parts: int, value: Any) -> dict[str, str]:
    return {
        f"_{i}": part
        for i, part in enumerate(require_string(value).split(require_string(separator), max(0, max_parts - 1)))
    }


def _wrap(state: Any, width: int, value: Any, line_separator: str = "\n") -> str:
    if not 0 < width <= 10_000:
        raise TemplateError("wrap takes a width from 1 to 10000")
    lines = require_string(value)[:MAX_SUBJECT_CHARACTERS].split("\n")
    return "\n".join(line_separator.join(textwrap.wrap(line, width, break_long_words=False)) or line for line in lines)


def _to_snake_case(value: Any) -> str:
    spaced = re.sub(
        r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", lambda m: f"{m[1] or m[3]}_{m[2] or ''}", require_string(value)
    )
    return re.sub(r"[\s_.-]+", "_", spaced).strip("_").lower()


def _to_camel_case(value: Any) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\s_.-]+", require_string(value)) if part)


def _title(value: Any) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda match: match[1] + match[2].upper(), require_string(value))


def _untitle(value: Any) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda match: match[1] + match[2].lower(), require_string(value))


def _build_regexp_function(run: Callable[..., Any]) -> Function:
    """Build a function of a pattern, a text and more arguments; the text is limited, and errors name the pattern."""

    def call(state: Any, pattern: Any, text: Any, *more: Any) -> Any:
        if len(require_string(text)) > MAX_SUBJECT_CHARACTERS:
            raise TemplateError(
                f"a pattern is limited to {MAX_SUBJECT_CHARACTERS} characters of text; shorten the text"
            )
        if len(require_string(pattern)) > MAX_PATTERN_CHARACTERS:
            raise TemplateError(f"the pattern exceeds {MAX_PATTERN_CHARACTERS} characters; shorten it")
        try:
            return run(state, pattern, text, *more)
        except InvalidGoRegexp as error:
            raise TemplateError(f"invalid pattern {pattern[:60]!r} ({error}); correct it") from error
        except MatchTooExpensiveError as error:
            raise TemplateError(
                f"the text is too long for the pattern {pattern[:60]!r}; shorten one of them"
            ) from error

    return call


def _regex_match(state: Any, pattern: str, text: str) -> bool:
    return compile_go_regexp(pattern)(text)


def _regex_match_or_false(state: Any, pattern: str, text: str) -> bool:
    """argo: Sprig ignores the error of an invalid pattern."""
    try:
        return _regex_match(state, pattern, text)
    except InvalidGoRegexp:
        return False


def _choose_plural(state: Any, one: Any, many: Any, count: Any) -> Any:
    return one if count == 1 else many


def _build_decoder(decode: Callable[[str], bytes]) -> Function:
    def decode_text(state: Any, value: Any) -> str:
        try:
            return decode(require_string(value)).decode("utf-8", "replace")
        except ValueError as error:
            return str(error)

    return decode_text


def _parse_url(state: Any, value: Any) -> dict[str, Any]:
    try:
        parts = urlsplit(require_string(value))
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise TemplateError(f"invalid URL {value[:60]!r} ({error}); correct it") from error
    return {"scheme": parts.scheme, "host": f"{host}{port}", "hostname": host, "path": parts.path,
            "query": parts.query, "fragment": parts.fragment, "opaque": "", "userinfo": ""}  # fmt: skip


def _build_digest(name: str) -> Function:
    return lambda state, value: hashlib.new(name, require_string(value).encode(), usedforsecurity=False).hexdigest()


STRING_FUNCTIONS: Final[Mapping[str, Function]] = {
    "trim": lambda state, value: require_string(value).strip(),
    "trimAll": lambda state, marks, value: require_string(value).strip(require_string(marks)),
    "trimPrefix": lambda state, start, value: require_string(value).removeprefix(require_string(start)),
    "trimSuffix": lambda state, end, value: require_string(value).removesuffix(require_string(end)),
    "upper": lambda state, value: require_string(value).upper(),
    "lower": lambda state, value: require_string(value).lower(),
    "title": lambda state, value: _title(value),
    "untitle": lambda state, value: _untitle(value),
    "repeat": _repeat,
    "replace": _replace,
    "substr": _substr,
    "trunc": _trunc,
    "abbrev": _abbrev,
    "nospace": lambda state, value: "".join(require_string(value).split()),
    "initials": lambda state, value: "".join(item[:1] for item in require_string(value).split()),
    "contains": lambda state, part, value: require_string(part) in require_string(value),
    "hasPrefix": lambda state, start, value: require_string(value).startswith(require_string(start)),
    "hasSuffix": lambda state, end, value: require_string(value).endswith(require_string(end)),
    "quote": lambda state, *values: " ".join(quote(format_value(item)) for item in values if item is not None),
    "squote": lambda state, *values: " ".join(f"'{format_value(item)}'" for item in values if item is not None),
    "cat": lambda state, *values: " ".join(format_value(item) for item in values if item is not None),
    "indent": _indent,
    "nindent": lambda state, count, value: "\n" + _indent(state, count, value),
    "plural": _choose_plural,
    "snakecase": lambda state, value: _to_snake_case(value),
    "kebabcase": lambda state, value: _to_snake_case(value).replace("_", "-"),
    "camelcase": lambda state, value: _to_camel_case(value),
    "swapcase": lambda state, value: require_string(value).swapcase(),
    "wrap": _wrap,
    "wrapWith": lambda state, width, mark, value: _wrap(state, width, value, require_string(mark)),
    "join": _join,
    "split": _split,
    "splitn": _splitn,
    "splitList": lambda state, separator, value: require_string(value).split(require_string(separator)),
    "toStrings": lambda state, value: to_strings(value),
    "sortAlpha": lambda state, value: sorted(to_strings(value)),
    "toString": lambda state, value: format_value(value),
    "regexMatch": _build_regexp_function(_regex_match_or_false),
    "mustRegexMatch": _build_regexp_function(_regex_match),
    "regexFind": _build_regexp_function(
        lambda state, pattern, text: next(iter(go_regexp_replacement.find_all(pattern, text, 1)), "")
    ),
    "regexFindAll": _build_regexp_function(
        lambda state, pattern, text, count: go_regexp_replacement.find_all(pattern, text, count)
    ),
    "regexReplaceAll": _build_regexp_function(
        lambda state, pattern, text, new: go_regexp_replacement.replace_all(
            pattern, text, require_string(new), state.budget.spend_characters
        )
    ),
    "regexReplaceAllLiteral": _build_regexp_function(
        lambda state, pattern, text, new: go_regexp_replacement.replace_all_literal(
            pattern, text, require_string(new), state.budget.spend_characters
        )
    ),
    "regexSplit": _build_regexp_function(
        lambda state, pattern, text, count: go_regexp_replacement.split(pattern, text, count)
    ),
    "regexQuoteMeta": lambda state, value: go_regexp_replacement.quote_meta(require_string(value)),
    "b64enc": lambda state, value: base64.b64encode(require_string(value).encode()).decode(),
    "b64dec": _build_decoder(lambda value: base64.b64decode(value, validate=True)),
    "b32enc": lambda state, value: base64.b32encode(require_string(value).encode()).decode(),
    "b32dec": _build_decoder(base64.b32decode),
    "sha1sum": _build_digest("sha1"),
    "sha256sum": _build_digest("sha256"),
    "sha512sum": _build_digest("sha512"),
    "adler32sum": lambda state, value: str(zlib.adler32(require_string(value).encode())),
    "urlParse": _parse_url,
    "base": lambda state, value: posixpath.basename(require_string(value).rstrip("/")) or ("/" if value else "."),
    "dir": lambda state, value: posixpath.normpath(posixpath.dirname(require_string(value)) or "."),
    "clean": lambda state, value: posixpath.normpath(require_string(value) or "."),
    "ext": lambda state, value: posixpath.splitext(require_string(value))[1],
    "isAbs": lambda state, value: require_string(value).startswith("/"),
}
