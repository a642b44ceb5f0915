"""API discovery: which kinds a server serves, and under which paths.

In: discovery documents. Out: a `DiscoveryResult`. Requests the newest format that the server supports: aggregated v2,
v2beta1, or one document for each group version.
Never: treats an answer that is not a discovery document as a server without kinds; forgets known kinds because their
extension server is down.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Catalog, KindInfo
from argosy.kube.client.status_errors import ApiServerUnavailable
from argosy.kube.resource_key import GroupKind, join_api_version, split_api_version

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"))
MAX_CONCURRENT_REQUESTS = 8
MAX_GROUP_VERSIONS = 3_000  # each costs one request without aggregated discovery; the largest clusters have 1,000
MAX_RESOURCES = 10_000
# Valid path segments. Metrics servers name resources after metrics, so this is wider than the rule for CRDs.
_SEGMENT = re.compile(r"[A-Za-z0-9_*:.-]{1,253}", re.ASCII)
DOCUMENT_KINDS = frozenset({"APIGroupDiscoveryList", "APIVersions", "APIGroupList"})
T = TypeVar("T")


class FetchDocument(Protocol):
    async def __call__(self, path: str, accept: str) -> Any: ...


class DiscoveredResource(NamedTuple):
    """One resource of one API version, read from any format of discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: Mapping[str, GroupKind]


ResourcesByPath = Mapping[str, Sequence[DiscoveredResource]]  # by the path of the group version
NO_RESOURCES: Final[ResourcesByPath] = {}


class DiscoveryResult(NamedTuple):
    catalog: Catalog
    # (parent kind, posted kind) → `eviction`, `token`, `binding`
    subresources: Mapping[tuple[GroupKind, GroupKind], str]
    versions: ResourcesByPath = NO_RESOURCES


class DiscoveryCache:
    """Caches discovery. `find_kind` fetches again for an unknown kind, so that a new CRD works at once."""

    def __init__(self, fetch: FetchDocument, host: str = "") -> None:
        self._fetch, self._host = fetch, host
        self._result: DiscoveryResult | None = None
        self._last_versions = (
            NO_RESOURCES  # kept after `invalidate`: the next discovery may miss kinds of a server that is down
        )
        self._last_started = self._last_answered = 0
        self._lock = asyncio.Lock()

    async def refresh(self) -> DiscoveryResult:
        """Fetch discovery again. A waiting caller shares a request that another caller started after it arrived."""
        started_before = self._last_started
        async with self._lock:
            if self._result is None or self._last_answered <= started_before:
                self._last_started += 1
                request_number = self._last_started
                self._result = await fetch_discovery(self._fetch, self._host, self._last_versions)
                self._last_versions, self._last_answered = self._result.versions, request_number
            return self._result

    async def find_kind(self, kind: GroupKind, version: str = "") -> tuple[DiscoveryResult, KindInfo | None]:
        result = self._result or await self.refresh()
        info = result.catalog.get(kind)
        if info is None or (version and version not in info.versions):
            result = await self.refresh()
            info = result.catalog.get(kind)
        return result, info

    def invalidate(self) -> None:
        """Fetch discovery again on next use, because a path from it answered 404."""
        self._result = None


async def fetch_discovery(
    fetch: FetchDocument, host: str = "", previous: ResourcesByPath = NO_RESOURCES
) -> DiscoveryResult:
    """Fetch discovery. `host` is named in errors; `previous` supplies the kinds of servers that are down."""
    core, groups = await asyncio.gather(fetch("/api", ACCEPT), _fetch_groups(fetch))
    versions = {
        **await _fetch_resources(fetch, host, "/api", core, previous),
        **await _fetch_resources(fetch, host, "/apis", groups, previous),
    }
    resources = [
        resource for version_resources in versions.values() for resource in version_resources if has_safe_path(resource)
    ]
    if len(resources) > MAX_RESOURCES:
        raise ApiServerUnavailable(f"{host}: serves more than {MAX_RESOURCES} resources; is this an API server?")
    return build_discovery_result(resources)._replace(versions=versions)


async def _fetch_groups(fetch: FetchDocument) -> Any:
    try:
        return await fetch("/apis", ACCEPT)
    except ClusterError as error:
        if error.code != 404:
            raise
        return {"kind": "APIGroupList", "groups": []}  # the server has only core kinds


async def _fetch_resources(
    fetch: FetchDocument, host: str, path: str, document: Any, previous: ResourcesByPath
) -> ResourcesByPath:
    if not isinstance(document, dict) or str(document.get("kind")) not in DOCUMENT_KINDS:
        raise _build_format_error(host, path)
    if document["kind"] == "APIGroupDiscoveryList":
        aggregated = _read_or_raise(read_aggregated_document, document, host, path)
        return {path: previous.get(path, ()) if resources is None else resources for path, resources in aggregated}
    limit = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def fetch_version(path: str) -> Sequence[DiscoveredResource]:
        async with limit:
            try:
                return _read_or_raise(read_legacy_document, await fetch(path, "application/json"), host, path)
            except ArgosyError as error:
                if path.startswith("/api/"):
                    raise
                is_gone = isinstance(error, ClusterError) and error.code == 404
                # k8s: an extension server that is down hides only its own kinds, and they still exist
                return () if is_gone else previous.get(path, ())

    paths = _read_or_raise(_list_version_paths, document, host, path)
    if len(paths) > MAX_GROUP_VERSIONS:
        raise ApiServerUnavailable(
            f"{host}{path}: names more than {MAX_GROUP_VERSIONS} API versions; is this an API server?"
        )
    return dict(zip(paths, await asyncio.gather(*map(fetch_version, paths)), strict=True))


