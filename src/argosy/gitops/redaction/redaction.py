"""Masks known secret values in outgoing data.

In: serialized data and its media type; the Application that it is about. Out: the same data with masks in place of
values. Never: breaks the format: only strings of a document and text and attribute values of a page change; masks the
value of a Secret that the data cannot quote (see secret_provenance).
"""

from __future__ import annotations

import copy
import html
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import orjson

from argosy.gitops.diff.secret_masks import SHORTEST
from argosy.gitops.live.tracking import read_tracking
from argosy.gitops.redaction.public_words import Public, addresses
from argosy.gitops.redaction.secret_encodings import forms
from argosy.gitops.redaction.secret_provenance import SecretOrigin, SecretScope, find_origin
from argosy.gitops.redaction.secret_search import Needles, run
from argosy.gitops.redaction.secret_values import in_address
from argosy.gitops.status.wire_format import mapping
from argosy.kube.controller.cache import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

MARK: Final = SHORTEST.encode()
SHARED: Final = 16  # cached chunks of streams
SECRET: Final = GroupKind("", "Secret")
HTML: Final = ("text/html", "image/svg")
_PIECE: Final = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>|[^<]+""")
_QUOTED: Final = re.compile(rb""""[^"]*"|'[^']*'""")
_ESCAPED: Final = re.compile(r"""["\\\x00-\x1f]""")  # JSON escapes these characters
_PARTS: Final = ("parts", "html")  # fields of page events that contain HTML

Hide = Callable[[bytes], bytes]


