"""Finds all known secret values in one pass over the data, whatever their number.

In: added, changed and deleted Secrets. Out: which of their forms occur in some bytes. Never: rebuilds forms of
unchanged Secrets; keeps a long value: only a few bytes of each block, and the Secret for the rest.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeGuard

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET
from argosy.observability.redaction.four_byte_word_filter import (
    count_common_prefix,
    data_may_contain,
    list_first_words,
    list_words,
)
from argosy.observability.redaction.guessable_values import unescape
from argosy.observability.redaction.secret_encodings import iter_forms
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin
from argosy.observability.redaction.secret_text_extraction import LongValue, extract_secret_texts

BLOCK_BYTES: Final = 32  # bytes kept per block
BLOCK_STEP_BYTES: Final = 256  # distance between blocks
MAX_BLOCKS: Final = 256  # blocks per value
_PEM_BEGIN: Final = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]{1,40}-----\s*")
_PEM_END: Final = re.compile(rb"-----END [A-Z0-9 ]{1,40}-----\s*\Z")
MAX_RELEASE_BLOCKS: Final = 8  # a Helm release is compressed, so no part of it is shown

ListSecrets = Callable[[], Iterable[Manifest]]
MaybeOrigin = SecretOrigin | None  # None: unknown
FindOrigin = Callable[[ResourceKey], MaybeOrigin]


class LongValueBlock(NamedTuple):
    value: LongValue
    offset: int
    form_index: int  # which of its forms


class _IndexedSecret(NamedTuple):
    """State of one Secret when its needles were built."""

    version: object
    needles: tuple[bytes, ...]
    origin: MaybeOrigin


def is_identified_by_namespace(origin: MaybeOrigin) -> TypeGuard[SecretOrigin]:
    """True if the origin is identified by its namespace alone."""
    return origin is not None and not origin.project and not origin.is_installation


class _OriginCounts:
    """Origins of a value that several objects hold, with the number of objects. Each change is O(1), even if a pull
    Secret is copied into thousands of namespaces.
    """

    __slots__ = ("by_namespace", "others")

    def __init__(self) -> None:
        self.by_namespace: dict[str, int] = {}  # origins identified by their namespace alone
        self.others: dict[MaybeOrigin, int] = {}

    def add(self, origin: MaybeOrigin) -> None:
        counts, name = self._find_counter(origin)
        counts[name] = counts.get(name, 0) + 1

    def remove(self, origin: MaybeOrigin) -> None:
        counts, name = self._find_counter(origin)
        if counts[name] > 1:
            counts[name] -= 1
        else:
            del counts[name]

    def select(self, namespaces: Iterable[str]) -> list[MaybeOrigin]:
        return [*self.others, *(SecretOrigin(name) for name in namespaces if name in self.by_namespace)]

    def __bool__(self) -> bool:
        return bool(self.by_namespace or self.others)

    def _find_counter(self, origin: MaybeOrigin) -> tuple[dict[Any, int], Any]:
        return (self.by_namespace, origin.namespace) if is_identified_by_namespace(origin) else (self.others, origin)


class SecretSearch:
    """Index of all search forms (needles). Every fourth byte of the data starts a word; wherever a needle occurs, one
    of its first four bytes starts one of them, so all are searched at once. Thread-safe.
    """

    def __init__(self, list_secrets: ListSecrets, find_origin: FindOrigin = lambda key: None) -> None:
        self._list_secrets, self._find_origin = list_secrets, find_origin
        self._indexed: dict[ResourceKey, _IndexedSecret] = {}
        self._pending: dict[ResourceKey, Manifest | None] = {}
        self._origins: dict[bytes, MaybeOrigin | _OriginCounts] = {}  # origins of each needle's value
        self._blocks: dict[bytes, LongValueBlock] = {}
        self._by_word: dict[int, bytes | dict[bytes, None]] = {}
        self._changes: dict[str, int] = {}  # by namespace: number of changes
        self._other_changes = 0  # changes of values with other origins
        self._is_loaded = False
        self._lock = threading.Lock()

    def on_change(self, key: ResourceKey, secret: Manifest | None) -> None:
        """Record that a Secret was added, changed or deleted (None)."""
        self._pending[key] = secret

    def update_index(self) -> None:
        """Index the Secrets that are known so far."""
        with self._lock:
            self._apply_pending()

    def __len__(self) -> int:
        self.update_index()
        return len(self._origins)

    def find_needles(self, data: bytes, words: set[int] | None = None) -> list[bytes]:
        """Return the needles in the data, longest first. `words`: the words of the data, if known.

        A text with a part of a needle costs no pass over the data: the time would reveal that the part is right.
        """
        if self._pending or not self._is_loaded:
            self.update_index()
        words = list_words(data) if words is None else words
        with self._lock:
            candidates = {
                needle for word in words & self._by_word.keys() for needle in _iter_needles(self._by_word[word])
            }
        return sorted(
            (needle for needle in candidates if data_may_contain(words, needle) and needle in data),
            key=len,
            reverse=True,
        )

    def find_block(self, needle: bytes) -> LongValueBlock | None:
        return self._blocks.get(needle)

    def list_origins(self, needle: bytes, namespaces: Iterable[str]) -> list[MaybeOrigin]:
        """Return the origins of a needle's value. Of origins identified by their namespace, only those in `namespaces`:
        the cost does not grow with the number of namespaces that share the value.
        """
        with self._lock:
            if needle not in self._origins:
                return []
            owners = self._origins[needle]
            return owners.select(namespaces) if isinstance(owners, _OriginCounts) else [owners]

    def is_plain_spelling(self, needle: bytes) -> bool:
        """True if a needle is a plain or escaped value: only for a value itself the base64 form is a needle, too."""
        text = needle.decode("utf-8", "replace")
        encoded = {base64.b64encode(spelling.encode("utf-8", "replace")) for spelling in (text, unescape(text))}
        with self._lock:
            return not encoded.isdisjoint(self._origins.keys())

    def version(self, namespaces: Iterable[str]) -> int:
        """Return a number that grows whenever a value changes that a scope of these namespaces may cover."""
        if self._pending or not self._is_loaded:
            self.update_index()
        return self._other_changes + sum(self._changes.get(name, 0) for name in namespaces)

    # -- index ---------------------------------------------------------------------------------------------------

    def _apply_pending(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            for number, secret in enumerate(self._list_secrets()):
                self._index_secret(_build_secret_key(secret, number), secret)
        while self._pending:
            key, changed = self._pending.popitem()
            self._index_secret(key, changed)

    def _index_secret(self, key: ResourceKey, secret: Manifest | None) -> None:
        indexed = self._indexed.get(key)
        version = None if secret is None else _read_version(secret)
        origin = None if secret is None else self._find_origin(key)
        if indexed is not None and version is not None and (indexed.version, indexed.origin) == (version, origin):
            return
        needles = () if secret is None else self._build_needles(secret)
        self._count_change(origin, needles)
        self._count_change(indexed.origin if indexed else None, indexed.needles if indexed else ())
        for needle in needles:
            self._add_needle(needle, origin)
        if indexed is not None:
            del self._indexed[key]
            for needle in indexed.needles:
                self._drop_needle(needle, indexed.origin)
        if secret is not None:
            self._indexed[key] = _IndexedSecret(version, needles, origin)

    def _count_change(self, origin: MaybeOrigin, needles: Sequence[bytes]) -> None:
        if not needles:
            return
        if is_identified_by_namespace(origin):
            self._changes[origin.namespace] = self._changes.get(origin.namespace, 0) + 1
        else:
            self._other_changes += 1

    def _build_needles(self, secret: Mapping[str, Any]) -> tuple[bytes, ...]:
        secret_texts = extract_secret_texts(secret)
        needles = {form: None for text in secret_texts.short for form in iter_forms(text)}
        for long in secret_texts.long:
            for number, form in enumerate(_list_long_forms(long)):
                for offset in _block_offsets(form, long):
                    block = form[offset : offset + BLOCK_BYTES]
                    needles[block] = None
                    self._blocks.setdefault(block, LongValueBlock(long, offset, number))
        return tuple(needles)

    def _add_needle(self, needle: bytes, origin: MaybeOrigin) -> None:
        if needle in self._origins:
            owners = self._origins[needle]
            if not isinstance(owners, _OriginCounts):
                first, owners = owners, _OriginCounts()
                owners.add(first)
                self._origins[needle] = owners
            owners.add(origin)
            return
        self._origins[needle] = origin
        for word in list_first_words(needle):
            indexed = self._by_word.get(word)
            if indexed is None:
                self._by_word[word] = needle
            elif isinstance(indexed, dict):
                indexed[needle] = None
            else:
                self._by_word[word] = {indexed: None, needle: None}

    def _drop_needle(self, needle: bytes, origin: MaybeOrigin) -> None:
        owners = self._origins[needle]
        if isinstance(owners, _OriginCounts):
            owners.remove(origin)
            if owners:
                return
        del self._origins[needle]
        self._blocks.pop(needle, None)
        for word in list_first_words(needle):
            indexed = self._by_word.get(word)
            if isinstance(indexed, dict) and len(indexed) > 1:
                del indexed[needle]
            else:
                self._by_word.pop(word, None)


def _block_offsets(form: bytes, long: LongValue) -> Iterator[int]:
    """Yield the start of each block; the last one ends at the end of the value.

    The first and the last line of PEM are in no block: they are the same in every certificate.
    """
    max_blocks = MAX_RELEASE_BLOCKS if long.is_release else MAX_BLOCKS
    step = max(BLOCK_STEP_BYTES, len(form) // max_blocks)
    first, last = _find_pem_content(form, long)
    yield from range(first, last - BLOCK_BYTES, step)
    yield last - BLOCK_BYTES


def _find_pem_content(form: bytes, long: LongValue) -> tuple[int, int]:
    """Return the range between the boundaries of PEM; the whole range of another value."""
    decoded = long.decode()
    begin, end = _PEM_BEGIN.match(decoded), _PEM_END.search(decoded)
    if begin is None or end is None or end.start() - begin.end() < 2 * BLOCK_BYTES:
        return 0, len(form)
    if form == decoded:
        return begin.end(), end.start()
    return -(-begin.end() // 3) * 4, end.start() // 3 * 4  # in base64, 3 bytes are 4 characters


@lru_cache(4)
def _list_long_forms(long: LongValue) -> tuple[bytes, ...]:
    return tuple(sorted(long.iter_forms(), key=len))


def find_value_range(block: LongValueBlock, data: bytes, offset: int) -> tuple[int, int]:
    """Return the range around a found block that belongs to its value."""
    form = _list_long_forms(block.value)[block.form_index]
    before = count_common_prefix(form[: block.offset][::-1], data[max(0, offset - block.offset) : offset][::-1])
    after = count_common_prefix(form[block.offset :], data[offset : offset + len(form) - block.offset])
    return offset - before, offset + after


def _iter_needles(entry: bytes | dict[bytes, None]) -> Iterable[bytes]:
    return (entry,) if isinstance(entry, bytes) else entry


def _build_secret_key(secret: Mapping[str, Any], number: int) -> ResourceKey:
    """Build the key of a Secret; one without a name is identified by its number."""
    metadata = secret.get("metadata")
    metadata_map = metadata if isinstance(metadata, Mapping) else {}
    return ResourceKey(
        *SECRET, str(metadata_map.get("namespace", "")), str(metadata_map.get("name", "")) or f"#{number}"
    )


def _read_version(secret: Mapping[str, Any]) -> object:
    """Return the uid and resourceVersion, or a hash of the content if there is none."""
    metadata = secret.get("metadata")
    metadata_map = metadata if isinstance(metadata, Mapping) else {}
    number, uid = metadata_map.get("resourceVersion"), metadata_map.get("uid")
    return (uid, number) if number else hash(repr(secret))
