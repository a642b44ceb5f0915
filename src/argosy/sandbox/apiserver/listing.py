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
from argosy.kube.objects.base64url import encode_base64url
from argosy.kube.schema import field_error, selectors
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.store import ADDED, DELETED, MODIFIED, EventType, Store, StoreEntry, StoreEvent

MAX_RESOURCE_VERSION = (1 << 64) - 1
INTEGER_PATTERN = re.compile(r"[+-]?[0-9]+")
REVISION_WAIT_SECONDS = 3.0  # k8s: how long a list waits for a future revision
MAX_SCANNED_BYTES_PER_TURN = 1 << 20
CONTINUE_TOKEN_FORMAT = "meta.k8s.io/v1"
CONTINUE_EXPIRED_MESSAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list or watch, from the URL's query."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    version: str = ""
    resource_version_match: str = ""
    watch: bool = False
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int = 0

    @property
    def single_name(self) -> str:
        """k8s: a list or watch of a single name is authorized for that name, so a rule with resourceNames suffices."""
        terms = self.field_selector.split(",")
        names = [term.partition("=")[2].lstrip("=") for term in terms if term.startswith("metadata.name=")]
        return names[0] if len(names) == 1 else ""


class ListPage(NamedTuple):
    entries: Sequence[StoreEntry]
    revision: int
    continue_token: str = ""
    remaining_count: int | None = None
    copied_bytes: int = 0  # bodies read from disk, which only this page keeps in memory


def read_list_options(query: Mapping[str, str]) -> ListOptions:
    initial_events = query.get("sendInitialEvents")
    return ListOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        parse_int(query.get("limit", "")),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        query.get("watch", "") in ("1", "true"),
        query.get("allowWatchBookmarks", "") in ("1", "true"),
        None if initial_events is None else initial_events in ("1", "true"),
        parse_int(query.get("timeoutSeconds", "")),
    )


def parse_int(text: str) -> int:
    if not text:
        return 0
    if not INTEGER_PATTERN.fullmatch(text):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def check_list_options(options: ListOptions) -> None:
    """Refuse invalid combinations of options. k8s: this check comes before any other."""
    if options.watch and options.send_initial_events is not None:
        if options.resource_version_match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise status_errors.invalid_options("ListOptions", field_error.forbidden("resourceVersionMatch", detail))
        return
    if options.send_initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        raise status_errors.invalid_options("ListOptions", field_error.forbidden("sendInitialEvents", detail))
    if not options.resource_version_match:
        return
    if options.watch:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif options.resource_version_match not in ("Exact", "NotOlderThan"):
        supported = ["Exact", "NotOlderThan", ""]
        invalid_field = field_error.not_supported(
            "resourceVersionMatch", f'"{options.resource_version_match}"', supported
        )
        raise status_errors.invalid_options("ListOptions", invalid_field)
    elif options.continue_token:
        detail = "resourceVersionMatch is forbidden when continue is provided"
    elif not options.version:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif options.resource_version_match == "Exact" and options.version == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    else:
        return
    raise status_errors.invalid_options("ListOptions", field_error.forbidden("resourceVersionMatch", detail))


