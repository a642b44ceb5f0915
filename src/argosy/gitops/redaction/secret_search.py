"""Finds all known secret values in one pass over the data, whatever their number.

In: added, changed and deleted Secrets. Out: which of their forms occur in some bytes. Never: rebuilds forms of
unchanged Secrets; keeps a long value: only a few bytes of each block, and the Secret for the rest.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeGuard

from argosy.gitops.redaction.secret_encodings import forms
from argosy.gitops.redaction.secret_provenance import SecretOrigin, unescape
from argosy.gitops.redaction.secret_values import Long, values
from argosy.gitops.redaction.substring_index import count_common_prefix, list_first_words, list_words, may_contain
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

BLOCK_BYTES: Final = 32  # bytes kept per block
BLOCK_STEP_BYTES: Final = 256  # distance between blocks
MAX_BLOCKS: Final = 256  # blocks per value
MAX_RELEASE_BLOCKS: Final = 8  # a Helm release is compressed, so no part of it is shown

Listing = Callable[[], Iterable[Manifest]]
Origin = SecretOrigin | None  # None: unknown
FindOrigin = Callable[[ResourceKey], Origin]


class Block(NamedTuple):
    long: Long
    at: int
    form: int  # which of its forms


class _Known(NamedTuple):
    """State of one Secret when its needles were built."""

    version: object
    needles: tuple[bytes, ...]
    origin: Origin


def is_plain(origin: Origin) -> TypeGuard[SecretOrigin]:
    """True if the origin is identified by its namespace alone."""
    return origin is not None and not origin.project and not origin.is_installation


class _Owners:
    """Origins of a value that several objects hold, with the number of objects. Each change is O(1), even if a pull
    Secret is copied into thousands of namespaces.
    """

    __slots__ = ("by_namespace", "others")

    def __init__(self) -> None:
        self.by_namespace: dict[str, int] = {}  # origins identified by their namespace alone
        self.others: dict[Origin, int] = {}

    def add(self, origin: Origin) -> None:
        counts, name = self._find(origin)
        counts[name] = counts.get(name, 0) + 1

    def remove(self, origin: Origin) -> None:
        counts, name = self._find(origin)
        if counts[name] > 1:
            counts[name] -= 1
        else:
            del counts[name]

    def select(self, namespaces: Iterable[str]) -> list[Origin]:
        return [*self.others, *(SecretOrigin(name) for name in namespaces if name in self.by_namespace)]

    def __bool__(self) -> bool:
        return bool(self.by_namespace or self.others)

    def _find(self, origin: Origin) -> tuple[dict[Any, int], Any]:
        return (self.by_namespace, origin.namespace) if is_plain(origin) else (self.others, origin)


class Needles:
    """Index of all search forms (needles). Every fourth byte of the data starts a word; wherever a needle occurs, one
    of its first four bytes starts one of them, so all are searched at once. Thread-safe.
    """

    def __init__(self, secrets: Listing, find_origin: FindOrigin = lambda key: None) -> None:
        self._secrets, self._find_origin = secrets, find_origin
        self._known: dict[ResourceKey, _Known] = {}
        self._came: dict[ResourceKey, Manifest | None] = {}
        self._owners: dict[bytes, Origin | _Owners] = {}  # origins of each needle's value
        self._blocks: dict[bytes, Block] = {}
        self._by_word: dict[int, bytes | dict[bytes, None]] = {}
        self._changes: dict[str, int] = {}  # by namespace: number of changes
        self._other_changes = 0  # changes of values with other origins
        self._is_read = False
        self._lock = threading.Lock()

    def noticed(self, key: ResourceKey, secret: Manifest | None) -> None:
        """Record that a Secret was added, changed or deleted (None)."""
        self._came[key] = secret

    def read(self) -> None:
        """Index the Secrets that are known so far."""
        with self._lock:
            self._renew()

    def __len__(self) -> int:
        self.read()
        return len(self._owners)

    def near(self, data: bytes, words: set[int] | None = None) -> list[bytes]:
        """Return the needles in the data, longest first. `words`: the words of the data, if known.

        A text with a part of a needle costs no pass over the data: the time would reveal that the part is right.
        """
        if self._came or not self._is_read:
            self.read()
        words = list_words(data) if words is None else words
        with self._lock:
            found = {each for word in words & self._by_word.keys() for each in _some(self._by_word[word])}
        return sorted((each for each in found if may_contain(words, each) and each in data), key=len, reverse=True)

    def block(self, needle: bytes) -> Block | None:
        return self._blocks.get(needle)

    def list_origins(self, needle: bytes, namespaces: Iterable[str]) -> list[Origin]:
        """Return the origins of a needle's value. Of origins identified by their namespace, only those in `namespaces`:
        the cost does not grow with the number of namespaces that share the value.
        """
        with self._lock:
            if needle not in self._owners:
                return []
            owners = self._owners[needle]
            return owners.select(namespaces) if isinstance(owners, _Owners) else [owners]

    def is_plain_spelling(self, needle: bytes) -> bool:
        """True if a needle is a plain or escaped value: only for a value itself the base64 form is a needle, too."""
        text = needle.decode("utf-8", "replace")
        encoded = {base64.b64encode(spelling.encode("utf-8", "replace")) for spelling in (text, unescape(text))}
        with self._lock:
            return not encoded.isdisjoint(self._owners.keys())

    def version(self, namespaces: Iterable[str]) -> int:
        """Return a number that grows whenever a value changes that a scope of these namespaces may cover."""
        if self._came or not self._is_read:
            self.read()
        return self._other_changes + sum(self._changes.get(name, 0) for name in namespaces)

    # -- index ---------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        if not self._is_read:
            self._is_read = True
            for number, secret in enumerate(self._secrets()):
                self._take(_key(secret, number), secret)
        while self._came:
            key, came = self._came.popitem()
            self._take(key, came)

    def _take(self, key: ResourceKey, secret: Manifest | None) -> None:
        known = self._known.get(key)
        version = None if secret is None else _version(secret)
        origin = None if secret is None else self._find_origin(key)
        if known is not None and version is not None and (known.version, known.origin) == (version, origin):
            return
        made = () if secret is None else self._made(secret)
        self._count_change(origin, made)
        self._count_change(known.origin if known else None, known.needles if known else ())
        for each in made:
            self._add(each, origin)
        if known is not None:
            del self._known[key]
            for each in known.needles:
                self._drop(each, known.origin)
        if secret is not None:
            self._known[key] = _Known(version, made, origin)

    def _count_change(self, origin: Origin, needles: Sequence[bytes]) -> None:
        if not needles:
            return
        if is_plain(origin):
            self._changes[origin.namespace] = self._changes.get(origin.namespace, 0) + 1
        else:
            self._other_changes += 1

    def _made(self, secret: Mapping[str, Any]) -> tuple[bytes, ...]:
        found = values(secret)
        made = {form: None for text in found.short for form in forms(text)}
        for long in found.long:
            for number, form in enumerate(_forms(long)):
                for at in _places(form, long):
                    piece = form[at : at + BLOCK_BYTES]
                    made[piece] = None
                    self._blocks.setdefault(piece, Block(long, at, number))
        return tuple(made)

    def _add(self, needle: bytes, origin: Origin) -> None:
        if needle in self._owners:
            owners = self._owners[needle]
            if not isinstance(owners, _Owners):
                first, owners = owners, _Owners()
                owners.add(first)
                self._owners[needle] = owners
            owners.add(origin)
            return
        self._owners[needle] = origin
        for word in list_first_words(needle):
            known = self._by_word.get(word)
            if known is None:
                self._by_word[word] = needle
            elif isinstance(known, dict):
                known[needle] = None
            else:
                self._by_word[word] = {known: None, needle: None}

    def _drop(self, needle: bytes, origin: Origin) -> None:
        owners = self._owners[needle]
        if isinstance(owners, _Owners):
            owners.remove(origin)
            if owners:
                return
        del self._owners[needle]
        self._blocks.pop(needle, None)
        for word in list_first_words(needle):
            known = self._by_word.get(word)
            if isinstance(known, dict) and len(known) > 1:
                del known[needle]
            else:
                self._by_word.pop(word, None)


def _places(form: bytes, long: Long) -> Iterator[int]:
    """Yield the start of each block; the last one ends at the end of the value."""
    most = MAX_RELEASE_BLOCKS if long.is_release else MAX_BLOCKS
    step = max(BLOCK_STEP_BYTES, len(form) // most)
    yield from range(0, len(form) - BLOCK_BYTES, step)
    yield len(form) - BLOCK_BYTES


@lru_cache(4)
def _forms(long: Long) -> tuple[bytes, ...]:
    return tuple(sorted(long.forms(), key=len))


def run(block: Block, data: bytes, at: int) -> tuple[int, int]:
    """Return the range around a found block that belongs to its value."""
    whole = _forms(block.long)[block.form]
    before = count_common_prefix(whole[: block.at][::-1], data[max(0, at - block.at) : at][::-1])
    after = count_common_prefix(whole[block.at :], data[at : at + len(whole) - block.at])
    return at - before, at + after


def _some(known: bytes | dict[bytes, None]) -> Iterable[bytes]:
    return (known,) if isinstance(known, bytes) else known


def _key(secret: Mapping[str, Any], number: int) -> ResourceKey:
    """Build the key of a Secret; one without a name is identified by its number."""
    metadata = secret.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return ResourceKey("", "Secret", str(named.get("namespace", "")), str(named.get("name", "")) or f"#{number}")


def _version(secret: Mapping[str, Any]) -> object:
    """Return the uid and resourceVersion, or a hash of the content if there is none."""
    metadata = secret.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    number, uid = named.get("resourceVersion"), named.get("uid")
    return (uid, number) if number else hash(repr(secret))
