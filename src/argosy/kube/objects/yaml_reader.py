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
from argosy.kube.objects.input_limits import Limits, depth_error, nodes_error, size_error
from argosy.kube.objects.yaml_scalars import (
    TYPED_FIRST,
    Profile,
    Scalar,
    ScalarError,
    json_value,
    key_text,
    refolded,
    resolve,
    resolve_tagged,
    timestamp,
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
_KNOWN_MOST: Final = 4096


class Document(NamedTuple):
    value: Any
    line: int


def _python_parser(data: bytes) -> Any:
    """Return a pure-Python parser of the same events, ten times slower, for a PyYAML without libyaml."""

    class Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
        def __init__(self, stream: bytes) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)

    return Parser(data)


def _fastest_parser() -> Callable[[bytes], Any]:
    try:
        from yaml._yaml import CParser
    except ImportError:
        return _python_parser
    return CParser


_parser: Final = _fastest_parser()


def documents(text: str | bytes, *, profile: Profile, where: str, strict: bool, limits: Limits) -> Iterator[Document]:
    """Parse every document, with its first line; an empty document is None."""
    if len(text) > limits.size:
        raise size_error(len(text), limits, where)
    try:
        data = text.encode() if isinstance(text, str) else text
        if len(data) > limits.size:
            raise size_error(len(data), limits, where)
        yield from _Reader(_parser(data), profile, where, strict, limits).documents()
    except ManifestError as error:
        if special := _special(data, error.line) if b"{{" in data else "":
            raise ManifestError(special, where=where, line=error.line) from None
        raise
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, where, data) from None
    except yaml.reader.ReaderError as error:
        message = f"{error.reason}: remove the character, or write it as an escape in double quotes"
        raise ManifestError(message, where=where, line=_line_of(error, data)) from None
    except UnicodeError as error:
        raise ManifestError(f"not valid Unicode text ({error}): save the file as UTF-8", where=where) from None


def _syntax(error: yaml.MarkedYAMLError, where: str, data: bytes) -> ManifestError:
    mark = error.problem_mark or error.context_mark
    line = min(mark.line, data.count(b"\n")) + 1 if mark else 0  # an error at the end of the text is on its last line
    context = f" {error.context}" if error.context else ""
    if error.context_mark and mark and error.context_mark.line != mark.line:
        context += f" from line {error.context_mark.line + 1} on"
    if special := _special(data, line):
        return ManifestError(special, where=where, line=line)
    message = f"{error.problem or 'not valid YAML'}{context}: correct the YAML there"
    return ManifestError(message, where=where, line=line)


def _special(data: bytes, line: int) -> str:
    """Describe the two most common mistakes, which the parser's own message does not name; else return ""."""
    lines = data.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    if b"\t" in text[: len(text) - len(text.lstrip())]:
        return "YAML is indented with spaces, but this line starts with a tab: replace the tab"
    if b"{{" in text and b"}}" in text:
        return "this is a template ({{ }}), not YAML: render it first, or put it in quotes"
    return ""


def _line_of(error: yaml.reader.ReaderError, data: bytes) -> int:
    return data.count(b"\n", 0, error.position) + 1 if isinstance(error.position, int) else 1


