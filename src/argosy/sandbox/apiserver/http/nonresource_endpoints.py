"""HTTP endpoints that are not resources: discovery, OpenAPI, health, version, metrics, public keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from argosy import __version__
from argosy.kube.objects import Manifest
from argosy.kube.schema import openapi_v2, openapi_v3_documents
from argosy.observability.metrics import CONTENT_TYPE
from argosy.sandbox.apiserver import discovery
from argosy.sandbox.apiserver.http.content_negotiation import parse_accept_header
from argosy.sandbox.apiserver.http.metrics import ApiServerMetrics
from argosy.sandbox.apiserver.http.paths import NoSuchPath
from argosy.sandbox.apiserver.http.request_and_response_io import HttpRequest
from argosy.sandbox.apiserver.service_account_tokens import ISSUER

if TYPE_CHECKING:
    from argosy.sandbox.apiserver.control_plane import ControlPlane

UNAUTHENTICATED_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})  # k8s: no authentication needed
TEXT_MEDIA_TYPE = "text/plain; charset=utf-8"
VERSION_INFO = {
    "major": "1",
    "minor": "32",
    "gitVersion": f"v1.32.13+argosy.{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "argosy/sandbox",
}


class NonResourceEndpoints:
    def __init__(self, plane: ControlPlane, metrics: ApiServerMetrics) -> None:
        self._plane = plane
        self._catalog = plane.registry.catalog
        self._metrics = metrics
        self._documents: dict[Any, tuple[int, bytes, str]] = {}

    async def serve(self, request: HttpRequest) -> None:
        path = request.path.rstrip("/") or "/"
        match path.split("/")[1:]:
            case ["healthz" | "livez" | "readyz", *_]:
                await self._serve_health(request, path[1:].split("/")[0])
            case ["version"]:
                await _respond_with_json(request, VERSION_INFO, indent=True)
            case ["metrics"]:
                texts = [self._metrics.render(), *(source() for source in self._plane.metric_sources)]
                await request.respond(200, "".join(texts).encode(), media=CONTENT_TYPE)
            case ["api"]:
                await self._serve_discovery(request, is_core=True)
            case ["apis"]:
                await self._serve_discovery(request, is_core=False)
            case ["api", "v1"]:
                await self._serve_document(request, discovery.build_api_resource_list(self._catalog, "", "v1"))
            case ["apis", group]:
                await self._serve_document(request, discovery.build_api_group(self._catalog, group))
            case ["apis", group, version] if group:
                await self._serve_document(request, discovery.build_api_resource_list(self._catalog, group, version))
            case ["openapi", "v3", *segments]:
                await self._serve_openapi(request, segments)
            case ["openapi", "v2"] if openapi_v2.ACCEPT_MEDIA_TYPE in request.header(b"accept"):
                body, _ = self._get_or_build_document("openapi v2", self._build_openapi_v2)
                await request.respond(200, body, media=openapi_v2.MEDIA_TYPE)
            case ["openid", "v1", "jwks"]:
                await self._plane.tokens.ensure_key()
                await request.respond(
                    200, orjson.dumps(self._plane.tokens.build_jwks()), media="application/jwk-set+json"
                )
            case [".well-known", "openid-configuration"]:
                await _respond_with_json(request, self._build_openid_configuration(request))
            case [""]:
                await _respond_with_json(request, {"paths": self._list_paths()}, indent=True)
            case _:
                raise NoSuchPath

    async def _serve_health(self, request: HttpRequest, endpoint: str) -> None:
        """k8s: a failed check is a 500 that lists all checks. A server with a read-only store is live but not ready."""
        problem = self._plane.store.read_only_reason if endpoint == "readyz" else ""
        store = f"[-]store failed: {problem}" if problem else "[+]store ok"
        checks = f"[+]ping ok\n{store}\n{endpoint} check {'failed' if problem else 'passed'}\n"
        verbose = problem or "verbose" in request.query
        await request.respond(500 if problem else 200, checks.encode() if verbose else b"ok", media=TEXT_MEDIA_TYPE)

    # -- discovery -----------------------------------------------------------------------------------------------

    async def _serve_discovery(self, request: HttpRequest, *, is_core: bool) -> None:
        version = _read_discovery_version(request.header(b"accept"))
        if version:
            media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            build = self._build_as_json(
                lambda: discovery.build_aggregated_discovery(self._catalog, is_core=is_core, version=version)
            )
        else:
            media = "application/json"
            if is_core:  # it contains the requested host, so it is not cached
                await self._serve_document(request, discovery.build_api_versions(request.header(b"host")))
                return
            build = self._build_as_json(lambda: discovery.build_group_list(self._catalog))
        body, etag = self._get_or_build_document(("discovery", is_core, version), build)
        headers = [(b"etag", etag.encode()), (b"cache-control", b"public"), (b"vary", b"Accept")]
        if request.header(b"if-none-match") == etag:
            await request.start_response(304, media, headers)
            await request.write(b"", has_more=False)
        else:
            await request.respond(200, body, media=media, headers=headers)

    def _build_as_json(self, build: Callable[[], Manifest]) -> Callable[[], bytes]:
        return lambda: orjson.dumps(build())

    def _get_or_build_document(self, key: Any, build: Callable[[], bytes]) -> tuple[bytes, str]:
        """The document and its ETag, built again only if the catalog has changed."""
        cached = self._documents.get(key)
        if cached is None or cached[0] != self._catalog.version:
            body = build()
            cached = self._documents[key] = (self._catalog.version, body, f'"{hashlib.sha512(body).hexdigest()}"')
        return cached[1], cached[2]

    async def _serve_document(self, request: HttpRequest, document: Manifest | None) -> None:
        if document is None:
            raise NoSuchPath
        await _respond_with_json(request, document)

    # -- OpenAPI -------------------------------------------------------------------------------------------------

    async def _serve_openapi(self, request: HttpRequest, segments: list[str]) -> None:
        """Only `kubectl explain` gets schemas, because kubectl parses the whole document again for every object."""
        if not segments:
            body, _ = self._get_or_build_document("openapi", lambda: orjson.dumps(self._build_openapi_index()))
            await request.respond(200, body, media=TEXT_MEDIA_TYPE)
            return
        match segments:
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                raise NoSuchPath
        if not self._catalog.has_group_version(group, version):
            raise NoSuchPath
        has_schemas = _wants_schemas(request)
        build = self._build_full_document if has_schemas else self._build_stub_document
        body, etag = self._get_or_build_document((has_schemas, group, version), lambda: build(group, version))
        await request.respond(200, body, headers=[(b"etag", etag.encode())])

    def _build_openapi_v2(self) -> bytes:
        return openapi_v2.build_document(served.resource for served in self._catalog)

    def _build_openapi_index(self) -> Manifest:
        groups = self._catalog.list_group_versions()
        schemas = {
            f"apis/{group}/{version}": custom_schemas
            for group, versions in groups.items()
            for version in versions
            if (custom_schemas := self._get_custom_schemas(group, version))
        }
        return openapi_v3_documents.build_index([served.resource for served in self._catalog], schemas)

    def _get_custom_schemas(self, group: str, version: str) -> dict[str, Manifest]:
        custom = (served for served in self._catalog.list_custom_kinds())
        kinds_of_version = (
            served for served in custom if (served.resource.group, served.resource.version) == (group, version)
        )
        return {served.resource.kind: served.schema for served in kinds_of_version}

    def _build_stub_document(self, group: str, version: str) -> bytes:
        return openapi_v3_documents.build_stub_document(self._catalog.list_resources(group, version))

    def _build_full_document(self, group: str, version: str) -> bytes:
        return openapi_v3_documents.build_full_document(
            self._catalog.list_resources(group, version), self._get_custom_schemas(group, version)
        )

    # -- the rest ------------------------------------------------------------------------------------------------

    def _build_openid_configuration(self, request: HttpRequest) -> Manifest:
        return {
            "issuer": ISSUER,
            "jwks_uri": f"https://{request.header(b'host')}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _list_paths(self) -> list[str]:
        paths = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics"]
        for group, versions in self._catalog.list_group_versions().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted([*paths, "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"])


async def _respond_with_json(request: HttpRequest, value: Manifest, *, indent: bool = False) -> None:
    await request.respond(200, orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None))


def _read_discovery_version(accept: str) -> str:
    """k8s: v2, v2beta1, or "" for the legacy documents, whichever the client lists first."""
    for media, parameters in parse_accept_header(accept):
        if media == "application/json" and parameters.get("as") == "APIGroupDiscoveryList":
            if parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("v") in ("v2", "v2beta1"):
                return parameters["v"]
        elif media in ("application/json", "*/*"):
            return ""
    return ""


def _wants_schemas(request: HttpRequest) -> bool:
    command = request.header(b"kubectl-command")
    return "explain" in command or not request.header(b"user-agent").startswith("kubectl/")
