"""An installation with two teams and many callers, for proofs of authorization.

In: a folder. Out: a Site on an embedded cluster, callers with their credentials, and responses of the ASGI application
without a socket. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from argosy.features.applications.streams import tree_api
from argosy.features.serve.web_application import open_web_application
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.signed_tokens import ISSUER, TokenClaims, sign_token
from argosy.web.live_updates.cluster_view_change_feed import ChangeFeed
from argosy.web.live_updates.viewer_group import PageViewer
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.route import Route
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, embedded, furnish, shared_crew
from support.route_table import build_routes

# Permissions by account; `policy` generates the RBAC policy from them.
GRANTS: dict[str, list[tuple[str, str, str, str]]] = {
    "admin": [("*", "*", "*", "allow")],
    "reader": [("*", "get", "*", "allow")],
    "dev-a": [("*", "*", "team-a/*", "allow"), ("projects", "*", "team-a", "allow")],
    "viewer-a": [("applications", "get", "team-a/*", "allow"), ("projects", "get", "team-a", "allow")],
    "syncer-a": [("applications", "get", "team-a/*", "allow"), ("applications", "sync", "team-a/*", "allow")],
    "all-but-b": [("*", "*", "*", "allow"), ("*", "*", "team-b", "deny"), ("*", "*", "team-b/*", "deny")],
    "nothing": [],
    "logs-b": [("logs", "get", "team-b/*", "allow")],
    # argo: a role of a project includes permission to get the project
    "proj:team-a:deployer": [("applications", "*", "team-a/*", "allow"), ("projects", "get", "team-a", "allow")],
    "proj:team-b:deployer": [("applications", "*", "team-b/*", "allow"), ("projects", "get", "team-b", "allow")],
}
STRANGERS = ("nobody", "garbage", "none-alg", "other-key", "expired", "deleted", "disabled", "reserved", "gone-role")
RESOURCES = ["accounts", "applications", "applicationsets", "certificates", "clusters", "exec", "extensions", "gpgkeys"]
RESOURCES += ["logs", "projects", "repositories", "write-repositories"]
MODEL = ("serving.kserve.io/v1beta1", "InferenceService")
NOTEBOOK = ("mlops.mlops.dev/v1alpha1", "NotebookValidationJob")
REPOSITORIES = {team: f"https://git.example.com/{team}" for team in ("team-a", "team-b")}
SERVERS = {team: f"https://{team}.example.com" for team in ("team-a", "team-b")}


class Caller(NamedTuple):
    name: str  # key of GRANTS; empty: unauthenticated
    headers: Mapping[str, str]


class Answered(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class World:
    cluster: Cluster
    site: Site
    callers: dict[str, Caller]

    def entry(self, routes: Iterable[Route] | None = None) -> WebApplication:
        """A server of these routes, or of all of argosy's."""
        return WebApplication(self.site, build_routes(self.site) if routes is None else tuple(routes))


async def ask(
    entry: WebApplication,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    reads_stream: bool = False,
) -> Answered:
    """Call the ASGI application. The client disconnects from a stream at once, or with `reads_stream` when the stream
    waits for a change."""
    raw, _, query = path.partition("?")
    request_headers = {"host": "localhost", **{name.lower(): value for name, value in (headers or {}).items()}}
    if body:
        request_headers.setdefault("content-length", str(len(body)))
    scope = {
        "type": "http", "method": method, "path": raw, "raw_path": raw.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request_headers.items()],
        "client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    messages: list[dict[str, Any]] = []
    read = False
    waits_for_changes = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal read
        if read:
            if reads_stream:
                async with asyncio.timeout(HANG_SECONDS):
                    await waits_for_changes.wait()
            return {"type": "http.disconnect"}
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    with notice_waits(waits_for_changes) if reads_stream else nullcontext():
        await entry(scope, receive, send)
    response_headers = {name.decode(): value.decode("latin-1") for name, value in messages[0]["headers"]}
    return Answered(
        messages[0]["status"],
        response_headers,
        b"".join(sent_message.get("body", b"") for sent_message in messages[1:]),
    )


