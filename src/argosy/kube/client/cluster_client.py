"""KubeCluster: the HTTP implementation of `Cluster`, for any Kubernetes API server.

In: a Connection. Out: the verbs of `Cluster`. Never: retries a write; interprets a manifest.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from argosy.errors import ClusterError, Forbidden, cluster_error_from_status
from argosy.kube.client import Catalog, KindInfo, Listing, PatchKind, Propagation, User, WatchEvent
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.discovery import DiscoveryCache, build_collection_path
from argosy.kube.client.list_pages import ListPager, log_unprintable_names, read_object_name
from argosy.kube.client.list_watch_memory_limit import UNLIMITED, ReadBudget
from argosy.kube.client.response_validator import check_returned_object, estimate_memory, has_printable_name, read_event
from argosy.kube.client.status_errors import ApiServerUnavailable, build_not_served_error, sanitize_status
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey, join_api_version, split_api_version

if TYPE_CHECKING:
    from argosy.kube.client.reachability_log import ReachabilityLog
    from argosy.kube.client.transport import HttpTransport

APPLY_MEDIA_TYPE = "application/apply-patch+yaml"
METADATA_MEDIA_TYPE = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io,application/json"
TABLE_MEDIA_TYPE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MIN_WATCH_SECONDS = (
    300  # k8s: client-go uses random timeouts of 5 to 10 minutes, so that watches do not all end at once
)

Headers = tuple[tuple[str, str], ...]


async def connect(connection: Connection) -> KubeCluster:
    """Open a client. Raises UserError if the credentials cannot be loaded; sends no request to the API server yet."""
    from argosy.kube.client.transport import HttpTransport  # slow to import: see that module

    transport = HttpTransport(connection)
    try:
        await transport.load_credentials()
    except BaseException:
        await transport.close()
        raise
    cluster = KubeCluster(
        transport, _DiscoveryDocuments(transport).discovery, (), ReadBudget(connection.max_memory_bytes, transport.host)
    )
    return cluster.acting_as(connection.acting_as) if connection.acting_as else cluster


class _DiscoveryDocuments:
    """Caches discovery documents by path and ETag; an unchanged document is not sent again."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._cached: dict[str, tuple[str, Any]] = {}
        self.discovery = DiscoveryCache(self._fetch, transport.host)

    async def _fetch(self, path: str, accept: str) -> Any:
        etag, cached = self._cached.get(path, ("", None))
        headers: Headers = (("Accept", accept), *((("If-None-Match", etag),) if etag else ()))
        response = await self._transport.request("GET", path, headers=headers)
        if response.status == 304:
            return cached
        document = self._transport.decode_json(response)
        if etag := response.headers.get("ETag", ""):
            self._cached[path] = (etag, document)
        return document


