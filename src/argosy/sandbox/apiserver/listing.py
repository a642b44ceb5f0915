"""Lists objects: list options, selectors, pagination and resource versions. Watches use the same selectors.

In: a served kind and list options. Out: entries of one revision, with a continue token. Never: encodes them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from argosy.errors import Gone, ManifestError
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error, selectors
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import ADDED, DELETED, MODIFIED, Entry, Event, EventType, Store

LARGEST_VERSION = (1 << 64) - 1
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
WAIT_FOR_VERSION = 3.0  # k8s: how long a list waits for a future revision
SCANNED_BYTES_A_TURN = 1 << 20
CONTINUE_FORMAT = "meta.k8s.io/v1"
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Query:
    """Options of a list or watch, from the URL's query."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: int = 0

    @property
    def single_name(self) -> str:
        """k8s: a list or watch of a single name is authorized for that name, so a rule with resourceNames suffices."""
        terms = self.fields.split(",")
        names = [term.partition("=")[2].lstrip("=") for term in terms if term.startswith("metadata.name=")]
        return names[0] if len(names) == 1 else ""


class Page(NamedTuple):
    entries: Sequence[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None
    copied_bytes: int = 0  # bodies read from disk, which only this page keeps in memory


def read_query(query: Mapping[str, str]) -> Query:
    flag = query.get("sendInitialEvents")
    return Query(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        whole_number(query.get("limit", "")),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        query.get("watch", "") in ("1", "true"),
        query.get("allowWatchBookmarks", "") in ("1", "true"),
        None if flag is None else flag in ("1", "true"),
        whole_number(query.get("timeoutSeconds", "")),
    )


def whole_number(text: str) -> int:
    if not text:
        return 0
    if not WHOLE_NUMBER.fullmatch(text):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def check_options(query: Query) -> None:
    """Refuse invalid combinations of options. k8s: this check comes before any other."""
    if query.watch and query.initial_events is not None:
        if query.match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise status_errors.invalid_options("ListOptions", field_error.forbidden("resourceVersionMatch", detail))
        return
    if query.initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        raise status_errors.invalid_options("ListOptions", field_error.forbidden("sendInitialEvents", detail))
    if not query.match:
        return
    if query.watch:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif query.match not in ("Exact", "NotOlderThan"):
        known = ["Exact", "NotOlderThan", ""]
        bad = field_error.not_supported("resourceVersionMatch", f'"{query.match}"', known)
        raise status_errors.invalid_options("ListOptions", bad)
    elif query.token:
        detail = "resourceVersionMatch is forbidden when continue is provided"
    elif not query.version:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif query.match == "Exact" and query.version == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    else:
        return
    raise status_errors.invalid_options("ListOptions", field_error.forbidden("resourceVersionMatch", detail))


def parse_version(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise status_errors.internal(f'resourceVersion: Invalid value: "{text}": {why}')
    if len(text) > len(str(LARGEST_VERSION)) or int(text) > LARGEST_VERSION:
        why = f'strconv.ParseUint: parsing "{text}": value out of range'
        raise status_errors.internal(f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)


class Matcher:
    """Matches entries of one kind against the selectors of a request."""

    def __init__(self, served: Served, query: Query) -> None:
        self._served = served
        try:
            self._labels = selectors.labels(query.labels)
            self._fields = selectors.fields(query.fields)
            self._content = served.field_labels.predicate(self._fields)
        except ManifestError as error:
            raise status_errors.bad_request(error.message) from error
        named = [term for term in self._fields.terms if term.path in ("metadata.name", "metadata.namespace")]
        self._named = named
        self._deeper = [term for term in self._fields.terms if term not in named]
        self.everything = self._labels.empty and not self._fields.terms

    def matches(self, entry: Entry) -> bool:
        if self.everything:
            return True
        for term in self._named:
            actual = entry.name if term.path == "metadata.name" else entry.namespace
            if (actual == term.value) == term.negated:
                return False
        if self._labels.empty and not self._deeper:
            return True
        return self._matches_content(self._served.read(entry))

    def transition(self, event: Event) -> tuple[EventType, Entry] | None:
        """The event as a watch with these selectors sees it: an object that leaves the selection is DELETED."""
        here = (event.namespace, event.name)
        new = Entry(*here, event.revision, event.body)
        if self.everything:
            return event.type, new
        old = Entry(*here, event.previous_revision, event.previous) if event.previous is not None else None
        before = old is not None and self.matches(old)
        after = event.type != DELETED and self.matches(new)
        if after:
            return (MODIFIED if before else ADDED), new
        if old is None or not before:
            return None
        if event.type == DELETED:
            return DELETED, new
        # k8s: an object that leaves is sent in its last matching state, with the revision of the event
        left = orjson.loads(old.body)
        left["metadata"]["resourceVersion"] = str(event.revision)
        return DELETED, Entry(*here, event.revision, orjson.dumps(left))

    def _matches_content(self, manifest: Manifest) -> bool:
        if not self._labels.empty and not self._labels.matches(manifest["metadata"].get("labels") or {}):
            return False
        return not self._deeper or self._content(manifest)


class Lister:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, served: Served, namespace: str, query: Query) -> Page:
        check_options(query)
        matcher = Matcher(served, query)
        start, revision, limit = "", self._store.revision, query.limit
        entries: Sequence[Entry]
        if query.token:
            if query.version and query.version != "0":
                raise status_errors.bad_request("specifying resource version is not allowed when using continue")
            revision, start = read_token(query.token)
            entries = await self._continued(served, namespace, revision, start)
            revision = revision if revision > 0 else self._store.revision
        elif query.match == "Exact":
            revision = parse_version(query.version)
            await self.wait_for(revision)
            entries = await self._at(served, namespace, revision)
        else:
            if query.version == "0":
                limit = 0  # k8s: the whole list from the cache, without a limit
            elif query.version:
                await self.wait_for(parse_version(query.version))
                revision = self._store.revision
            entries = self._store.list(served.bucket, namespace)
        page = await _cut(entries, matcher, revision, start, limit, namespace)
        if revision >= self._store.in_memory_since(served.bucket):
            return page
        return page._replace(copied_bytes=sum(len(entry.body) for entry in page.entries))

    async def wait_for(self, revision: int) -> None:
        """k8s: wait up to three seconds for a future revision, then raise a timeout."""
        deadline = asyncio.get_running_loop().time() + WAIT_FOR_VERSION
        while revision > self._store.revision:
            if asyncio.get_running_loop().time() >= deadline:
                raise status_errors.too_large_version(revision, self._store.revision)
            await asyncio.sleep(0.02)

    async def _at(self, served: Served, namespace: str, revision: int) -> Sequence[Entry]:
        if revision == self._store.revision:
            return self._store.list(served.bucket, namespace)
        try:
            return await self._store.list_at(served.bucket, namespace, revision)
        except Gone as error:
            raise status_errors.expired("The resourceVersion for the provided list is too old.") from error

    async def _continued(self, served: Served, namespace: str, revision: int, start: str) -> Sequence[Entry]:
        if revision < 0 or revision == self._store.revision:
            return self._store.list(served.bucket, namespace)
        if revision > self._store.revision:  # the token is from another server
            raise status_errors.internal("etcdserver: mvcc: required revision is a future revision")
        try:
            return await self._store.list_at(served.bucket, namespace, revision)
        except Gone as error:
            fresh = Gone(CONTINUE_EXPIRED, reason="Expired", details={"continue": write_token(-1, start)})
            raise fresh from error


async def matching(entries: Iterable[Entry], matcher: Matcher) -> AsyncIterator[Entry]:
    """Yield matching entries. Yields to the loop in between, because a selector reads every object."""
    if matcher.everything:
        for entry in entries:
            yield entry
        return
    scanned = 0
    for entry in entries:
        scanned += len(entry.body)
        if scanned > SCANNED_BYTES_A_TURN:
            scanned = 0
            await asyncio.sleep(0)
        if matcher.matches(entry):
            yield entry


async def _cut(
    entries: Sequence[Entry], matcher: Matcher, revision: int, start: str, limit: int, namespace: str
) -> Page:
    """One page of the entries from `start` on."""
    if start:
        entries = [entry for entry in entries if _place(entry, namespace) >= start]
    if not matcher.everything:
        entries = [entry async for entry in matching(entries, matcher)]
    if limit <= 0 or len(entries) <= limit:
        return Page(entries, revision)
    page = entries[:limit]
    token = write_token(revision, _place(page[-1], namespace) + "\0")
    # k8s: the remaining count is unknown if a selector is used
    remaining = len(entries) - limit if matcher.everything else None
    return Page(page, revision, token, remaining)


def _place(entry: Entry, namespace: str) -> str:
    return entry.name if namespace or not entry.namespace else f"{entry.namespace}/{entry.name}"


def write_token(revision: int, start: str) -> str:
    text = orjson.dumps({"v": CONTINUE_FORMAT, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise status_errors.bad_request(
            "invalid continue token: continue key is not valid: illegal base64 data"
        ) from None
    try:
        read = orjson.loads(text)
        if read.get("v") != CONTINUE_FORMAT or not read.get("start"):
            raise ValueError
        return int(read["rv"]), str(read["start"]).lstrip("/")
    except (ValueError, KeyError, AttributeError, TypeError):
        first = text[:1].decode(errors="replace")
        why = f"continue key is not valid: invalid character '{first}' looking for beginning of value"
        raise status_errors.bad_request(f"invalid continue token: {why}") from None
