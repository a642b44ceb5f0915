"""Plants every kind of secret, then searches all responses, pages, errors, events, log lines and arguments for them.

A secret may be sent only to the cluster that it is for.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Route, SignedIn
from support.deadlines import wait_until_async
from support.engine import Repository
from support.route_requests import FILL, ROWS_BY_ROUTE, address, sent
from support.route_table import ROUTE_TABLE
from support.started_programs import arguments_started
from support.tenants import CONTROL, World, application, ask, declared, guarded_world, secret

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
KINDS = ["data", "stringData", "last-applied", "repository-password", "ssh-key", "github-app-key", "cluster-token"]
KINDS += ["exec-env", "oidc-secret", "signing-key", "account-hash", "api-token", "webhook-secret", "notification-token"]
KINDS += ["session-cookie", "desired-data", "desired-text"]
APP = "canary"
KIND = {"apiVersion": "v1", "kind": "Secret"}
SECRET_PATH = f"/apps/{CONTROL}/{APP}/r/-/Secret/team-a/creds"


class Canaries(dict[str, str]):
    def __init__(self, rng: random.Random) -> None:
        super().__init__({kind: f"cnry-{rng.randbytes(12).hex()}" for kind in KINDS})
        lines = "\n".join(base64.urlsafe_b64encode(rng.randbytes(48)).decode() for _ in range(5))
        self["ssh-key"] = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"
        self["github-app-key"] = f"-----BEGIN RSA PRIVATE KEY-----\n{lines[::-1]}\n-----END RSA PRIVATE KEY-----\n"

    def forms(self) -> Iterator[tuple[str, bytes]]:
        """Each secret in plain and encoded forms: base64 at any offset, hexadecimal, and its first 14 bytes."""
        for kind, value in self.items():
            lines = [line for line in value.splitlines() if not line.startswith("-----")]
            for raw in (line.encode() for line in lines):
                yield kind, raw
                yield kind, raw[:14]
                yield kind, raw.hex().encode()
                for skipped in range(3):
                    part = raw[skipped:]
                    yield kind, base64.b64encode(part[: len(part) // 3 * 3])

    def found_in(self, data: bytes) -> set[str]:
        return {kind for kind, form in self.forms() if form in data}


def planted(canaries: Canaries) -> list[dict[str, Any]]:
    live = secret("creds", {}, password=canaries["data"])
    applied = {**live, "data": {}, "stringData": {"password": canaries["last-applied"]}}
    live["metadata"] |= {
        "namespace": "team-a",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied),
            "argocd.argoproj.io/tracking-id": f"{APP}:/Secret:team-a/creds",
        },
    }
    config = {
        "bearerToken": canaries["cluster-token"],
        "execProviderConfig": {"command": "x", "env": {"TOKEN": canaries["exec-env"]}},
    }
    remote = {"server": "https://remote.example.com", "name": "remote", "config": json.dumps(config)}
    password, key = canaries["repository-password"], canaries["ssh-key"]
    return [
        live,
        {**secret("texts", {}), "stringData": {"token": canaries["stringData"]}},
        declared("repository", "repo-password", url="https://git.example.com/p", username="bot", password=password),
        declared("repository", "repo-ssh", url="git@git.example.com:s", sshPrivateKey=key),
        declared(
            "repo-creds", "repo-app", url="https://git.example.com/g", githubAppID="1", githubAppInstallationID="2",
            githubAppPrivateKey=canaries["github-app-key"],
        ),
        declared("cluster", "remote", **remote),
        secret("argocd-notifications-secret", {}, **{"slack-token": canaries["notification-token"]}),
    ]  # fmt: skip


def in_git(canaries: Canaries, folder: Path) -> dict[str, Any]:
    """An Application whose Secrets are in Git."""
    repository = Repository(folder)
    encoded = base64.b64encode(canaries["desired-data"].encode()).decode()
    manifests = [
        {**KIND, "metadata": {"name": "creds"}, "data": {"password": encoded}},
        {**KIND, "metadata": {"name": "b"}, "stringData": {"t": canaries["desired-text"]}},
    ]
    repository.push({f"app/{number}.yaml": dump_yaml(manifest) for number, manifest in enumerate(manifests)})
    app = application("team-a")
    app["metadata"]["name"] = APP
    app["spec"]["source"]["repoURL"] = repository.url
    app["status"] = {
        "resources": [
            {"kind": "Secret", "version": "v1", "namespace": "team-a", "name": name, "status": "OutOfSync"}
            for name in ("creds", "b")
        ],
        "sync": {"status": "OutOfSync", "revision": repository.head},
        "history": [{"id": 1, "revision": repository.head, "deployedAt": "2026-01-01T00:00:00Z"}],
    }
    return app


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def canaries(module_rng: random.Random) -> Canaries:
    return Canaries(module_rng)


@pytest.fixture(scope="module")
async def world(
    anyio_backend: str, canaries: Canaries, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("canaries")
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": CONTROL}}
    roots = {**settings, "data": {"source.local.roots": str(folder)}}
    manifests = [roots, *planted(canaries), in_git(canaries, folder / "repository")]
    async with guarded_world(folder, manifests) as opened_world:
        own = {
            "oidc.clientSecret": canaries["oidc-secret"],
            "webhook.github.secret": canaries["webhook-secret"],
            "accounts.hashed.password": canaries["account-hash"],
            "server.secretkey": canaries["signing-key"],
        }
        data = {name: base64.b64encode(value.encode()).decode() for name, value in own.items()}
        key = ResourceKey("", "Secret", CONTROL, "argocd-secret")
        before = await opened_world.cluster.get(key)
        await opened_world.cluster.patch(key, {"data": data})
        await opened_world.site.authenticator.state.refresh(opened_world.cluster)
        token = await opened_world.site.authenticator.account_store.add_token("admin")
        canaries["api-token"], canaries["session-cookie"] = token.rpartition(".")[2], token.rpartition(".")[2]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        opened_world.callers["admin"] = opened_world.callers["admin"]._replace(headers=headers)
        await wait_until_async(lambda: before and opened_world.site.cluster_view.cache.get(key) != before)
        yield opened_world


def addresses(route: Route) -> Iterator[str]:
    row = ROWS_BY_ROUTE[route.method, route.path]
    case = FILL[row.about]("own")
    yield address(route, case)
    if row.about == "application":
        names = {"name": APP, "applicationName": APP, "group": "-", "kind": "Secret", "rns": "team-a", "rname": "creds"}
        query = {"kind": "Secret", "group": "", "version": "v1", "namespace": "team-a", "resourceName": "creds"}
        yield address(route, case._replace(values={**case.values, **names}, query=query))
        yield address(route, case._replace(values={**case.values, **names}, query={}))
    if row.about == "repository":
        for url in ("https://git.example.com/p", "git@git.example.com:s", "https://git.example.com/g"):
            yield address(route, case._replace(values={"repo": url, "url": url}))
    if row.about == "cluster":
        yield address(route, case._replace(values={"id": "https://remote.example.com"}))


TABS = ("live", "desired", "diff", "applied", "last-applied", "events", "summary", "manifest", "yaml", "")


async def find_leaks(
    world: World, entry: WebApplication, canaries: Canaries, paths: Sequence[str]
) -> tuple[list[str], int]:
    """Leaked secrets as "path: kind", and how many bytes were searched."""
    headers = dict(world.callers["admin"].headers)
    leaks, sizes = [], 0
    for path in paths:
        got = await ask(entry, "GET", path, headers, reads_stream=True)
        sizes += len(got.body)
        content = got.body + json.dumps(dict(got.headers)).encode()
        leaks += [f"GET {path}: {kind}" for kind in canaries.found_in(content)]
        assert got.code != 500, (path, got.body[:500])
    return leaks, sizes


async def test_no_response_log_line_or_argument_contains_a_secret(
    world: World, canaries: Canaries, caplog: pytest.LogCaptureFixture, size: Callable[..., int], rng: random.Random
) -> None:
    caplog.set_level(logging.DEBUG)
    entry = world.entry()
    assert len(entry.mask.search) > 40
    paths = [path for route in ROUTE_TABLE if route.method == "GET" for path in addresses(route)]
    paths += [f"{SECRET_PATH}?tab={tab}" for tab in TABS]
    paths += [f"/api/nowhere/{quote(segment)}" for segment in ("x", canaries["data"])]
    paths = rng.sample(paths, min(len(paths), size(20 * len(paths), test=len(paths) // 4)))
    with arguments_started() as arguments:
        leaks, sizes = await find_leaks(world, entry, canaries, paths)
    assert leaks == []
    assert sizes > 500 * len(paths), "there was nothing to look through"
    assert canaries.found_in("\n".join(arguments).encode() + command_lines()) == set()
    visible_records = [record for record in caplog.records if entry.log_filter.filter(record)]
    assert canaries.found_in("\n".join(record.getMessage() for record in visible_records).encode()) == set()


async def test_search_finds_secrets_when_masking_is_disabled(
    world: World, canaries: Canaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def careless(request: RequestContext) -> JsonResponse:
        secrets = request.cluster_view.cache.list(GroupKind("", "Secret"))
        return JsonResponse([*secrets, canaries["desired-text"], canaries["api-token"]])

    entry = world.entry([Route("GET", "/api/v1/careless", SignedIn(), careless)])
    leaks, _ = await find_leaks(world, entry, canaries, ["/api/v1/careless"])
    in_no_secret = {"desired-text", "api-token", "session-cookie"}  # so argosy cannot know that they must be masked
    assert {leak.rpartition(": ")[2] for leak in leaks} == in_no_secret
    monkeypatch.setattr(
        "argosy.web.middleware.response_serialization.serialize_masked", lambda document, names: orjson.dumps(document)
    )
    monkeypatch.setattr(SecretMask, "mask_media", lambda self, data, media, *_: data)
    leaks, _ = await find_leaks(world, entry, canaries, ["/api/v1/careless"])
    assert {leak.rpartition(": ")[2] for leak in leaks} >= set(KINDS) - {"desired-data"}


async def test_no_error_response_contains_a_secret(world: World, canaries: Canaries) -> None:
    """Sends bodies that contain secrets, and invalid bodies, to every mutating route."""
    entry, leaks = world.entry(), []
    for route in ROUTE_TABLE:
        if not route.is_mutating:
            continue
        for caller in ("nothing", "viewer-a"):
            case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
            for text in ("{", json.dumps({"password": canaries["data"], "name": canaries["stringData"]})):
                body, headers = sent(route, case, dict(world.callers[caller].headers))
                body = text.encode() if route.is_api else body
                got = await ask(entry, route.method, address(route, case), headers, body)
                assert got.code != 500, (route.path, got.body[:300])
                leaks += [f"{route.method} {route.path}: {kind}" for kind in canaries.found_in(got.body)]
    assert leaks == []


async def test_anonymous_responses_do_not_confirm_a_guess(world: World, canaries: Canaries, rng: random.Random) -> None:
    """Input is echoed unmasked, next to random tokens only: a correct and a wrong guess give the same response."""
    entry, all_answers = world.entry(), []
    for guess in (canaries["data"], f"cnry-{rng.randbytes(12).hex()}"):
        answers = []
        tries = [("GET", f"{path}/x/{guess}") for path in ("/login?next=", "/auth/login?next=", "/apps?q=")]
        tries += [(f"G{guess}", "/login"), ("GET", f"/api/badge?name={guess}&showAppName=true&revision={guess}")]
        tries += [("POST", "/api/v1/session"), ("GET", f"/enter?code={guess}"), ("GET", f"/{guess}")]
        for method, path in tries:
            body = json.dumps({"username": guess, guess: guess}).encode() if method == "POST" else b""
            got = await ask(entry, method, path, {"content-type": "application/json"}, body)
            text = got.body.decode() + str(got.headers.get("location", ""))
            assert "++++++++" not in text, (path, text)
            answers.append((got.code, re.sub(r"[\w-]{40,}", "", text.replace(guess, ""))))
        all_answers.append(answers)
    assert all_answers[0] == all_answers[1]


async def test_no_event_or_application_contains_a_secret(world: World, canaries: Canaries) -> None:
    for kind in await world.cluster.kinds():
        if kind.kind in ("Event", "ConfigMap", "Application", "AppProject"):
            for manifest in (await world.cluster.list(kind)).items:
                assert canaries.found_in(json.dumps(manifest).encode()) == set(), manifest["metadata"]["name"]


async def test_store_files_contain_no_plain_secret(
    world: World, canaries: Canaries, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = next(path for path in tmp_path_factory.getbasetemp().iterdir() if path.name.startswith("canaries"))
    files = [file for file in folder.glob("argosy.db*") if file.is_file()]
    assert files
    assert {file.name: leaked_kinds for file in files if (leaked_kinds := canaries.found_in(file.read_bytes()))} == {}


def command_lines() -> bytes:
    """Command lines of all visible processes, also of running child processes started by other programs."""
    content = b""
    for process_folder in Path("/proc").iterdir():
        if process_folder.name.isdigit():
            with suppress(OSError):
                content += (process_folder / "cmdline").read_bytes()
    return content