class KubeCluster:
    """Close it, or use it as an async context manager. Clients from `acting_as` share the connection."""

    def __init__(
        self, transport: HttpTransport, discovery: DiscoveryCache, headers: Headers = (), budget: ReadBudget = UNLIMITED
    ) -> None:
        self._transport = transport
        self._discovery = discovery
        self._headers = headers
        self._budget = budget

    async def __aenter__(self) -> KubeCluster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    def set_reachability_log(self, reachability_log: ReachabilityLog) -> None:
        """Report to it from now on whether the server answers."""
        self._transport.reachability_log = reachability_log

    # -- reading

    async def version(self) -> str:
        """Return the server's gitVersion, such as `v1.32.13`."""
        document = self._transport.decode_json(await self._transport.request("GET", "/version"))
        return str(document.get("gitVersion") or "") if isinstance(document, dict) else ""

    async def kinds(self) -> Catalog:
        return (await self._discovery.refresh()).catalog

    async def get(self, key: ResourceKey) -> Manifest | None:
        path = await self._find_path(key)
        try:
            manifest = await self._transport.request_json("GET", path, headers=self._headers, key=key)
        except ClusterError as error:
            if error.code == 404 and (error.details or {}).get("name") == key.name:
                return None
            self._invalidate_discovery_on_404(error)
            raise
        return check_returned_object(manifest, key, self._transport.host)

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        path, info = await self._find_collection(kind, namespace)
        api_version = join_api_version(kind.group, info.version)
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        pages = ListPager(self._transport, self._budget, kind, namespace, info)
        headers = self._headers + ((("Accept", METADATA_MEDIA_TYPE.format("List")),) if metadata_only else ())
        try:
            items, version = await pages.fetch(path, selectors, headers)
        except ClusterError as error:
            self._invalidate_discovery_on_404(error)
            raise
        for item in items:  # k8s: items of a list have no apiVersion and kind, or those of PartialObjectMetadata
            item["apiVersion"], item["kind"] = api_version, kind.kind
        return Listing(items, version)

    async def fetch_table(
        self, kind: GroupKind, *, namespace: str = "", name: str = "", labels: str = "", fields: str = ""
    ) -> Manifest:
        """Fetch a Table as kubectl does: columns and rows, each row with its whole object."""
        path, _ = await self._find_collection(kind, namespace)
        query = _format_query({"labelSelector": labels, "fieldSelector": fields, "includeObject": "Object"})
        path = f"{path}/{quote(name, safe='')}" if name else path
        table: Manifest = await self._transport.request_json(
            "GET", path + query, headers=(*self._headers, ("Accept", TABLE_MEDIA_TYPE))
        )
        return table

    async def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        path, info = await self._find_collection(kind, namespace)
        api_version = join_api_version(kind.group, info.version)
        seconds = MIN_WATCH_SECONDS + random.randrange(MIN_WATCH_SECONDS)  # noqa: S311 - spreads load
        query = _format_query(
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": since,
                "labelSelector": labels,
                "timeoutSeconds": str(seconds),
            }
        )
        headers = self._headers + ((("Accept", METADATA_MEDIA_TYPE.format("")),) if metadata_only else ())
        has_logged = False
        try:
            async with self._transport.stream_lines(
                path + query, headers=headers, timeout_seconds=seconds + 15
            ) as lines:
                async for line in lines:
                    event = read_event(line, kind, namespace, self._transport.host, is_namespaced=info.namespaced)
                    if event is None:
                        return  # the connection broke within a line: the watch has ended
                    event_type, manifest = event
                    if event_type == "ERROR":
                        raise cluster_error_from_status(sanitize_status(manifest, 500))
                    if event_type != "BOOKMARK" and not has_printable_name(manifest):
                        if not has_logged:
                            log_unprintable_names(self._transport.host, kind, [manifest["metadata"]["name"]])
                        has_logged = True
                        continue
                    if event_type in ("ADDED", "MODIFIED"):
                        collection = _format_collection_name(path, labels)
                        self._budget.add_event(collection, read_object_name(manifest), estimate_memory(line))
                    elif event_type == "DELETED":
                        self._budget.remove_object(_format_collection_name(path, labels), read_object_name(manifest))
                    manifest["apiVersion"], manifest["kind"] = api_version, kind.kind
                    yield WatchEvent(event_type, manifest)  # type: ignore[arg-type]
        except ClusterError as error:
            self._invalidate_discovery_on_404(error)
            raise

    async def logs(
        self,
        key: ResourceKey,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: int | None = None,
        previous: bool = False,
    ) -> AsyncIterator[str]:
        query = _format_query(
            {
                "container": container,
                "follow": "true" if follow else "",
                "tailLines": "" if tail is None else str(tail),
                "sinceSeconds": "" if since is None else str(since),
                "previous": "true" if previous else "",
            }
        )
        path = await self._find_path(key, subresource="log")
        async with self._transport.stream_lines(path + query, headers=self._headers, key=key) as lines:
            async for line in lines:
                yield line.decode(errors="replace")

    # -- writing

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        key = _read_key(manifest)
        query = {"fieldManager": manager}
        if subresource_of is not None:
            path = await self._find_path(subresource_of, subresource=await self._find_subresource(subresource_of, key))
            return await self._write("POST", path, manifest, key, dry_run=dry_run, query=query)
        path = await self._find_path(key._replace(name=""), manifest["apiVersion"], to_create=True)
        answer = await self._write("POST", path, manifest, key, dry_run=dry_run, query=query)
        return check_returned_object(answer, key, self._transport.host)

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False) -> Manifest:
        key = _read_key(manifest)
        path = await self._find_path(key, manifest["apiVersion"])
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        answer = await self._write(
            "PATCH", path, manifest, key, dry_run=dry_run, media_type=APPLY_MEDIA_TYPE, query=query
        )
        return check_returned_object(answer, key, self._transport.host)

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest:
        key = _read_key(manifest)
        path = await self._find_path(key, manifest["apiVersion"])
        answer = await self._write("PUT", path, manifest, key, dry_run=dry_run, query={"fieldManager": manager})
        return check_returned_object(answer, key, self._transport.host)

    async def patch(
        self,
        key: ResourceKey,
        patch: Any,
        *,
        kind_of_patch: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        manager: str = "",
        api_version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        path = await self._find_path(key, api_version, subresource=subresource)
        answer = await self._write(
            "PATCH", path, patch, key, dry_run=dry_run, media_type=kind_of_patch.value, query={"fieldManager": manager}
        )
        return answer if subresource == "scale" else check_returned_object(answer, key, self._transport.host)

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation.value}
        preconditions = {"uid": uid, "resourceVersion": version}
        if uid is not None or version is not None:
            options["preconditions"] = {name: value for name, value in preconditions.items() if value is not None}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        await self._write("DELETE", await self._find_path(key), options, key)

    def acting_as(self, user: User) -> KubeCluster:
        """Impersonate `user`. k8s: an empty Impersonate-User header means no impersonation, so refuse an empty name."""
        discovery = self._discovery
        if not user.name:
            return _NamelessUserCluster(self._transport, discovery)
        return KubeCluster(self._transport, discovery, build_impersonation_headers(user), self._budget)

    # -- paths and pages

    def _invalidate_discovery_on_404(self, error: ClusterError) -> None:
        if error.code == 404:  # the kind is no longer served
            self._discovery.invalidate()

    async def _write(
        self,
        method: str,
        path: str,
        content: Any,
        key: ResourceKey,
        *,
        dry_run: bool = False,
        media_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Manifest:
        parameters = {**(query or {}), "dryRun": "All" if dry_run else ""}
        headers = (*self._headers, ("Content-Type", media_type))
        answer = await self._transport.request_json(
            method, path + _format_query(parameters), content, headers=headers, key=key
        )
        if not isinstance(answer, dict):
            raise ApiServerUnavailable(
                f"{self._transport.host}: the answer is not a JSON object; is this an API server?"
            )
        return answer

    async def _find_collection(self, kind: GroupKind, namespace: str) -> tuple[str, KindInfo]:
        info = await self._find_kind_info(kind)
        return build_collection_path(kind, info, info.version, _quote_segment(namespace, None)), info

    async def _find_path(
        self, key: ResourceKey, api_version: str = "", *, subresource: str = "", to_create: bool = False
    ) -> str:
        info = await self._find_kind_info(key.group_kind, api_version, key)
        if info.namespaced and not key.namespace:
            when = "during creation" if to_create else "when a resource name is provided"
            raise ClusterError(f"an empty namespace may not be set {when}", code=400, reason="BadRequest", key=key)
        if not key.name and not to_create:
            raise ClusterError("resource name may not be empty", code=400, reason="BadRequest", key=key)
        version = split_api_version(api_version)[1] or info.version
        path = build_collection_path(key.group_kind, info, version, _quote_segment(key.namespace, key))
        return "/".join([path, *(_quote_segment(part, key) for part in (key.name, subresource) if part)])

    async def _find_kind_info(self, kind: GroupKind, api_version: str = "", key: ResourceKey | None = None) -> KindInfo:
        version = split_api_version(api_version)[1]
        _, info = await self._discovery.find_kind(kind, version)
        if info is None or (version and version not in info.versions):
            raise build_not_served_error(str(kind), api_version, key)
        return info

    async def _find_subresource(self, parent: ResourceKey, posted: ResourceKey) -> str:
        discovery, _ = await self._discovery.find_kind(parent.group_kind)
        name = discovery.subresources.get((parent.group_kind, posted.group_kind))
        if name is None:
            raise build_not_served_error(f"{posted.group_kind} of {parent.group_kind}", key=parent)
        return name


class _NamelessUserCluster(KubeCluster):
    """A client with an empty user name: refuses every request without sending it."""

    async def _find_kind_info(self, kind: GroupKind, api_version: str = "", key: ResourceKey | None = None) -> KindInfo:
        raise Forbidden("the name of the impersonated user is empty", reason="Forbidden", key=key)

    async def kinds(self) -> Catalog:
        raise Forbidden("the name of the impersonated user is empty", reason="Forbidden")


def _format_collection_name(path: str, labels: str) -> str:
    """Identify one list and the watch that follows it in the memory budget."""
    return f"{path}?{labels}"


def _quote_segment(text: str, key: ResourceKey | None) -> str:
    """Quote a path segment. `..` is refused: a proxy would resolve it to another path."""
    if text in (".", ".."):
        raise ClusterError(f"a name may not be {text!r}", code=400, reason="BadRequest", key=key)
    return quote(text, safe="")


def build_impersonation_headers(user: User) -> Headers:
    extra = (
        (f"Impersonate-Extra-{quote(name, safe='')}", value)
        for name, values in (user.extra or {}).items()
        for value in values
    )
    return (
        ("Impersonate-User", user.name),
        *(("Impersonate-Group", group) for group in user.groups),
        *((("Impersonate-Uid", user.uid),) if user.uid else ()),
        *extra,
    )


def _read_key(manifest: Manifest) -> ResourceKey:
    """Read the key. Unlike `key_of`, accepts a missing name, as in reviews and with generateName."""
    try:
        group, _ = split_api_version(manifest["apiVersion"])
        metadata = manifest.get("metadata") or {}
        return ResourceKey(group, manifest["kind"], metadata.get("namespace") or "", metadata.get("name") or "")
    except (KeyError, AttributeError, TypeError) as error:
        raise ClusterError("Object 'Kind' or 'apiVersion' is missing", code=400, reason="BadRequest") from error


def _format_query(parameters: dict[str, str]) -> str:
    nonempty = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(nonempty)}" if nonempty else ""
