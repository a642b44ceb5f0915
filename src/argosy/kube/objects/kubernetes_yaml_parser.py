"""Parses YAML as the Kubernetes tools do.

In: text of any origin. Out: plain JSON data without shared values. Never: builds a value beyond the limits.

The parser consumes libyaml events, because no Python loader reads YAML as the Kubernetes tools do, and because the
depth must be checked before libyaml recurses too deeply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

import yaml

from argosy.errors import LimitError, ManifestError
from argosy.kube.objects.input_limits import InputLimits, build_depth_error, build_nodes_error, build_size_error
from argosy.kube.objects.yaml_scalars import (
    TYPED_FIRST_CHARACTERS,
    Scalar,
    ScalarError,
    YamlDialect,
    format_key,
    normalize_timestamp,
    refold_as_kustomize,
    resolve_scalar,
    resolve_tagged_scalar,
    to_json_number,
)

_Scalar: Final = yaml.ScalarEvent
_MapStart: Final = yaml.MappingStartEvent
_MapEnd: Final = yaml.MappingEndEvent
_SeqStart: Final = yaml.SequenceStartEvent
_SeqEnd: Final = yaml.SequenceEndEvent
_Alias: Final = yaml.AliasEvent

_UNFINISHED: Final = object()
_MERGE: Final = object()
_MISSING: Final = object()
_MAX_CACHED_SCALARS: Final = 4096


class YamlDocument(NamedTuple):
    value: Any
    line: int


def _build_python_parser(data: bytes) -> Any:
    """Return a pure-Python parser of the same events, ten times slower, for a PyYAML without libyaml."""

    class Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
        def __init__(self, stream: bytes) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)

    return Parser(data)


def _find_fastest_parser() -> Callable[[bytes], Any]:
    try:
        from yaml._yaml import CParser
    except ImportError:
        return _build_python_parser
    return CParser


_create_parser: Final = _find_fastest_parser()


def parse_documents(
    text: str | bytes, *, dialect: YamlDialect, where: str, strict: bool, limits: InputLimits
) -> Iterator[YamlDocument]:
    """Parse every document, with its first line; an empty document is None."""
    if len(text) > limits.size:
        raise build_size_error(len(text), limits, where)
    try:
        data = text.encode() if isinstance(text, str) else text
        if len(data) > limits.size:
            raise build_size_error(len(data), limits, where)
        yield from _DocumentReader(_create_parser(data), dialect, where, strict, limits).read_documents()
    except ManifestError as error:
        if mistake := _describe_common_mistake(data, error.line) if b"{{" in data else "":
            raise ManifestError(mistake, where=where, line=error.line) from None
        raise
    except yaml.MarkedYAMLError as error:
        raise _build_syntax_error(error, where, data) from None
    except yaml.reader.ReaderError as error:
        message = f"{error.reason}: remove the character, or write it as an escape in double quotes"
        raise ManifestError(message, where=where, line=_find_error_line(error, data)) from None
    except UnicodeError as error:
        raise ManifestError(f"not valid Unicode text ({error}): save the file as UTF-8", where=where) from None


def _build_syntax_error(error: yaml.MarkedYAMLError, where: str, data: bytes) -> ManifestError:
    mark = error.problem_mark or error.context_mark
    line = min(mark.line, data.count(b"\n")) + 1 if mark else 0  # an error at the end of the text is on its last line
    context = f" {error.context}" if error.context else ""
    if error.context_mark and mark and error.context_mark.line != mark.line:
        context += f" from line {error.context_mark.line + 1} on"
    if mistake := _describe_common_mistake(data, line):
        return ManifestError(mistake, where=where, line=line)
    message = f"{error.problem or 'not valid YAML'}{context}: correct the YAML there"
    return ManifestError(message, where=where, line=line)


def _describe_common_mistake(data: bytes, line: int) -> str:
    """Describe the two most common mistakes, which the parser's own message does not name; else return ""."""
    lines = data.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    if b"\t" in text[: len(text) - len(text.lstrip())]:
        return "YAML is indented with spaces, but this line starts with a tab: replace the tab"
    if b"{{" in text and b"}}" in text:
        return "this is a template ({{ }}), not YAML: render it first, or put it in quotes"
    return ""


def _find_error_line(error: yaml.reader.ReaderError, data: bytes) -> int:
    return data.count(b"\n", 0, error.position) + 1 if isinstance(error.position, int) else 1


