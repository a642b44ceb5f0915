"""Secret values repeated outside of Secrets: no page, API response, stream or log line contains one.

No program argument contains one, and no unencrypted byte of a store that has them only in Secrets.

Each value is in a Secret, alone or inside a file, and again in a ConfigMap, an Event, an Application's status, in Git,
in the environment of a Pod, and in that Pod's log.
"""

from __future__ import annotations

import base64
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_mask import LogMaskFilter
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.route import Route
from support.deadlines import wait_until_async
from support.engine import Repository, embedded, furnish
from support.route_requests import FILL, ROWS_BY_ROUTE, address
from support.route_table import ROUTE_TABLE
from support.started_programs import arguments_started
from support.tenants import CONTROL, World, application, ask, declared, guarded_world, secret

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
APP = "canary"
WHEN = "2026-01-01T00:00:00Z"
SIGNS = {
    "quotes": "\"'`", "backslashes": "\\\\\\", "ampersand": "&amp;&", "tags": "</p><b>", "lines": "\n\t\n",
    "unicode": "ß€\U0001f511", "percent": "%20%2F+", "template": "{{ }}", "spaces": "  : ,",
    "json": '","a":"', "yaml": "''- #", "long": "",
}  # fmt: skip
FILES = {
    "env": "USER=ml\nPASS={}\n",
    "exported": "export TOKEN='{}'\nB=2\n",
    "ini": "[db]\npassword = {}\n",
    "yaml file": "db:\n  password: {}\n",
    "json file": '{{"auths": {{"r": {{"auth": "{}"}}}}}}',
    "connection": "postgres://ml:{}@db/prod",
    "joined": "Server=db;Password={};Port=1",
}
ADDRESSES = ("repository address", "application address")


def canary(rng: random.Random, middle: str = "") -> str:
    return f"cnry-{rng.randbytes(8).hex()}{middle}{rng.randbytes(8).hex()}-cnry"


def made_canaries(rng: random.Random) -> dict[str, str]:
    canaries_by_kind = {kind: canary(rng, signs) for kind, signs in SIGNS.items()}
    canaries_by_kind["long"] = canary(rng, base64.urlsafe_b64encode(rng.randbytes(60_000)).decode())
    return canaries_by_kind | {kind: canary(rng) for kind in (*FILES, *ADDRESSES)}


def pieces(value: str) -> tuple[bytes, bytes]:
    """Its beginning and its end: characters that no encoding escapes."""
    return value[:18].encode(), value[-18:].encode()


def found_in(canaries: dict[str, str], data: bytes) -> set[str]:
    return {kind for kind, value in canaries.items() if any(piece in data for piece in pieces(value))}


