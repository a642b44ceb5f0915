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
from argosy.kube.client.status_errors import Unavailable
from argosy.kube.names import GroupKind, join_api_version, split_api_version

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"))
AT_ONCE = 8
MAX_GROUP_VERSIONS = 3_000  # each costs one request without aggregated discovery; the largest clusters have 1,000
MAX_RESOURCES = 10_000
# Valid path segments. Metrics servers name resources after metrics, so this is wider than the rule for CRDs.
_SEGMENT = re.compile(r"[A-Za-z0-9_*:.-]{1,253}", re.ASCII)
FORMS = frozenset({"APIGroupDiscoveryList", "APIVersions", "APIGroupList"})
T = TypeVar("T")


class Fetch(Protocol):
    async def __call__(self, path: str, accept: str) -> Any: ...


class Resource(NamedTuple):
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


ByVersion = Mapping[str, Sequence[Resource]]  # by the path of the group version
NOTHING: Final[ByVersion] = {}


class Served(NamedTuple):
    catalog: Catalog
    # (parent kind, posted kind) → `eviction`, `token`, `binding`
    subresources: Mapping[tuple[GroupKind, GroupKind], str]
    versions: ByVersion = NOTHING


class Discovery:
    """Caches discovery. `find_kind` fetches again for an unknown kind, so that a new CRD works at once."""

    def __init__(self, fetch: Fetch, host: str = "") -> None:
        self._fetch, self._host = fetch, host
        self._served: Served | None = None
        self._last = NOTHING  # kept after `invalidate`: the next discovery may miss kinds of a server that is down
        self._begun = self._answered = 0
        self._lock = asyncio.Lock()

    async def refresh(self) -> Served:
        """Fetch discovery again. A waiting caller shares a request that another caller started after it arrived."""
        came = self._begun
        async with self._lock:
            if self._served is None or self._answered <= came:
                self._begun += 1
                asked = self._begun
                self._served = await fetch_served(self._fetch, self._host, self._last)
                self._last, self._answered = self._served.versions, asked
            return self._served

    async def find(self, kind: GroupKind, version: str = "") -> tuple[Served, KindInfo | None]:
        served = self._served or await self.refresh()
        info = served.catalog.get(kind)
        if info is None or (version and version not in info.versions):
            served = await self.refresh()
            info = served.catalog.get(kind)
        return served, info

    def forget(self) -> None:
        """Fetch discovery again on next use, because a path from it answered 404."""
        self._served = None


async def fetch_served(fetch: Fetch, host: str = "", before: ByVersion = NOTHING) -> Served:
    """Fetch discovery. `host` is named in errors; `previous` supplies the kinds of servers that are down."""
    core, groups = await asyncio.gather(fetch("/api", ACCEPT), _groups(fetch))
    versions = {
        **await _resources(fetch, host, "/api", core, before),
        **await _resources(fetch, host, "/apis", groups, before),
    }
    resources = [resource for found in versions.values() for resource in found if has_safe_path(resource)]
    if len(resources) > MAX_RESOURCES:
        raise Unavailable(f"{host}: serves more than {MAX_RESOURCES} resources; is this an API server?")
    return gather(resources)._replace(versions=versions)


async def _groups(fetch: Fetch) -> Any:
    try:
        return await fetch("/apis", ACCEPT)
    except ClusterError as error:
        if error.code != 404:
            raise
        return {"kind": "APIGroupList", "groups": []}  # the server has only core kinds


async def _resources(fetch: Fetch, host: str, path: str, document: Any, before: ByVersion) -> ByVersion:
    if not isinstance(document, dict) or str(document.get("kind")) not in FORMS:
        raise _not_understood(host, path)
    if document["kind"] == "APIGroupDiscoveryList":
        aggregated = _understood(read_aggregated, document, host, path)
        return {path: before.get(path, ()) if found is None else found for path, found in aggregated}
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(path: str) -> Sequence[Resource]:
        async with limit:
            try:
                return _understood(read_legacy, await fetch(path, "application/json"), host, path)
            except ArgosyError as error:
                if path.startswith("/api/"):
                    raise
                is_gone = isinstance(error, ClusterError) and error.code == 404
                # k8s: an extension server that is down hides only its own kinds, and they still exist
                return () if is_gone else before.get(path, ())

    paths = _understood(_version_paths, document, host, path)
    if len(paths) > MAX_GROUP_VERSIONS:
        raise Unavailable(f"{host}{path}: names more than {MAX_GROUP_VERSIONS} API versions; is this an API server?")
    return dict(zip(paths, await asyncio.gather(*map(one, paths)), strict=True))