def _read_or_raise(read: Callable[[Any], Iterable[T]], document: Any, host: str, path: str) -> list[T]:
    try:
        return list(read(document))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # the server may send any JSON
        raise _build_format_error(host, path) from error


def _build_format_error(host: str, path: str) -> ApiServerUnavailable:
    return ApiServerUnavailable(f"{host}{path}: the answer is not a discovery document; is this an API server?")


def has_safe_path(resource: DiscoveredResource) -> bool:
    """False if its names would change the request path, such as `..` to another cluster behind a proxy."""
    names = [resource.version, resource.plural, resource.kind, *((resource.group,) if resource.group else ())]
    return all(map(_is_path_segment, names))


def _is_path_segment(name: object) -> bool:
    return isinstance(name, str) and name not in (".", "..") and _SEGMENT.fullmatch(name) is not None


def _list_version_paths(document: Mapping[str, Any]) -> Iterator[str]:
    if document["kind"] == "APIVersions":
        versions = [str(version) for version in document.get("versions") or ()]
        return (f"/api/{version}" for version in versions if _is_path_segment(version))
    versions = [str(version) for group in document.get("groups") or () for version in sort_by_preference(group)]
    return (f"/apis/{version}" for version in versions if all(map(_is_path_segment, version.split("/", 1))))


def sort_by_preference(group: Mapping[str, Any]) -> list[str]:
    versions = [version["groupVersion"] for version in group.get("versions") or ()]
    preferred = (group.get("preferredVersion") or {}).get("groupVersion")
    return sorted(versions, key=lambda version: version != preferred)


def read_aggregated_document(document: Mapping[str, Any]) -> Iterator[tuple[str, list[DiscoveredResource] | None]]:
    """Read resources by path of their group version; None if the extension server could not be reached."""
    for item in document.get("items") or ():
        group = (item.get("metadata") or {}).get("name") or ""
        for version in item.get("versions") or ():
            resources = list(_read_version_resources(version, group))
            is_hidden = not resources and version.get("freshness") == "Stale"
            yield _build_version_path(group, version["version"]), None if is_hidden else resources


def _read_version_resources(version: Mapping[str, Any], group: str) -> Iterator[DiscoveredResource]:
    for entry in version.get("resources") or ():
        kind = _read_response_kind(entry.get("responseKind") or {}, group)
        if kind.kind:
            yield DiscoveredResource(
                kind.group,
                version["version"],
                entry["resource"],
                kind.kind,
                entry.get("scope") == "Namespaced",
                tuple(entry.get("verbs") or ()),
                tuple(entry.get("shortNames") or ()),
                tuple(entry.get("categories") or ()),
                {
                    sub["subresource"]: _read_response_kind(sub.get("responseKind") or {}, group)
                    for sub in entry.get("subresources") or ()
                },
            )


def _read_response_kind(response: Mapping[str, Any], group: str) -> GroupKind:
    # An empty group means the enclosing group only if the version is empty too: the core group's name is empty.
    return GroupKind(response.get("group") or ("" if response.get("version") else group), response.get("kind") or "")


def read_legacy_document(document: Mapping[str, Any]) -> Iterator[DiscoveredResource]:
    group, version = split_api_version(document["groupVersion"])
    subresources: dict[str, dict[str, GroupKind]] = {}
    for entry in document.get("resources") or ():
        plural, slash, sub = entry["name"].partition("/")
        if slash:
            subresources.setdefault(plural, {})[sub] = _read_response_kind(entry, group)
    for entry in document.get("resources") or ():
        if "/" not in entry["name"]:
            yield DiscoveredResource(
                entry.get("group") or group,
                entry.get("version") or version,
                entry["name"],
                entry["kind"],
                bool(entry.get("namespaced")),
                tuple(entry.get("verbs") or ()),
                tuple(entry.get("shortNames") or ()),
                tuple(entry.get("categories") or ()),
                subresources.get(entry["name"], {}),
            )


def build_discovery_result(resources: list[DiscoveredResource]) -> DiscoveryResult:
    """Combine resources: the first version that serves a kind is preferred, the first plural is the kind's plural."""
    catalog: dict[GroupKind, KindInfo] = {}
    subresources: dict[tuple[GroupKind, GroupKind], str] = {}
    for resource in resources:
        kind = GroupKind(resource.group, resource.kind)
        info = catalog.get(kind)
        if info is None:
            catalog[kind] = KindInfo(
                resource.version,
                resource.plural,
                resource.namespaced,
                (resource.version,),
                resource.verbs,
                tuple(resource.subresources),
                resource.short_names,
                resource.categories,
            )
        elif resource.version not in info.versions:
            catalog[kind] = info._replace(versions=(*info.versions, resource.version))
        for name, posted in resource.subresources.items():
            subresources.setdefault((kind, posted), name)
    return DiscoveryResult(catalog, subresources)


def build_collection_path(kind: GroupKind, info: KindInfo, version: str, namespace: str) -> str:
    scope = f"/namespaces/{namespace}" if info.namespaced and namespace else ""
    return f"{_build_version_path(kind.group, version)}{scope}/{info.plural}"


def _build_version_path(group: str, version: str) -> str:
    return f"/apis/{join_api_version(group, version)}" if group else f"/api/{version}"
