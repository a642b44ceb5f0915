"""Masks known secret values in outgoing data.

In: serialized data and its media type; the Application that it is about. Out: the same data with masks in place of
values. Never: breaks the format: only strings of a document and text and attribute values of a page change; masks the
value of a Secret that the data cannot quote (see secret_origin_and_scope).
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

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction import MASK
from argosy.observability.redaction.secret_encodings import iter_forms
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin, SecretScope
from argosy.observability.redaction.secret_search import SecretSearch, find_value_range

MASK_BYTES: Final = MASK.encode()
MAX_CACHED_CHUNKS: Final = 16  # cached chunks of streams
HTML_MEDIA_TYPES: Final = ("text/html", "image/svg")
_TAG_OR_TEXT: Final = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>|[^<]+""")
_QUOTED: Final = re.compile(rb""""[^"]*"|'[^']*'""")
_ESCAPED: Final = re.compile(r"""["\\\x00-\x1f]""")  # JSON escapes these characters
_HTML_FIELDS: Final = ("parts", "html")  # fields of page events that contain HTML

MaskBytes = Callable[[bytes], bytes]


class PublicNames(Protocol):
    """Texts that are no secret although a Secret contains them, such as names of objects."""

    @property
    def withdrawals(self) -> int:
        """Grows whenever a text stops being public."""

    def is_public_everywhere(self, text: str) -> bool: ...

    def is_name_in(self, text: str, namespaces: frozenset[str]) -> bool: ...

    def __contains__(self, text: object) -> bool: ...