@contextmanager
def notice_waits(waits_for_changes: asyncio.Event) -> Iterator[None]:
    """Set the event when a stream waits for a change; the stream has sent all current state by then."""

    def noticing(wait: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        def noticed(*arguments: Any) -> Awaitable[Any]:
            waits_for_changes.set()
            return wait(*arguments)

        return noticed

    with (
        patch.object(ChangeFeed, "next", noticing(ChangeFeed.next)),
        patch.object(PageViewer, "next", noticing(PageViewer.next)),
        patch.object(tree_api, "MIN_INTERVAL_SECONDS", 0.0),  # no delay between two updates
    ):
        yield


def policy() -> str:
    lines = []
    for name, grants in GRANTS.items():
        if name.startswith("proj:") or name == "admin":
            continue
        for resource, action, thing, effect in grants:
            kinds = RESOURCES if resource == "*" else [resource]
            lines += [f"p, role:{name}, {kind}, {action}, {thing}, {effect}" for kind in kinds]
        lines.append(f"g, {name}, role:{name}")
    return "\n".join(lines)


def secret(called: str, labels: Mapping[str, str], **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": called, "namespace": CONTROL, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def declared(kind: str, called: str, **data: str) -> dict[str, Any]:
    return secret(called, {"argocd.argoproj.io/secret-type": kind}, **data)


def application(team: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": f"app-{team[-1]}", "namespace": CONTROL, **metadata},
        "spec": {
            "project": team,
            "source": {"repoURL": REPOSITORIES[team], "path": "app", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": team},
        },
        "status": {"resources": [row(team, *kind) for kind in (MODEL, NOTEBOOK)]},
    }


def row(team: str, version: str, kind: str) -> dict[str, str]:
    group, _, plain = version.partition("/")
    return {"group": group, "version": plain, "kind": kind, "namespace": team, "name": f"thing-{team[-1]}"}


def project(team: str, tokens: list[dict[str, Any]]) -> dict[str, Any]:
    rule = f"p, proj:{team}:deployer, applications, *, {team}/*, allow"
    role = {"name": "deployer", "policies": [rule], "jwtTokens": tokens}
    spec = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": team}], "roles": [role]}
    metadata = {"name": team, "namespace": CONTROL}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


def owned(team: str, version: str, kind: str) -> dict[str, Any]:
    """Return an object that is tracked by the Application of this team."""
    group, name = version.partition("/")[0], f"thing-{team[-1]}"
    tracked = f"app-{team[-1]}:{group}/{kind}:{team}/{name}"
    metadata = {"name": name, "namespace": team, "annotations": {"argocd.argoproj.io/tracking-id": tracked}}
    spec: dict[str, Any] = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}
    if kind == NOTEBOOK[1]:
        spec = {"notebook": {"git": {"url": REPOSITORIES[team], "ref": "main"}, "path": "a.ipynb"}}
        spec |= {"podConfig": {"containerImage": "x"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def settings(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": CONTROL}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def furnished(cluster: Cluster, now: int) -> None:
    await furnish(cluster, CONTROL, "team-a", "team-b")
    for name in ("inferenceservices.serving.kserve.io", "notebookvalidationjobs.mlops.mlops.dev"):
        await cluster.create(load_definition(name))
    accounts = [name for name in GRANTS if not name.startswith("proj:") and name != "admin"]
    capable = {f"accounts.{name}": "apiKey, login" for name in (*accounts, "disabled", "deleted")}
    await cluster.create(settings("argocd-cm", **capable, **{"accounts.admin": "apiKey, login"}))
    await cluster.create(settings("argocd-rbac-cm", **{"policy.csv": policy(), "policy.default": ""}))
    for team in ("team-a", "team-b"):
        await cluster.create(project(team, [{"iat": now, "id": f"token-of-{team}"}]))
        await cluster.create(application(team))
        for kind in ("repository", "repo-creds", "repository-write", "repo-write-creds"):
            fields = {"url": REPOSITORIES[team], "project": team, "type": "git"}
            await cluster.create(declared(kind, f"{kind}-{team}", **fields))
        config = {"server": SERVERS[team], "name": team, "project": team, "config": "{}"}
        await cluster.create(declared("cluster", f"cluster-{team}", **config))
        for group_kind in (MODEL, NOTEBOOK):
            await cluster.create(owned(team, *group_kind))


@asynccontextmanager
async def guarded_world(folder: Path, manifests: list[dict[str, Any]] | None = None) -> AsyncIterator[World]:
    now = int(time.time())
    async with embedded(folder) as cluster:
        await furnished(cluster, now)
        for manifest in manifests or ():
            await cluster.create(manifest)
        options = ServeOptions(version="v1.2.3", port=1)
        async with open_web_application(
            cluster, "a test", options, folder / "page", CONTROL, process_pool=shared_crew()
        ) as application:
            site = application.site
            assert isinstance(site.authenticator, Authenticator)
            yield World(cluster, site, await _callers(cluster, site.authenticator, now))


async def _callers(cluster: Cluster, identities: Authenticator, now: int) -> dict[str, Caller]:
    key, book = identities.signing_key, identities.account_store

    def bearer(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def add_caller(subject: str, token_id: str, *, expires: int = 0, signed_by: bytes = key) -> dict[str, str]:
        return bearer(sign_token(TokenClaims(ISSUER, subject, token_id, now, expires, now), signed_by))

    bearers = {name: bearer(await book.add_token(name)) for name in GRANTS if not name.startswith("proj:")}
    for team in ("team-a", "team-b"):
        bearers[f"proj:{team}:deployer"] = add_caller(f"proj:{team}:deployer", f"token-of-{team}")
    deleted, disabled = await book.add_token("deleted", token_id="d"), await book.add_token("disabled")
    expired = await book.add_token("admin", lifetime_seconds=60, token_id="e")
    await book.remove_token("deleted", "d")
    key_of_settings = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
    await cluster.patch(key_of_settings, {"data": {"accounts.disabled.enabled": "false"}})
    await identities.state.refresh(cluster)
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    payload = bearers["admin"]["Authorization"].split(".")[1]
    old = TokenClaims(ISSUER, "admin:apiKey", "e", now - 7200, now - 3600, now - 7200)
    strangers = {
        "nobody": {"Content-Type": "application/json"},
        "garbage": bearer("not.a.token"),
        "none-alg": bearer(f"{head}.{payload}."),
        "other-key": add_caller("admin:login", "x", expires=now + 600, signed_by=secrets.token_bytes(32)),
        "expired": bearer(sign_token(old, key)) if expired else {},
        "deleted": bearer(deleted),
        "disabled": bearer(disabled),
        "reserved": add_caller("role:admin:apiKey", "r"),
        "gone-role": add_caller("proj:team-a:gone", "token-of-team-a"),
    }
    assert tuple(strangers) == STRANGERS
    return {name: Caller(name, headers) for name, headers in bearers.items()} | {
        name: Caller("", headers) for name, headers in strangers.items()
    }


def stubbed(routes: Any, answer: Any) -> list[Any]:
    return [replace(route, handler=answer) for route in routes]