def parse_resource_version(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        reason = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise status_errors.internal_error(f'resourceVersion: Invalid value: "{text}": {reason}')
    if len(text) > len(str(MAX_RESOURCE_VERSION)) or int(text) > MAX_RESOURCE_VERSION:
        reason = f'strconv.ParseUint: parsing "{text}": value out of range'
        raise status_errors.internal_error(f'resourceVersion: Invalid value: "{text}": {reason}')
    return int(text)


class SelectorMatcher:
    """Matches entries of one kind against the selectors of a request."""

    def __init__(self, served: ApiKind, options: ListOptions) -> None:
        self._served = served
        try:
            self._labels = selectors.parse_label_selector(options.label_selector)
            self._fields = selectors.parse_field_selector(options.field_selector)
            self._matches_fields = served.field_labels.build_predicate(self._fields)
        except ManifestError as error:
            raise status_errors.bad_request(error.message) from error
        key_terms = [term for term in self._fields.terms if term.path in ("metadata.name", "metadata.namespace")]
        self._key_terms = key_terms
        self._content_terms = [term for term in self._fields.terms if term not in key_terms]
        self.matches_all = self._labels.is_empty and not self._fields.terms

    def matches(self, entry: StoreEntry) -> bool:
        if self.matches_all:
            return True
        for term in self._key_terms:
            actual = entry.name if term.path == "metadata.name" else entry.namespace
            if (actual == term.value) == term.negated:
                return False
        if self._labels.is_empty and not self._content_terms:
            return True
        return self._matches_content(self._served.read_entry(entry))

    def filter_event(self, event: StoreEvent) -> tuple[EventType, StoreEntry] | None:
        """The event as a watch with these selectors sees it: an object that leaves the selection is DELETED."""
        key = (event.namespace, event.name)
        new = StoreEntry(*key, event.revision, event.body)
        if self.matches_all:
            return event.type, new
        old = StoreEntry(*key, event.previous_revision, event.previous) if event.previous is not None else None
        matched_before = old is not None and self.matches(old)
        matches_now = event.type != DELETED and self.matches(new)
        if matches_now:
            return (MODIFIED if matched_before else ADDED), new
        if old is None or not matched_before:
            return None
        if event.type == DELETED:
            return DELETED, new
        # k8s: an object that leaves is sent in its last matching state, with the revision of the event
        old_manifest = orjson.loads(old.body)
        old_manifest["metadata"]["resourceVersion"] = str(event.revision)
        return DELETED, StoreEntry(*key, event.revision, orjson.dumps(old_manifest))

    def _matches_content(self, manifest: Manifest) -> bool:
        if not self._labels.is_empty and not self._labels.matches(manifest["metadata"].get("labels") or {}):
            return False
        return not self._content_terms or self._matches_fields(manifest)


class Lister:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list_page(self, served: ApiKind, namespace: str, options: ListOptions) -> ListPage:
        check_list_options(options)
        matcher = SelectorMatcher(served, options)
        start, revision, limit = "", self._store.revision, options.limit
        entries: Sequence[StoreEntry]
        if options.continue_token:
            if options.version and options.version != "0":
                raise status_errors.bad_request("specifying resource version is not allowed when using continue")
            revision, start = decode_continue_token(options.continue_token)
            entries = await self._list_continued(served, namespace, revision, start)
            revision = revision if revision > 0 else self._store.revision
        elif options.resource_version_match == "Exact":
            revision = parse_resource_version(options.version)
            await self.wait_for_revision(revision)
            entries = await self._list_at_revision(served, namespace, revision)
        else:
            if options.version == "0":
                limit = 0  # k8s: the whole list from the cache, without a limit
            elif options.version:
                await self.wait_for_revision(parse_resource_version(options.version))
                revision = self._store.revision
            entries = self._store.list(served.bucket, namespace)
        page = await _build_page(entries, matcher, revision, start, limit, namespace)
        if revision >= self._store.get_oldest_revision_in_memory(served.bucket):
            return page
        return page._replace(copied_bytes=sum(len(entry.body) for entry in page.entries))

    async def wait_for_revision(self, revision: int) -> None:
        """k8s: wait up to three seconds for a future revision, then raise a timeout."""
        deadline = asyncio.get_running_loop().time() + REVISION_WAIT_SECONDS
        while revision > self._store.revision:
            if asyncio.get_running_loop().time() >= deadline:
                raise status_errors.resource_version_too_large(revision, self._store.revision)
            await asyncio.sleep(0.02)

    async def _list_at_revision(self, served: ApiKind, namespace: str, revision: int) -> Sequence[StoreEntry]:
        if revision == self._store.revision:
            return self._store.list(served.bucket, namespace)
        try:
            return await self._store.list_at(served.bucket, namespace, revision)
        except Gone as error:
            raise status_errors.expired("The resourceVersion for the provided list is too old.") from error

    async def _list_continued(self, served: ApiKind, namespace: str, revision: int, start: str) -> Sequence[StoreEntry]:
        if revision < 0 or revision == self._store.revision:
            return self._store.list(served.bucket, namespace)
        if revision > self._store.revision:  # the token is from another server
            raise status_errors.internal_error("etcdserver: mvcc: required revision is a future revision")
        try:
            return await self._store.list_at(served.bucket, namespace, revision)
        except Gone as error:
            expired = Gone(
                CONTINUE_EXPIRED_MESSAGE, reason="Expired", details={"continue": encode_continue_token(-1, start)}
            )
            raise expired from error


async def filter_entries(entries: Iterable[StoreEntry], matcher: SelectorMatcher) -> AsyncIterator[StoreEntry]:
    """Yield matching entries. Yields to the loop in between, because a selector reads every object."""
    if matcher.matches_all:
        for entry in entries:
            yield entry
        return
    scanned = 0
    for entry in entries:
        scanned += len(entry.body)
        if scanned > MAX_SCANNED_BYTES_PER_TURN:
            scanned = 0
            await asyncio.sleep(0)
        if matcher.matches(entry):
            yield entry


async def _build_page(
    entries: Sequence[StoreEntry], matcher: SelectorMatcher, revision: int, start: str, limit: int, namespace: str
) -> ListPage:
    """One page of the entries from `start` on."""
    if start:
        entries = [entry for entry in entries if _continue_key(entry, namespace) >= start]
    if not matcher.matches_all:
        entries = [entry async for entry in filter_entries(entries, matcher)]
    if limit <= 0 or len(entries) <= limit:
        return ListPage(entries, revision)
    page = entries[:limit]
    token = encode_continue_token(revision, _continue_key(page[-1], namespace) + "\0")
    # k8s: the remaining count is unknown if a selector is used
    remaining = len(entries) - limit if matcher.matches_all else None
    return ListPage(page, revision, token, remaining)


def _continue_key(entry: StoreEntry, namespace: str) -> str:
    return entry.name if namespace or not entry.namespace else f"{entry.namespace}/{entry.name}"


def encode_continue_token(revision: int, start: str) -> str:
    return encode_base64url(orjson.dumps({"v": CONTINUE_TOKEN_FORMAT, "rv": revision, "start": start}))


def decode_continue_token(token: str) -> tuple[int, str]:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise status_errors.bad_request(
            "invalid continue token: continue key is not valid: illegal base64 data"
        ) from None
    try:
        content = orjson.loads(text)
        if content.get("v") != CONTINUE_TOKEN_FORMAT or not content.get("start"):
            raise ValueError
        return int(content["rv"]), str(content["start"]).lstrip("/")
    except (ValueError, KeyError, AttributeError, TypeError):
        first_character = text[:1].decode(errors="replace")
        reason = f"continue key is not valid: invalid character '{first_character}' looking for beginning of value"
        raise status_errors.bad_request(f"invalid continue token: {reason}") from None