class Mask:
    """Masks secret values; it cannot be switched off. Without a scope it masks the values of all known Secrets."""

    def __init__(
        self,
        secrets: Callable[[], Iterable[Manifest]],
        public: Public | None = None,
        origins: Callable[[ResourceKey], SecretOrigin | None] = lambda key: None,
    ) -> None:
        self.needles = Needles(secrets, origins)
        self.generation = 0  # grows with each change of known values
        self.scope: SecretScope | None = None
        self.find_line_scope: Callable[[], SecretScope | None] = lambda: None  # scope of the line being logged
        self._public = Public() if public is None else public
        self._sent: Callable[[], Iterable[str]] | None = None
        self._hidden: OrderedDict[tuple[SecretScope | None, bytes], bytes] = OrderedDict()
        self._root = self

    def forget(self) -> None:
        """Drop cached chunks because a Secret changed."""
        self._root.generation += 1
        self._hidden.clear()

    def version(self, namespaces: Iterable[str]) -> int:
        """Return a number that grows whenever more may have to be hidden in a scope of these namespaces."""
        return self.needles.version(namespaces) + self._public.withdrawals

    def within(self, scope: SecretScope, sent: Callable[[], Iterable[str]] | None = None) -> Mask:
        """Return a mask of the Secrets in a scope alone.

        `sent` returns the texts that the caller sent. Pass it only for data that quotes the request and no stored data:
        a sent text that the data quotes as a whole is not masked.
        """
        made = copy.copy(self)
        made.scope, made._sent = scope, sent
        return made

    def find(self, data: bytes) -> list[bytes]:
        """Return the secret values that occur in the data, in their encoded form, longest first."""
        return self._found(data)

    def hide(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Mask values in plain text. `words`, also below: hashes of the data's words, if known."""
        return _without(data, self._found(data, words), self.needles)

    def hide_as(self, data: bytes, media: str, words: set[int] | None = None) -> bytes:
        if media.startswith(HTML):
            return self.hide_html(data, words)
        return self.hide_json(data, words) if media.startswith("application/json") else self.hide(data, words)

    def hide_text(self, text: str) -> str:
        return self.hide(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def hide_html(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Mask values in an HTML page of ours."""
        found = self._found(data, words)
        return _in_html(data, lambda piece: _without(piece, found, self.needles)) if found else data

    def hide_json(self, data: bytes, words: set[int] | None = None, *, has_parts: bool = False) -> bytes:
        """Mask values in a JSON document; `has_html_fields`: some of its strings are HTML."""
        found = self._found(data, words)
        if not found:
            return data
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return _without(data, found, self.needles)
        try:
            leaves = _Leaves(self, None if b"\\u" in data else found, has_parts=has_parts)
            return orjson.dumps(leaves.value(document))
        except RecursionError:
            return _without(data, found, self.needles)

    def hide_values(self, manifest: Manifest) -> Manifest:
        """Mask values in an object before it becomes YAML, which wraps long strings so that values are not found."""
        found: Manifest = _Leaves(self, None, has_parts=False).value(manifest)
        return found

    def hide_again(self, chunk: bytes) -> bytes:
        """Mask a chunk of a stream; the result is cached, because many clients get the same chunk."""
        key = (self.scope, chunk)
        if (known := self._hidden.get(key)) is None:
            known = self._hidden[key] = self._in_chunk(chunk)
            if len(self._hidden) > SHARED:
                self._hidden.popitem(last=False)
        return known

    def _in_chunk(self, chunk: bytes) -> bytes:
        if not self._found(chunk):
            return chunk
        is_page = chunk.startswith(b"event:") or b"\nevent:" in chunk
        lines = chunk.split(b"\n")
        return b"\n".join(self._in_line(each, is_page=is_page) for each in lines)

    def _in_line(self, line: bytes, *, is_page: bool) -> bytes:
        for lead in (b"data: ", b""):
            if line.startswith(lead) and line[len(lead) :][:1] in (b"{", b"["):
                return lead + self.hide_json(line[len(lead) :], has_parts=is_page)
        return self.hide(line)

    def _found(self, data: bytes, words: set[int] | None = None) -> list[bytes]:
        found = [each for each in self.needles.near(data, words) if self._is_hidden(each)]
        if found and self._sent is not None:
            own = _quoted_needles(found, self._sent(), data)
            found = [each for each in found if each not in own]
        return found

    def _is_hidden(self, needle: bytes) -> bool:
        """True if one of the Secrets with this value may be quoted here, and the value is not public here."""
        scope, text = self.scope, needle.decode("utf-8", "replace")
        spellings = (text, html.unescape(text)) if "&" in text else (text,)
        if scope is None:
            return not any(spelling in self._public for spelling in spellings)
        origins = self.needles.list_origins(needle, scope.namespaces)
        is_block = self.needles.block(needle) is not None
        quotable = [origin for origin in origins if origin is None or scope.covers(origin, needle, is_block=is_block)]
        if not quotable:
            return False
        if any(spelling in scope.words or self._public.is_everywhere(spelling) for spelling in spellings):
            return False
        if not scope.can_read(quotable):
            return True
        if any(self._public.is_name_in(spelling, scope.readable) for spelling in spellings):
            return False
        # a chart may encode a value of the Application's spec, which is not in Git
        return not (self.needles.is_plain_spelling(needle) and scope.shows_in_git(needle))


class _Leaves:
    """Masks the strings and keys of a document. `needles`: values found in the whole; escaped strings are searched
    separately.
    """

    def __init__(self, mask: Mask, found: Sequence[bytes] | None, *, has_parts: bool) -> None:
        self._mask, self._found, self._has_parts = mask, found, has_parts

    def value(self, value: Any, *, is_part: bool = False) -> Any:
        if isinstance(value, str):
            if len(value) < len(SHORTEST) - 1:
                return value
            data = value.encode()
            if self._found is not None and not _ESCAPED.search(value) and not any(each in data for each in self._found):
                return value
            return (self._mask.hide_html(data) if is_part else self._mask.hide(data)).decode("utf-8", "replace")
        if isinstance(value, list):
            return [self.value(each, is_part=is_part) for each in value]
        if isinstance(value, dict):
            return self._mapping(value, is_part=is_part)
        return value

    def _mapping(self, mapping: dict[str, Any], *, is_part: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, each in mapping.items():
            shown = self.value(name)
            while shown in made:  # two masked keys stay distinct
                shown += "+"
            made[shown] = self.value(each, is_part=is_part or (self._has_parts and name in _PARTS))
        return made


def _in_html(data: bytes, hide: Hide) -> bytes:
    """Mask text between tags and attribute values, which keeps the structure of the page."""

    def quoted(match: re.Match[bytes]) -> bytes:
        text = match[0]
        return text[:1] + hide(text[1:-1]) + text[-1:]

    def piece(match: re.Match[bytes]) -> bytes:
        text = match[0]
        return _QUOTED.sub(quoted, text) if text[:1] == b"<" else hide(text)

    return _PIECE.sub(piece, data)


def _without(data: bytes, found: Sequence[bytes], needles: Needles) -> bytes:
    for needle in found:
        if needle not in data:
            continue
        if (block := needles.block(needle)) is None:
            data = data.replace(needle, MARK)
            continue
        while (at := data.find(needle)) >= 0:
            first, last = run(block, data, at)
            data = data[:first] + MARK + data[last:]
    return data


def _quoted_needles(found: Sequence[bytes], sent: Iterable[str], data: bytes) -> set[bytes]:
    """Return the needles within a sent text, if the data quotes the whole of that text."""
    spellings = {needle: {text := needle.decode("utf-8", "replace"), html.unescape(text)} for needle in found}
    own: set[bytes] = set()
    for text in sent:
        inside = [needle for needle in found if any(spelling in text for spelling in spellings[needle])]
        if inside and any(form in data for form in forms(text)):
            own.update(inside)
            own.update(form for needle in inside for form in forms(needle.decode("utf-8", "replace")))
    return own


class Looks(Protocol):
    """The part of ClusterView that masking needs."""

    @property
    def cache(self) -> Cache: ...

    def listen(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]: ...


def find_instance_label(cache: Cache, control: str) -> str:
    """Return the label key that names an object's Application, by the current settings."""
    settings = mapping(mapping(cache.get(ResourceKey("", "ConfigMap", control, "argocd-cm"))).get("data"))
    return read_tracking({name: str(text) for name, text in settings.items()}, control).label


def mask_of(lookout: Looks, control: str = "") -> Mask:
    """Build a mask from the Secrets of a ClusterView. Names of objects are public in their namespace: a host name in a
    Secret is also the name of a Service.
    """
    cache, projects = lookout.cache, dict[ResourceKey, str]()

    public = Public(control=control, find_label=lambda: find_instance_label(cache, control))

    def origin(key: ResourceKey) -> SecretOrigin | None:
        project = projects.get(key)
        return find_origin(key, cache, control) if project is None else SecretOrigin(key.namespace, project)

    mask = Mask(lambda: cache.list(SECRET), public, origin)

    def noticed(before: Manifest | None, after: Manifest | None) -> None:
        changed: Manifest = after or before or {}
        if changed.get("kind") == SECRET.kind:
            mask.needles.noticed(key_of(changed), after)
            mask.forget()
        elif after is not None:
            seen(after)
        elif changed.get("kind") == "AppProject":
            mask.forget()

    def seen(manifest: Manifest) -> None:
        withdrawals = public.withdrawals
        public.see(manifest)
        if public.withdrawals != withdrawals:
            mask.forget()
        if found := passwords(manifest):
            projects[key_of(manifest)] = str(mapping(manifest.get("spec")).get("project") or "default")
            mask.needles.noticed(key_of(manifest), {"stringData": found})
            mask.forget()
        elif manifest.get("kind") == "AppProject":
            mask.forget()

    for kind in cache.kinds():
        for manifest in cache.list(kind) if kind != SECRET else ():
            seen(manifest)
    lookout.listen(noticed)
    mask.needles.read()
    return mask


def passwords(manifest: Manifest) -> dict[str, str]:
    """List the passwords in an Application's repository URLs; they stay known after its deletion."""
    if manifest.get("kind") != "Application":
        return {}
    found = [each for address in addresses(manifest) if "@" in address for each in in_address(address)]
    return {str(number): each for number, each in enumerate(found)}


class MaskedLogs(logging.Filter):
    """Log filter that masks secret values.

    A line about an Application is masked with the Secrets of that Application, any other line with all of them.
    """

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text, scope = record.getMessage(), self._mask.find_line_scope()
            mask = self._mask if scope is None else self._mask.within(scope)
            if record.exc_info and not record.exc_text:
                record.exc_text = logging.Formatter().formatException(record.exc_info)
            if record.exc_text:
                record.exc_text = mask.hide_text(record.exc_text)
            record.msg, record.args = mask.hide_text(text), ()
        except Exception:  # a line that cannot be masked is not logged
            record.msg, record.args = "cannot mask this log line", ()
        return True