def kept_forms(value: str) -> Iterator[bytes]:
    """Forms in which a store could hold it: beginning and end, plain, as base64 at any offset, and as hexadecimal."""
    for raw in pieces(value):
        yield raw
        yield raw.hex().encode()
        for skipped in range(3):
            part = raw[skipped:]
            yield base64.b64encode(part[: len(part) // 3 * 3])


def build_secrets(canaries: dict[str, str]) -> list[dict[str, Any]]:
    plain = {kind: value for kind, value in canaries.items() if kind in SIGNS}
    files = {kind: form.format(canaries[kind]) for kind, form in FILES.items()}
    names = {kind.replace(" ", "-"): value for kind, value in (plain | files).items()}
    url = f"https://bot:{canaries['repository address']}@git.example.com/r"
    return [secret("odd", {}, **names), declared("repository", "repo-odd", url=url, type="git")]


def build_visible_objects(canaries: dict[str, str], head: str) -> list[dict[str, Any]]:
    data = {kind.replace(" ", "-"): value for kind, value in canaries.items()}
    tracked = {"argocd.argoproj.io/tracking-id": f"{APP}:/ConfigMap:team-a/shown"}
    tracked |= {"note": json.dumps(json.dumps(data))}
    metadata = {"name": "shown", "namespace": "team-a", "annotations": tracked}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    about = {"kind": "ConfigMap", "namespace": "team-a", "name": "shown"}
    message = " | ".join(value for kind, value in canaries.items() if kind != "long")
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1", "namespace": "team-a"}, "message": message}
    event |= {"involvedObject": about, "reason": "Told", "type": "Warning", "lastTimestamp": WHEN}
    return [settings, event, owner(canaries, head, message)]


def owner(canaries: dict[str, str], head: str, message: str) -> dict[str, Any]:
    app = application("team-a")
    app["metadata"]["name"] = APP
    row = {"kind": "ConfigMap", "version": "v1", "namespace": "team-a", "name": "shown", "status": "OutOfSync"}
    results = [{**row, "group": "", "status": "SyncFailed", "message": message, "syncPhase": "Sync"}]
    operation = {
        "phase": "Failed",
        "message": message,
        "startedAt": WHEN,
        "finishedAt": WHEN,
        "operation": {"sync": {}},
    }
    app["status"] = {
        "resources": [{**row, "health": {"status": "Degraded", "message": message}}],
        "sync": {"status": "OutOfSync", "revision": head},
        "conditions": [{"type": "SyncError", "message": json.dumps({"inner": message}), "lastTransitionTime": WHEN}],
        "operationState": {**operation, "syncResult": {"revision": head, "resources": results}},
    }
    return app


def elsewhere(canaries: dict[str, str]) -> dict[str, Any]:
    """An Application with a password in its repository URL."""
    app = application("team-a")
    app["metadata"]["name"] = "addressed"
    app["spec"]["source"]["repoURL"] = f"https://bot:{canaries['application address']}@git.example.com/q"
    return app


class Printing:
    def __init__(self, canaries: dict[str, str]) -> None:
        self._canaries = canaries

    async def lines(self, pod: Any, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        for value in self._canaries.values():
            for line in value.splitlines():
                yield f"login with password={line} done"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def canaries(module_rng: random.Random) -> dict[str, str]:
    return made_canaries(module_rng)


@pytest.fixture(scope="module")
async def world(
    anyio_backend: str, canaries: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("elsewhere")
    repository = Repository(folder / "repository")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shown"}}
    desired = {kind.replace(" ", "-"): f"new {value}" for kind, value in canaries.items() if kind != "long"}
    repository.push({"app/shown.yaml": {**config_map, "data": desired}}, message=f"use {canaries['env']}")
    roots = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": CONTROL}}
    roots["data"] = {"source.local.roots": str(folder)}
    manifests = [
        roots,
        *build_secrets(canaries),
        *build_visible_objects(canaries, repository.head),
        elsewhere(canaries),
    ]
    manifests[-2]["spec"]["source"]["repoURL"] = repository.url
    async with guarded_world(folder, manifests) as opened_world:
        opened_world.cluster.plane.subresources.pod_logs = Printing(canaries)  # type: ignore[attr-defined]
        conf = await opened_world.cluster.get(ResourceKey("", "ConfigMap", "team-a", "shown"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shown", "uid": conf["metadata"]["uid"]}
        env = [{"name": "A", "value": value} for kind, value in canaries.items() if kind != "long"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talks", "namespace": "team-a"}}
        pod["metadata"] |= {"ownerReferences": [reference]}
        await opened_world.cluster.create({**pod, "spec": {"containers": [{"name": "main", "image": "x", "env": env}]}})
        pod_key = ResourceKey("", "Pod", "team-a", "talks")
        await wait_until_async(lambda: opened_world.site.cluster_view.cache.get(pod_key), "the page knows the Pod")
        yield opened_world


def addresses(route: Route) -> Iterator[str]:
    row = ROWS_BY_ROUTE[route.method, route.path]
    case = FILL[row.about]("own")
    yield address(route, case)
    if row.about != "application":
        return
    for kind, name in (("ConfigMap", "shown"), ("Pod", "talks")):
        names = {"name": APP, "applicationName": APP, "group": "-", "kind": kind, "rns": "team-a", "rname": name}
        names |= {"podName": "talks"}
        query = {"kind": kind, "group": "", "version": "v1", "namespace": "team-a", "resourceName": name}
        values = {key: names.get(key, value) for key, value in case.values.items()}
        yield address(route, case._replace(values=values, query=query))
        yield address(route, case._replace(values=values, query={}))
        yield address(route, case._replace(values={**values, "name": "addressed"}, query={}))


def paths(canaries: dict[str, str]) -> list[str]:
    all_paths = [path for route in ROUTE_TABLE if route.method == "GET" for path in addresses(route)]
    tabs = ("live", "desired", "diff", "last-applied", "events", "summary", "fields", "logs", "health")
    for resource in ("ConfigMap/team-a/shown", "Pod/team-a/talks"):
        all_paths += [f"/apps/{CONTROL}/{APP}/r/-/{resource}?tab={tab}" for tab in tabs]
    all_paths += [f"/live?at=/apps/{CONTROL}/{APP}/{tab}" for tab in ("", "operation", "events", "resources")]
    all_paths += [f"/apps/{CONTROL}/{APP}/logs{more}" for more in ("", "/text", "/stream?follow=1", "?q=login")]
    return [*dict.fromkeys(all_paths), f"/api/v1/applications/{APP}/logs?podName=talks&filter=login"]


Leaks = tuple[list[str], int]


async def find_leaks(
    world: World, entry: WebApplication, canaries: dict[str, str], request_paths: Sequence[str]
) -> Leaks:
    """Leaked secrets as "path: kind", and how often a value was masked."""
    headers = dict(world.callers["admin"].headers)
    leaks, marks = [], 0
    for path in request_paths:
        got = await ask(entry, "GET", path, headers, reads_stream=True)
        content = got.body + json.dumps(dict(got.headers)).encode()
        leaks += [f"GET {path}: {kind}" for kind in found_in(canaries, content)]
        marks += content.count(b"++++++++")
        if got.body and got.headers.get("content-type", "") == "application/json":
            assert all(isinstance(json.loads(line), dict | list | str) for line in got.body.splitlines()), path
        assert got.code != 500, (path, got.body[:500])
    return leaks, marks


def find_logged(entry: WebApplication, canaries: dict[str, str], records: Sequence[logging.LogRecord]) -> set[str]:
    visible_records = [record for record in records if entry.log_filter.filter(record)]
    return found_in(canaries, "\n".join(record.getMessage() for record in visible_records).encode())


async def test_no_response_log_line_or_argument_contains_a_secret(
    world: World, canaries: dict[str, str], caplog: pytest.LogCaptureFixture, size: Callable[..., int],
    rng: random.Random,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    entry, everything = world.entry(), paths(canaries)
    sampled_paths = rng.sample(everything, min(len(everything), size(20 * len(everything), test=len(everything) // 16)))
    with arguments_started() as started:
        leaks, marks = await find_leaks(world, entry, canaries, sampled_paths)
    assert leaks == []
    assert (
        any(argument.endswith("git") for argument in started)
        and found_in(canaries, "\n".join(started).encode()) == set()
    )
    assert marks > len(sampled_paths), "there was nothing to hide"
    assert find_logged(entry, canaries, caplog.records) == set()


OF_API, OF_PAGE = f"/api/v1/applications/{APP}", f"/apps/{CONTROL}/{APP}/r/-/ConfigMap/team-a/shown?tab=live"
OF_STREAM = f"/live?at=/apps/{CONTROL}/{APP}/operation"


@pytest.mark.parametrize(
    ("broken", "instead", "path", "kinds"),
    [
        (
            "observability.redaction.secret_mask.SecretMask.mask_json",
            lambda self, data, *_, **__: data,
            OF_API,
            {"quotes", "env", "repository address"},
        ),
        (
            "observability.redaction.secret_mask.SecretMask.mask_html",
            lambda self, data, *_: data,
            OF_PAGE,
            {"quotes", "env", "repository address"},
        ),
        (
            "observability.redaction.secret_mask.SecretMask.mask_chunk",
            lambda self, chunk: chunk,
            OF_STREAM,
            {"quotes", "env", "repository address"},
        ),
        (
            "observability.redaction.secret_text_extraction._iter_text_and_parts",
            lambda text: (),
            OF_API,
            {"ini", "yaml file", "json file", "joined"},
        ),
        (
            "observability.redaction.secret_encodings._build_escaped_forms",
            lambda value: {value: "plain"},
            OF_PAGE,
            {"quotes", "tags"},
        ),
        (
            "gitops.redaction.cluster_secret_mask_builder.list_url_credentials",
            lambda text: [],
            "/api/v1/applications/addressed",
            {"application address"},
        ),
    ],
)
async def test_proof_detects_a_disabled_masking_step(
    world: World, canaries: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    broken: str, instead: Callable[..., Any], path: str, kinds: set[str],
) -> None:  # fmt: skip
    assert (await find_leaks(world, world.entry(), canaries, [path]))[0] == []
    monkeypatch.setattr(f"argosy.{broken}", instead)
    leaks, _ = await find_leaks(world, world.entry(), canaries, [path])
    assert {leak.rpartition(": ")[2] for leak in leaks} >= kinds


async def test_proof_detects_an_unmasked_log_line(
    world: World, canaries: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("argosy.careless").warning("cannot sign in with %s", canaries["env"])
    with monkeypatch.context() as patch:
        patch.setattr(LogMaskFilter, "filter", lambda self, record: True)
        assert find_logged(world.entry(), canaries, caplog.records) == {"env"}
    assert find_logged(world.entry(), canaries, caplog.records) == set()


async def test_pod_log_search_does_not_match_masked_text(world: World, canaries: dict[str, str]) -> None:
    entry, headers = world.entry(), dict(world.callers["admin"].headers)
    for guess in (canaries["env"], canaries["env"][:9], "password=cnry"):
        prefixes = (f"/api/v1/applications/{APP}/logs?podName=talks&filter=", f"/apps/{CONTROL}/{APP}/logs/text?q=")
        for path in (prefix + guess for prefix in prefixes):
            got = await ask(entry, "GET", path, headers, reads_stream=True)
            assert b"login" not in got.body.replace(b"/login", b""), path


async def test_store_files_contain_no_plain_secret(canaries: dict[str, str], tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, CONTROL)
        for manifest in build_secrets(canaries):
            await cluster.create(manifest)
        await cluster.create(settings_with(canaries["env"]))
        data = b"".join(file.read_bytes() for file in tmp_path.glob("argosy.db*"))
    data += b"".join(file.read_bytes() for file in tmp_path.glob("argosy.db*"))
    leaked_kinds = {kind for kind, value in canaries.items() if any(form in data for form in kept_forms(value))}
    assert leaked_kinds == {"env"}, "what is in a ConfigMap is found, so the search finds; what is in a Secret is not"


def settings_with(value: str) -> dict[str, Any]:
    metadata = {"name": "plain", "namespace": CONTROL}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": value}}