def _understood(read: Callable[[Any], Iterable[T]], document: Any, host: str, path: str) -> list[T]:
    try:
        return list(read(document))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # the server may send any JSON
        raise _not_understood(host, path) from error


def _not_understood(host: str, path: str) -> Unavailable:
    return Unavailable(f"{host}{path}: the answer is not a discovery document; is this an API server?")


def has_safe_path(resource: Resource) -> bool:
    """False if its names would change the request path, such as `..` to another cluster behind a proxy."""
    names = [resource.version, resource.plural, resource.kind, *((resource.group,) if resource.group else ())]
    return all(map(_is_segment, names))


def _is_segment(name: object) -> bool:
    return isinstance(name, str) and name not in (".", "..") and _SEGMENT.fullmatch(name) is not None


def _version_paths(document: Mapping[str, Any]) -> Iterator[str]:
    if document["kind"] == "APIVersions":
        listed = [str(version) for version in document.get("versions") or ()]
        return (f"/api/{version}" for version in listed if _is_segment(version))
    listed = [str(version) for group in document.get("groups") or () for version in by_preference(group)]
    return (f"/apis/{version}" for version in listed if all(map(_is_segment, version.split("/", 1))))


def by_preference(group: Mapping[str, Any]) -> list[str]:
    listed = [version["groupVersion"] for version in group.get("versions") or ()]
    preferred = (group.get("preferredVersion") or {}).get("groupVersion")
    return sorted(listed, key=lambda version: version != preferred)


def read_aggregated(document: Mapping[str, Any]) -> Iterator[tuple[str, list[Resource] | None]]:
    """Read resources by path of their group version; None if the extension server could not be reached."""
    for item in document.get("items") or ():
        group = (item.get("metadata") or {}).get("name") or ""
        for version in item.get("versions") or ():
            found = list(_of_version(version, group))
            is_hidden = not found and version.get("freshness") == "Stale"
            yield _root(group, version["version"]), None if is_hidden else found


def _of_version(version: Mapping[str, Any], group: str) -> Iterator[Resource]:
    for entry in version.get("resources") or ():
        kind = _kind_of(entry.get("responseKind") or {}, group)
        if kind.kind:
            yield Resource(
                kind.group,
                version["version"],
                entry["resource"],
                kind.kind,
                entry.get("scope") == "Namespaced",
                tuple(entry.get("verbs") or ()),
                tuple(entry.get("shortNames") or ()),
                tuple(entry.get("categories") or ()),
                {
                    sub["subresource"]: _kind_of(sub.get("responseKind") or {}, group)
                    for sub in entry.get("subresources") or ()
                },
            )


def _kind_of(response: Mapping[str, Any], group: str) -> GroupKind:
    # An empty group means the enclosing group only if the version is empty too: the core group's name is empty.
    return GroupKind(response.get("group") or ("" if response.get("version") else group), response.get("kind") or "")


def read_legacy(document: Mapping[str, Any]) -> Iterator[Resource]:
    group, version = split_api_version(document["groupVersion"])
    subresources: dict[str, dict[str, GroupKind]] = {}
    for entry in document.get("resources") or ():
        plural, slash, sub = entry["name"].partition("/")
        if slash:
            subresources.setdefault(plural, {})[sub] = _kind_of(entry, group)
    for entry in document.get("resources") or ():
        if "/" not in entry["name"]:
            yield Resource(
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


def gather(resources: list[Resource]) -> Served:
    """Combine resources: the first version that serves a kind is preferred, the first plural is the kind's plural."""
    catalog: dict[GroupKind, KindInfo] = {}
    subresources: dict[tuple[GroupKind, GroupKind], str] = {}
    for found in resources:
        kind = GroupKind(found.group, found.kind)
        known = catalog.get(kind)
        if known is None:
            catalog[kind] = KindInfo(
                found.version,
                found.plural,
                found.namespaced,
                (found.version,),
                found.verbs,
                tuple(found.subresources),
                found.short_names,
                found.categories,
            )
        elif found.version not in known.versions:
            catalog[kind] = known._replace(versions=(*known.versions, found.version))
        for name, posted in found.subresources.items():
            subresources.setdefault((kind, posted), name)
    return Served(catalog, subresources)


def collection_path(kind: GroupKind, info: KindInfo, version: str, namespace: str) -> str:
    scope = f"/namespaces/{namespace}" if info.namespaced and namespace else ""
    return f"{_root(kind.group, version)}{scope}/{info.plural}"


def _root(group: str, version: str) -> str:
    return f"/apis/{join_api_version(group, version)}" if group else f"/api/{version}"
