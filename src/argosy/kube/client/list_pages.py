"""Lists a collection page by page.

In: the path of a collection. Out: its items and the resourceVersion to watch from. Never: follows an endless list;
returns items of another namespace; takes more memory than the cluster's budget.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import orjson

from argosy.errors import Gone
from argosy.kube.client import KindInfo
from argosy.kube.client.list_watch_memory_limit import ListSize, ObjectName, ReadBudget
from argosy.kube.client.response_validator import (
    CollectionPage,
    ResponseTooLarge,
    estimate_memory,
    read_page,
)
from argosy.kube.client.status_errors import ApiServerUnavailable, sanitize_text
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind

if TYPE_CHECKING:
    from argosy.kube.client.transport import HttpTransport

log = logging.getLogger(__name__)
PAGE_SIZE: Final = 500  # k8s: kubectl's and client-go's page
SMALL_PAGE_SIZE: Final = 20  # if 500 objects are too large for one response: etcd stores up to 1.5 MB each
MAX_PAGES: Final = 20_000
MAX_EMPTY_PAGES: Final = 10  # in a row; a correct server fills its pages

Headers = tuple[tuple[str, str], ...]


def read_object_name(manifest: Manifest) -> ObjectName:
    return manifest["metadata"].get("namespace") or "", manifest["metadata"]["name"]


def log_unprintable_names(host: str, kind: GroupKind, names: list[str]) -> None:
    """Log once per list or watch that objects were left out."""
    example = sanitize_text(repr(names[0]))[:100]
    log.warning(
        "objects left out, their names cannot be printed: cluster=%s kind=%s count=%d example=%s",
        host, kind, len(names), example,
    )  # fmt: skip


class ListPager:
    """Fetches one list; an empty `namespace` means all namespaces."""

    def __init__(
        self, transport: HttpTransport, budget: ReadBudget, kind: GroupKind, namespace: str, info: KindInfo
    ) -> None:
        self._transport, self._budget = transport, budget
        self._kind, self._namespace, self._is_namespaced = kind, namespace, info.namespaced

    async def fetch(self, path: str, selectors: dict[str, str], headers: Headers) -> tuple[list[Manifest], str]:
        collection = f"{path}?{selectors.get('labelSelector', '')}"
        try:
            return await self._fetch_all(collection, path, {**selectors, "limit": str(PAGE_SIZE)}, headers)
        except Gone:
            # The resourceVersion of the pages was compacted meanwhile: fetch the list in one response.
            return await self._fetch_all(collection, path, selectors, headers)
        except ResponseTooLarge:
            return await self._fetch_all(collection, path, {**selectors, "limit": str(SMALL_PAGE_SIZE)}, headers)

    async def _fetch_all(
        self, collection: str, path: str, query: dict[str, str], headers: Headers
    ) -> tuple[list[Manifest], str]:
        items: list[Manifest] = []
        unprintable: list[str] = []
        continue_token, seen_tokens, empty_pages = "", set[str](), 0
        with self._budget.track_list(collection) as size:
            while True:
                page = await self._fetch_page(path, {**query, "continue": continue_token}, headers, size)
                items += page.items
                unprintable += page.unprintable
                continue_token, empty_pages = (
                    page.continue_token,
                    0 if page.items or page.unprintable else empty_pages + 1,
                )
                if not continue_token:
                    if unprintable:
                        log_unprintable_names(self._transport.host, self._kind, unprintable)
                    return items, page.version
                if continue_token in seen_tokens or len(seen_tokens) >= MAX_PAGES or empty_pages >= MAX_EMPTY_PAGES:
                    raise ApiServerUnavailable(
                        f"{self._transport.host}{path}: the list does not end, the same page again and again"
                    )
                seen_tokens.add(continue_token)

    async def _fetch_page(self, path: str, query: dict[str, str], headers: Headers, size: ListSize) -> CollectionPage:
        query_text = urlencode({name: value for name, value in query.items() if value})
        response = await self._transport.request("GET", f"{path}?{query_text}" if query_text else path, headers=headers)
        size.add(estimate_memory(response.content))
        value = self._transport.decode_json(response)
        page = read_page(value, self._kind, self._namespace, self._transport.host, is_namespaced=self._is_namespaced)
        if self._budget.is_limited:
            size.add_objects({read_object_name(item): estimate_memory(orjson.dumps(item)) for item in page.items})
        return page