class _DocumentReader:
    """Converts the events of one text to values. The methods recurse, but never deeper than the limit."""

    __slots__ = (
        "anchors",
        "depth_left",
        "dialect",
        "expansions_left",
        "is_kustomize",
        "limits",
        "next_event",
        "nodes_left",
        "refuses_duplicates",
        "scalar_cache",
        "where",
    )  # fmt: skip

    def __init__(self, parser: Any, dialect: YamlDialect, where: str, strict: bool, limits: InputLimits) -> None:
        self.next_event: Callable[[], Any] = parser.get_event
        self.dialect = dialect
        self.is_kustomize = dialect is YamlDialect.KUSTOMIZE
        self.refuses_duplicates = strict or self.is_kustomize
        self.where = where
        self.limits = limits
        self.scalar_cache = _SCALAR_CACHES[dialect]
        self.anchors: dict[str, Any] = {}
        self.nodes_left = limits.nodes
        self.expansions_left = limits.expanded
        self.depth_left = limits.depth

    def read_documents(self) -> Iterator[YamlDocument]:
        next_event = self.next_event
        next_event()
        count = 0
        while type(next_event()) is yaml.DocumentStartEvent:
            self.anchors = {}
            event = next_event()
            count += 1
            if count > self.limits.documents:
                message = f"more than {self.limits.documents} documents: split the file"
                raise LimitError(message, where=self.where, line=event.start_mark.line + 1)
            line: int = event.start_mark.line + 1
            yield YamlDocument(self.read_value(event), line)
            next_event()

    def read_value(self, event: Any) -> Any:
        kind = type(event)
        if kind is _Scalar:
            return self.read_scalar(event)
        if kind is _MapStart:
            return self.read_mapping(event)
        if kind is _SeqStart:
            return self.read_sequence(event)
        value = self.expand_alias(event)
        return self.check_finite(event, value) if type(value) is float else value

    def read_scalar(self, event: Any) -> Scalar:
        value = self.resolve_scalar(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return self.check_finite(event, value) if type(value) is float else value

    def check_finite(self, event: Any, number: float) -> int | float:
        try:
            return to_json_number(number)
        except ScalarError as error:
            self.fail(event, str(error))

    def resolve_scalar(self, event: Any) -> Scalar:
        text: str = event.value
        if event.implicit[0]:
            # k8s: the tag `!` makes any scalar a string; kustomize only honours quotes.
            if event.tag and (event.style or not self.is_kustomize):
                return text
            if text and text[0] not in TYPED_FIRST_CHARACTERS:
                return text
            value: Any = self.scalar_cache.get(text, _MISSING)
            return self.resolve_and_cache(text) if value is _MISSING else value
        if event.tag is None or event.tag == "!":
            return refold_as_kustomize(text) if event.style == ">" and self.is_kustomize else text
        try:
            return resolve_tagged_scalar(text, event.tag, self.dialect)
        except ScalarError as error:
            self.fail(event, str(error))

    def resolve_and_cache(self, text: str) -> Scalar:
        value = resolve_scalar(text, self.dialect)
        if len(text) <= 40:
            if len(self.scalar_cache) >= _MAX_CACHED_SCALARS:
                self.scalar_cache.clear()
            self.scalar_cache[text] = value
        return value

    def enter(self, event: Any) -> None:
        self.depth_left -= 1
        if self.depth_left < 0:
            raise build_depth_error(self.limits.depth, self.where, event.start_mark.line + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = _UNFINISHED

    def leave(self, event: Any, value: Any) -> Any:
        self.depth_left += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return value

    def read_sequence(self, start: Any) -> list[Any]:
        self.enter(start)
        next_event, read = self.next_event, self.read_value
        items: list[Any] = []
        while type(event := next_event()) is not _SeqEnd:
            self.nodes_left = left = self.nodes_left - 1
            if left < 0:
                raise build_nodes_error(self.limits, self.where, event.start_mark.line + 1)
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                text = event.value
                if text and text[0] not in TYPED_FIRST_CHARACTERS and event.style != ">":
                    items.append(text)
                    continue
            items.append(read(event))
        self.leave(start, items)
        return items

    def read_mapping(self, start: Any) -> dict[str, Any]:
        self.enter(start)
        next_event, read, refuses_duplicates = self.next_event, self.read_value, self.refuses_duplicates
        result: dict[str, Any] = {}
        merges: list[Any] = []
        is_kustomize_flow = self.is_kustomize and start.flow_style
        while type(event := next_event()) is not _MapEnd:
            self.nodes_left = left = self.nodes_left - 2
            if left < 0:
                raise build_nodes_error(self.limits, self.where, event.start_mark.line + 1)
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                key = event.value
                if event.implicit[0] and (not key or key[0] in TYPED_FIRST_CHARACTERS or key == "<<"):
                    key = self.read_key(event)
            else:
                key = self.read_key(event)
            if key is _MERGE:
                self.read_merge(event, result, merges)
                continue
            if refuses_duplicates and key in result:
                self.fail_duplicate_key(event, key)
            event = next_event()
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                text = event.value
                if text and text[0] not in TYPED_FIRST_CHARACTERS and event.style != ">":
                    result[key] = text
                    continue
                if is_kustomize_flow and not text and event.implicit[0]:
                    # k8s: kustomize reads a missing value in a flow mapping as an empty string.
                    result[key] = ""
                    continue
            result[key] = read(event)
        for merged in merges:
            for key, value in merged.items():
                result.setdefault(key, value)
        self.leave(start, result)
        return result

    def read_key(self, event: Any) -> Any:
        if type(event) is _Scalar:
            if event.value == "<<" and (event.implicit[0] or event.tag == "tag:yaml.org,2002:merge"):
                return _MERGE
            key: Any = self.resolve_scalar(event)
            if event.anchor is not None:
                self.anchors[event.anchor] = key
        elif type(event) is _Alias:
            key = self.expand_alias(event)
        else:
            key = ()
        if isinstance(key, dict | list | tuple):
            self.fail(event, "a mapping or list cannot be a key: use a string")
        if self.is_kustomize:
            return self.read_kustomize_key(event, key)
        try:
            return format_key(key)
        except ScalarError as error:
            self.fail(event, str(error))

    def read_kustomize_key(self, event: Any, key: Any) -> str:
        # k8s: kustomize cannot convert a mapping with non-string keys to JSON.
        if self.depth_left == self.limits.depth - 1 and type(event) is _Scalar:
            return str(event.value)  # k8s: but it accepts the outermost keys as written
        is_timestamp = type(event) is _Scalar and event.implicit[0] and normalize_timestamp(event.value) is not None
        if type(key) is not str or is_timestamp:
            self.fail(event, f"the key {getattr(event, 'value', key)!s} is not a string: put it in quotes")
        return key

    def fail_duplicate_key(self, event: Any, key: str) -> NoReturn:
        template = "mapping key {} already defined" if self.is_kustomize else "key {} already set in map"
        quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
        self.fail(event, template.format(quoted) + ": keep one of them")

    def expand_alias(self, event: Any) -> Any:
        value = self.anchors.get(event.anchor, _MISSING)
        if value is _MISSING:
            self.fail(event, f"unknown anchor '{event.anchor}' referenced: define it before, in this document")
        if value is _UNFINISHED:
            self.fail(event, f"anchor '{event.anchor}' value contains itself: write the value out")
        return self.copy_value(value, self.depth_left, event)

    def copy_value(self, value: Any, depth: int, event: Any) -> Any:
        """Copy the value of an alias: an edit of a shared value would change two places."""
        self.expansions_left -= 1 + (len(value) >> 5 if type(value) is str else 0)
        if self.expansions_left < 0:
            message = f"aliases expand to more than {self.limits.expanded} values: use fewer aliases"
            raise LimitError(message, where=self.where, line=event.start_mark.line + 1)
        if type(value) is not dict and type(value) is not list:
            return value
        if depth <= 0:
            raise build_depth_error(self.limits.depth, self.where, event.start_mark.line + 1)
        if type(value) is dict:
            self.expansions_left -= sum(map(len, value)) >> 5
            return {key: self.copy_value(child, depth - 1, event) for key, child in value.items()}
        return [self.copy_value(child, depth - 1, event) for child in value]

    def read_merge(self, event: Any, result: dict[str, Any], merges: list[Any]) -> None:
        """Read a `<<` merge: the last occurrence of a key wins for Kubernetes, the mapping's own keys for kustomize."""
        if self.is_kustomize and merges:
            self.fail_duplicate_key(event, "<<")
        start = self.next_event()
        source = self.read_value(start)
        parts = source if type(start) is _SeqStart else [source]
        for part in parts:
            if type(part) is not dict:
                self.fail(event, "map merge requires map or sequence of maps as the value")
        if self.is_kustomize:
            merges.extend(parts)
            return
        for part in reversed(parts):
            if self.refuses_duplicates:
                for key in part.keys() & result.keys():
                    self.fail_duplicate_key(event, key)
            result.update(part)

    def fail(self, event: Any, message: str) -> NoReturn:
        raise ManifestError(message, where=self.where, line=event.start_mark.line + 1)


_SCALAR_CACHES: Final[dict[YamlDialect, dict[str, Scalar]]] = {dialect: {} for dialect in YamlDialect}