class SecretMask:
    """Masks secret values; it cannot be switched off. Without a scope it masks the values of all known Secrets."""

    def __init__(
        self,
        list_secrets: Callable[[], Iterable[Manifest]],
        public: PublicNames,
        origins: Callable[[ResourceKey], SecretOrigin | None] = lambda key: None,
    ) -> None:
        self.search = SecretSearch(list_secrets, origins)
        self.generation = 0  # grows with each change of known values
        self.scope: SecretScope | None = None
        self.find_line_scope: Callable[[], SecretScope | None] = lambda: None  # scope of the line being logged
        self._public = public
        self._sent: Callable[[], Iterable[str]] | None = None
        self._masked_chunks: OrderedDict[tuple[SecretScope | None, bytes], bytes] = OrderedDict()
        self._root = self

    def invalidate(self) -> None:
        """Drop cached chunks because a Secret changed."""
        self._root.generation += 1
        self._masked_chunks.clear()

    def version(self, namespaces: Iterable[str]) -> int:
        """Return a number that grows whenever more may have to be hidden in a scope of these namespaces."""
        return self.search.version(namespaces) + self._public.withdrawals

    def for_scope(self, scope: SecretScope, sent: Callable[[], Iterable[str]] | None = None) -> SecretMask:
        """Return a mask of the Secrets in a scope alone.

        `sent` returns the texts that the caller sent. Pass it only for data that quotes the request and no stored data:
        a sent text that the data quotes as a whole is not masked.
        """
        scoped = copy.copy(self)
        scoped.scope, scoped._sent = scope, sent
        return scoped

    def find_values(self, data: bytes) -> list[bytes]:
        """Return the secret values that occur in the data, in their encoded form, longest first."""
        return self._find_needles(data)

    def mask_text_bytes(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Mask values in plain text. `words`, also below: hashes of the data's words, if known."""
        return _replace_needles(data, self._find_needles(data, words), self.search)

    def mask_media(self, data: bytes, media_type: str, words: set[int] | None = None) -> bytes:
        if media_type.startswith(HTML_MEDIA_TYPES):
            return self.mask_html(data, words)
        return (
            self.mask_json(data, words)
            if media_type.startswith("application/json")
            else self.mask_text_bytes(data, words)
        )

    def mask_text(self, text: str) -> str:
        return self.mask_text_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_html(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Mask values in an HTML page of ours."""
        needles = self._find_needles(data, words)
        return (
            _mask_html_text(data, lambda fragment: _replace_needles(fragment, needles, self.search))
            if needles
            else data
        )

    def mask_json(self, data: bytes, words: set[int] | None = None, *, has_html_fields: bool = False) -> bytes:
        """Mask values in a JSON document; `has_html_fields`: some of its strings are HTML."""
        needles = self._find_needles(data, words)
        if not needles:
            return data
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return _replace_needles(data, needles, self.search)
        try:
            masker = _DocumentMasker(self, None if b"\\u" in data else needles, has_html_fields=has_html_fields)
            return orjson.dumps(masker.mask_value(document))
        except RecursionError:
            return _replace_needles(data, needles, self.search)

    def mask_manifest(self, manifest: Manifest) -> Manifest:
        """Mask values in an object before it becomes YAML, which wraps long strings so that values are not found."""
        masked: Manifest = _DocumentMasker(self, None, has_html_fields=False).mask_value(manifest)
        return masked

    def mask_chunk(self, chunk: bytes) -> bytes:
        """Mask a chunk of a stream; the result is cached, because many clients get the same chunk."""
        key = (self.scope, chunk)
        if (masked := self._masked_chunks.get(key)) is None:
            masked = self._masked_chunks[key] = self._mask_uncached_chunk(chunk)
            if len(self._masked_chunks) > MAX_CACHED_CHUNKS:
                self._masked_chunks.popitem(last=False)
        return masked

    def _mask_uncached_chunk(self, chunk: bytes) -> bytes:
        if not self._find_needles(chunk):
            return chunk
        is_page = chunk.startswith(b"event:") or b"\nevent:" in chunk
        lines = chunk.split(b"\n")
        return b"\n".join(self._mask_line(line, is_page=is_page) for line in lines)

    def _mask_line(self, line: bytes, *, is_page: bool) -> bytes:
        for prefix in (b"data: ", b""):
            if line.startswith(prefix) and line[len(prefix) :][:1] in (b"{", b"["):
                return prefix + self.mask_json(line[len(prefix) :], has_html_fields=is_page)
        return self.mask_text_bytes(line)

    def _find_needles(self, data: bytes, words: set[int] | None = None) -> list[bytes]:
        needles = [needle for needle in self.search.find_needles(data, words) if self._must_be_masked(needle)]
        if needles and self._sent is not None:
            sent_needles = _find_sent_needles(needles, self._sent(), data)
            needles = [needle for needle in needles if needle not in sent_needles]
        return needles

    def _must_be_masked(self, needle: bytes) -> bool:
        """True if one of the Secrets with this value may be quoted here, and the value is not public here."""
        scope, text = self.scope, needle.decode("utf-8", "replace")
        spellings = (text, html.unescape(text)) if "&" in text else (text,)
        if scope is None:
            return not any(spelling in self._public for spelling in spellings)
        origins = self.search.list_origins(needle, scope.namespaces)
        is_block = self.search.find_block(needle) is not None
        quotable = [origin for origin in origins if origin is None or scope.covers(origin, needle, is_block=is_block)]
        if not quotable:
            return False
        if any(spelling in scope.words or self._public.is_public_everywhere(spelling) for spelling in spellings):
            return False
        if not scope.can_read(quotable):
            return True
        if any(self._public.is_name_in(spelling, scope.readable) for spelling in spellings):
            return False
        # a chart may encode a value of the Application's spec, which is not in Git
        return not (self.search.is_plain_spelling(needle) and scope.shows_in_git(needle))


class _DocumentMasker:
    """Masks the strings and keys of a document. `needles`: values found in the whole; escaped strings are searched
    separately.
    """

    def __init__(self, mask: SecretMask, needles: Sequence[bytes] | None, *, has_html_fields: bool) -> None:
        self._mask, self._needles, self._has_html_fields = mask, needles, has_html_fields

    def mask_value(self, value: Any, *, is_html: bool = False) -> Any:
        if isinstance(value, str):
            if len(value) < len(MASK) - 1:
                return value
            data = value.encode()
            if (
                self._needles is not None
                and not _ESCAPED.search(value)
                and not any(item in data for item in self._needles)
            ):
                return value
            return (self._mask.mask_html(data) if is_html else self._mask.mask_text_bytes(data)).decode(
                "utf-8", "replace"
            )
        if isinstance(value, list):
            return [self.mask_value(item, is_html=is_html) for item in value]
        if isinstance(value, dict):
            return self._mask_mapping(value, is_html=is_html)
        return value

    def _mask_mapping(self, mapping: dict[str, Any], *, is_html: bool) -> dict[str, Any]:
        masked: dict[str, Any] = {}
        for name, item in mapping.items():
            masked_name = self.mask_value(name)
            while masked_name in masked:  # two masked keys stay distinct
                masked_name += "+"
            masked[masked_name] = self.mask_value(
                item, is_html=is_html or (self._has_html_fields and name in _HTML_FIELDS)
            )
        return masked


def _mask_html_text(data: bytes, mask_bytes: MaskBytes) -> bytes:
    """Mask text between tags and attribute values, which keeps the structure of the page."""

    def mask_attribute(match: re.Match[bytes]) -> bytes:
        text = match[0]
        return text[:1] + mask_bytes(text[1:-1]) + text[-1:]

    def mask_tag_or_text(match: re.Match[bytes]) -> bytes:
        text = match[0]
        return _QUOTED.sub(mask_attribute, text) if text[:1] == b"<" else mask_bytes(text)

    return _TAG_OR_TEXT.sub(mask_tag_or_text, data)


def _replace_needles(data: bytes, found_needles: Sequence[bytes], search: SecretSearch) -> bytes:
    for needle in found_needles:
        if needle not in data:
            continue
        if (block := search.find_block(needle)) is None:
            data = data.replace(needle, MASK_BYTES)
            continue
        while (offset := data.find(needle)) >= 0:
            first, last = find_value_range(block, data, offset)
            data = data[:first] + MASK_BYTES + data[last:]
    return data


def _find_sent_needles(needles: Sequence[bytes], sent: Iterable[str], data: bytes) -> set[bytes]:
    """Return the needles within a sent text, if the data quotes the whole of that text."""
    spellings = {needle: {text := needle.decode("utf-8", "replace"), html.unescape(text)} for needle in needles}
    sent_needles: set[bytes] = set()
    for text in sent:
        contained = [needle for needle in needles if any(spelling in text for spelling in spellings[needle])]
        if contained and any(form in data for form in iter_forms(text)):
            sent_needles.update(contained)
            sent_needles.update(form for needle in contained for form in iter_forms(needle.decode("utf-8", "replace")))
    return sent_needles


class LogMaskFilter(logging.Filter):
    """Log filter that masks secret values.

    A line about an Application is masked with the Secrets of that Application, any other line with all of them.
    """

    def __init__(self, mask: SecretMask) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text, scope = record.getMessage(), self._mask.find_line_scope()
            mask = self._mask if scope is None else self._mask.for_scope(scope)
            if record.exc_info and not record.exc_text:
                record.exc_text = logging.Formatter().formatException(record.exc_info)
            if record.exc_text:
                record.exc_text = mask.mask_text(record.exc_text)
            record.msg, record.args = mask.mask_text(text), ()
        except Exception:  # a line that cannot be masked is not logged
            record.msg, record.args = "cannot mask this log line", ()
        return True
