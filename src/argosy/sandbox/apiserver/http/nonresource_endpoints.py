"""HTTP endpoints that are not resources: discovery, OpenAPI, health, version, metrics, public keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from argosy import __version__
from argosy.kube.objects import Manifest
from argosy.kube.schema import openapi, openapi_v2
from argosy.observability.metrics import MEDIA
from argosy.sandbox.apiserver import discovery
from argosy.sandbox.apiserver.http.content_negotiation import media_ranges
from argosy.sandbox.apiserver.http.metrics import Metrics
from argosy.sandbox.apiserver.http.paths import NoSuchPath
from argosy.sandbox.apiserver.http.request import Request
from argosy.sandbox.apiserver.tokens import ISSUER

if TYPE_CHECKING:
    from argosy.sandbox.apiserver.control_plane import Plane

OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})  # k8s: no authentication needed
TEXT = "text/plain; charset=utf-8"
VERSION = {
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


class Plumbing:
    def __init__(self, plane: Plane, metrics: Metrics) -> None:
        self._plane = plane
        self._catalog = plane.registry.catalog
        self._metrics = metrics
        self._remembered: dict[Any, tuple[int, bytes, str]] = {}

    async def serve(self, request: Request) -> None:
        path = request.path.rstrip("/") or "/"
        match path.split("/")[1:]:
            case ["healthz" | "livez" | "readyz", *_]:
                await self._health(request, path[1:].split("/")[0])
            case ["version"]:
                await _json(request, VERSION, indent=True)
            case ["metrics"]:
                texts = [self._metrics.text(), *(each() for each in self._plane.measured)]
                await request.respond(200, "".join(texts).encode(), media=MEDIA)
            case ["api"]:
                await self._discovery(request, core=True)
            case ["apis"]:
                await self._discovery(request, core=False)
            case ["api", "v1"]:
                await self._document(request, discovery.resource_list(self._catalog, "", "v1"))
            case ["apis", group]:
                await self._document(request, discovery.group(self._catalog, group))
            case ["apis", group, version] if group:
                await self._document(request, discovery.resource_list(self._catalog, group, version))
            case ["openapi", "v3", *rest]:
                await self._openapi(request, rest)
            case ["openapi", "v2"] if openapi_v2.ACCEPTED in request.header(b"accept"):
                body, _ = self._remember("openapi v2", self._names_of_kinds)
                await request.respond(200, body, media=openapi_v2.MEDIA)
            case ["openid", "v1", "jwks"]:
                await self._plane.tokens.ready()
                await request.respond(200, orjson.dumps(self._plane.tokens.keys()), media="application/jwk-set+json")
            case [".well-known", "openid-configuration"]:
                await _json(request, self._openid(request))
            case [""]:
                await _json(request, {"paths": self._paths()}, indent=True)
            case _:
                raise NoSuchPath

    async def _health(self, request: Request, endpoint: str) -> None:
        """k8s: a failed check is a 500 that lists all checks. A server with a read-only store is live but not ready."""
        fault = self._plane.store.read_only if endpoint == "readyz" else ""
        store = f"[-]store failed: {fault}" if fault else "[+]store ok"
        checks = f"[+]ping ok\n{store}\n{endpoint} check {'failed' if fault else 'passed'}\n"
        verbose = fault or "verbose" in request.query
        await request.respond(500 if fault else 200, checks.encode() if verbose else b"ok", media=TEXT)

    # -- discovery -----------------------------------------------------------------------------------------------

    async def _discovery(self, request: Request, *, core: bool) -> None:
        version = _aggregated_version(request.header(b"accept"))
        if version:
            media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            make = self._maker(lambda: discovery.aggregated(self._catalog, core=core, version=version))
        else:
            media = "application/json"
            if core:  # it contains the requested host, so it is not cached
                await self._document(request, discovery.api_versions(request.header(b"host")))
                return
            make = self._maker(lambda: discovery.group_list(self._catalog))
        body, tag = self._remember(("discovery", core, version), make)
        headers = [(b"etag", tag.encode()), (b"cache-control", b"public"), (b"vary", b"Accept")]
        if request.header(b"if-none-match") == tag:
            await request.start(304, media, headers)
            await request.write(b"", more=False)
        else:
            await request.respond(200, body, media=media, headers=headers)

    def _maker(self, make: Callable[[], Manifest]) -> Callable[[], bytes]:
        return lambda: orjson.dumps(make())

    def _remember(self, key: Any, make: Callable[[], bytes]) -> tuple[bytes, str]:
        """The document and its ETag, built again only if the catalog has changed."""
        known = self._remembered.get(key)
        if known is None or known[0] != self._catalog.version:
            body = make()
            known = self._remembered[key] = (self._catalog.version, body, f'"{hashlib.sha512(body).hexdigest()}"')
        return known[1], known[2]

    async def _document(self, request: Request, document: Manifest | None) -> None:
        if document is None:
            raise NoSuchPath
        await _json(request, document)

    # -- OpenAPI -------------------------------------------------------------------------------------------------

    async def _openapi(self, request: Request, rest: list[str]) -> None:
        """Only `kubectl explain` gets schemas, because kubectl parses the whole document again for every object."""
        if not rest:
            body, _ = self._remember("openapi", lambda: orjson.dumps(self._openapi_index()))
            await request.respond(200, body, media=TEXT)
            return
        match rest:
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                raise NoSuchPath
        if not self._catalog.has_group_version(group, version):
            raise NoSuchPath
        full = _wants_schemas(request)
        make = self._full if full else self._stub
        body, tag = self._remember((full, group, version), lambda: make(group, version))
        await request.respond(200, body, headers=[(b"etag", tag.encode())])

    def _names_of_kinds(self) -> bytes:
        return openapi_v2.document(served.resource for served in self._catalog)

    def _openapi_index(self) -> Manifest:
        groups = self._catalog.groups()
        schemas = {
            f"apis/{group}/{version}": found
            for group, versions in groups.items()
            for version in versions
            if (found := self._custom_schemas(group, version))
        }
        return openapi.index([served.resource for served in self._catalog], schemas)

    def _custom_schemas(self, group: str, version: str) -> dict[str, Manifest]:
        custom = (served for served in self._catalog.custom())
        here = (served for served in custom if (served.resource.group, served.resource.version) == (group, version))
        return {served.resource.kind: served.schema for served in here}

    def _stub(self, group: str, version: str) -> bytes:
        return openapi.stub_document(self._catalog.resources(group, version))

    def _full(self, group: str, version: str) -> bytes:
        return openapi.full_document(self._catalog.resources(group, version), self._custom_schemas(group, version))

    # -- the rest ------------------------------------------------------------------------------------------------

    def _openid(self, request: Request) -> Manifest:
        return {
            "issuer": ISSUER,
            "jwks_uri": f"https://{request.header(b'host')}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _paths(self) -> list[str]:
        paths = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics"]
        for group, versions in self._catalog.groups().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted([*paths, "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"])


async def _json(request: Request, value: Manifest, *, indent: bool = False) -> None:
    await request.respond(200, orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None))


def _aggregated_version(accept: str) -> str:
    """k8s: v2, v2beta1, or "" for the legacy documents, whichever the client lists first."""
    for media, parameters in media_ranges(accept):
        if media == "application/json" and parameters.get("as") == "APIGroupDiscoveryList":
            if parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("v") in ("v2", "v2beta1"):
                return parameters["v"]
        elif media in ("application/json", "*/*"):
            return ""
    return ""


def _wants_schemas(request: Request) -> bool:
    command = request.header(b"kubectl-command")
    return "explain" in command or not request.header(b"user-agent").startswith("kubectl/")