class _Reader:
    """Converts the events of one text to values. The methods recurse, but never deeper than the limit."""

    __slots__ = (
        "anchors", "depth", "expanded", "get", "known", "kustomize", "limits", "nodes", "profile", "unique", "where",
    )  # fmt: skip

    def __init__(self, parser: Any, profile: Profile, where: str, strict: bool, limits: Limits) -> None:
        self.get: Callable[[], Any] = parser.get_event
        self.profile = profile
        self.kustomize = profile is Profile.KUSTOMIZE
        self.unique = strict or self.kustomize
        self.where = where
        self.limits = limits
        self.known = _KNOWN[profile]
        self.anchors: dict[str, Any] = {}
        self.nodes = limits.nodes
        self.expanded = limits.expanded
        self.depth = limits.depth

    def documents(self) -> Iterator[Document]:
        get = self.get
        get()
        count = 0
        while type(get()) is yaml.DocumentStartEvent:
            self.anchors = {}
            event = get()
            count += 1
            if count > self.limits.documents:
                message = f"more than {self.limits.documents} documents: split the file"
                raise LimitError(message, where=self.where, line=event.start_mark.line + 1)
            line: int = event.start_mark.line + 1
            yield Document(self.value(event), line)
            get()

    def value(self, event: Any) -> Any:
        kind = type(event)
        if kind is _Scalar:
            return self.scalar(event)
        if kind is _MapStart:
            return self.mapping(event)
        if kind is _SeqStart:
            return self.sequence(event)
        value = self.alias(event)
        return self.finite(event, value) if type(value) is float else value

    def scalar(self, event: Any) -> Scalar:
        value = self.raw_scalar(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return self.finite(event, value) if type(value) is float else value

    def finite(self, event: Any, number: float) -> int | float:
        try:
            return json_value(number)
        except ScalarError as error:
            self.fail(event, str(error))

    def raw_scalar(self, event: Any) -> Scalar:
        text: str = event.value
        if event.implicit[0]:
            # k8s: the tag `!` makes any scalar a string; kustomize only honours quotes.
            if event.tag and (event.style or not self.kustomize):
                return text
            if text and text[0] not in TYPED_FIRST:
                return text
            value: Any = self.known.get(text, _MISSING)
            return self.learn(text) if value is _MISSING else value
        if event.tag is None or event.tag == "!":
            return refolded(text) if event.style == ">" and self.kustomize else text
        try:
            return resolve_tagged(text, event.tag, self.profile)
        except ScalarError as error:
            self.fail(event, str(error))

    def learn(self, text: str) -> Scalar:
        value = resolve(text, self.profile)
        if len(text) <= 40:
            if len(self.known) >= _KNOWN_MOST:
                self.known.clear()
            self.known[text] = value
        return value

    def enter(self, event: Any) -> None:
        self.depth -= 1
        if self.depth < 0:
            raise depth_error(self.limits.depth, self.where, event.start_mark.line + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = _UNFINISHED

    def leave(self, event: Any, value: Any) -> Any:
        self.depth += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return value

    def sequence(self, start: Any) -> list[Any]:
        self.enter(start)
        get, read = self.get, self.value
        items: list[Any] = []
        while type(event := get()) is not _SeqEnd:
            self.nodes = left = self.nodes - 1
            if left < 0:
                raise nodes_error(self.limits, self.where, event.start_mark.line + 1)
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                text = event.value
                if text and text[0] not in TYPED_FIRST and event.style != ">":
                    items.append(text)
                    continue
            items.append(read(event))
        self.leave(start, items)
        return items

    def mapping(self, start: Any) -> dict[str, Any]:
        self.enter(start)
        get, read, unique = self.get, self.value, self.unique
        found: dict[str, Any] = {}
        merges: list[Any] = []
        flow = self.kustomize and start.flow_style
        while type(event := get()) is not _MapEnd:
            self.nodes = left = self.nodes - 2
            if left < 0:
                raise nodes_error(self.limits, self.where, event.start_mark.line + 1)
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                key = event.value
                if event.implicit[0] and (not key or key[0] in TYPED_FIRST or key == "<<"):
                    key = self.key(event)
            else:
                key = self.key(event)
            if key is _MERGE:
                self.merge(event, found, merges)
                continue
            if unique and key in found:
                self.repeated(event, key)
            event = get()
            if type(event) is _Scalar and event.tag is None and event.anchor is None:
                text = event.value
                if text and text[0] not in TYPED_FIRST and event.style != ">":
                    found[key] = text
                    continue
                if flow and not text and event.implicit[0]:
                    # k8s: kustomize reads a missing value in a flow mapping as an empty string.
                    found[key] = ""
                    continue
            found[key] = read(event)
        for merged in merges:
            for key, value in merged.items():
                found.setdefault(key, value)
        self.leave(start, found)
        return found

    def key(self, event: Any) -> Any:
        if type(event) is _Scalar:
            if event.value == "<<" and (event.implicit[0] or event.tag == "tag:yaml.org,2002:merge"):
                return _MERGE
            key: Any = self.raw_scalar(event)
            if event.anchor is not None:
                self.anchors[event.anchor] = key
        elif type(event) is _Alias:
            key = self.alias(event)
        else:
            key = ()
        if isinstance(key, dict | list | tuple):
            self.fail(event, "a mapping or list cannot be a key: use a string")
        if self.kustomize:
            return self.kustomize_key(event, key)
        try:
            return key_text(key)
        except ScalarError as error:
            self.fail(event, str(error))

    def kustomize_key(self, event: Any, key: Any) -> str:
        # k8s: kustomize cannot convert a mapping with non-string keys to JSON.
        if self.depth == self.limits.depth - 1 and type(event) is _Scalar:
            return str(event.value)  # k8s: but it accepts the outermost keys as written
        dated = type(event) is _Scalar and event.implicit[0] and timestamp(event.value) is not None
        if type(key) is not str or dated:
            self.fail(event, f"the key {getattr(event, 'value', key)!s} is not a string: put it in quotes")
        return key

    def repeated(self, event: Any, key: str) -> NoReturn:
        said = "mapping key {} already defined" if self.kustomize else "key {} already set in map"
        quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
        self.fail(event, said.format(quoted) + ": keep one of them")

    def alias(self, event: Any) -> Any:
        value = self.anchors.get(event.anchor, _MISSING)
        if value is _MISSING:
            self.fail(event, f"unknown anchor '{event.anchor}' referenced: define it before, in this document")
        if value is _UNFINISHED:
            self.fail(event, f"anchor '{event.anchor}' value contains itself: write the value out")
        return self.copy(value, self.depth, event)

    def copy(self, value: Any, depth: int, event: Any) -> Any:
        """Copy the value of an alias: an edit of a shared value would change two places."""
        self.expanded -= 1 + (len(value) >> 5 if type(value) is str else 0)
        if self.expanded < 0:
            message = f"aliases expand to more than {self.limits.expanded} values: use fewer aliases"
            raise LimitError(message, where=self.where, line=event.start_mark.line + 1)
        if type(value) is not dict and type(value) is not list:
            return value
        if depth <= 0:
            raise depth_error(self.limits.depth, self.where, event.start_mark.line + 1)
        if type(value) is dict:
            self.expanded -= sum(map(len, value)) >> 5
            return {key: self.copy(child, depth - 1, event) for key, child in value.items()}
        return [self.copy(child, depth - 1, event) for child in value]

    def merge(self, event: Any, found: dict[str, Any], merges: list[Any]) -> None:
        """Read a `<<` merge: the last occurrence of a key wins for Kubernetes, the mapping's own keys for kustomize."""
        if self.kustomize and merges:
            self.repeated(event, "<<")
        start = self.get()
        source = self.value(start)
        parts = source if type(start) is _SeqStart else [source]
        for part in parts:
            if type(part) is not dict:
                self.fail(event, "map merge requires map or sequence of maps as the value")
        if self.kustomize:
            merges.extend(parts)
            return
        for part in reversed(parts):
            if self.unique:
                for key in part.keys() & found.keys():
                    self.repeated(event, key)
            found.update(part)

    def fail(self, event: Any, message: str) -> NoReturn:
        raise ManifestError(message, where=self.where, line=event.start_mark.line + 1)


_KNOWN: Final[dict[Profile, dict[str, Scalar]]] = {profile: {} for profile in Profile}
