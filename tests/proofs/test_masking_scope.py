"""Masking confirms no guess at a Secret, and hides no text of other tenants.

Responses do not reveal by masking whether a guess at a Secret's value is right, and a tenant's Secret does not mask
text of another tenant's Application. An Application is masked with its own Secrets, in lists and on its page.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest

from argosy.gitops.redaction import application_secret_scope
from argosy.gitops.redaction.application_secret_scope import build_scope
from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.observability.redaction.secret_origin_and_scope import SecretScope
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request_input_echo import NO_ECHO
from argosy.web.route import Route
from support.deadlines import wait_until_async
from support.engine import Repository
from support.route_requests import FILL, ROWS_BY_ROUTE, address, sent
from support.route_table import ROUTE_TABLE
from support.tenants import CONTROL, World, application, ask, declared, guarded_world, secret

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
MARK = b"++++++++"
WHEN = "2026-01-01T00:00:00Z"
PINS = 1_000_000  # all possible values
GUESSED = re.compile(rb"pin-[0-9]{6}")
COMMIT, OWN_COMMIT = "4c2e27100f5d4c0fb1c6a4f3b3f0f2a7b9d0c1e2", "9d0c1e24c2e27100f5d4c0fb1c6a4f3b3f0f2a7b"
WORDS = {
    "commit": COMMIT, "path": "clusters/prod/serving", "option": "ServerSideApply=true", "branch": "release-2026-11",
    "message": "the quota of the namespace is used up",
}  # fmt: skip
OWN_WORDS = {"commit": OWN_COMMIT, "path": "teams/a/training", "option": "ApplyOutOfSyncOnly=true"}
TELLING_APPS = ["syncing-1", "syncing-2"]
TELLING_APPS += [f"telling-{number}-{outcome}" for number in range(3) for outcome in ("wrong", "right")]
IN_GIT = "green-harbour"  # the value of a Secret, and of a ConfigMap in Git
SECRETS = {CONTROL: "of-argocd-4c2e27", "team-a": "of-team-a-0f5d4c", "team-b": "of-team-b-b9d0c1"}


def pins(rng: random.Random) -> dict[str, str]:
    """By namespace: values so short that all possible ones can be tried."""
    return {namespace: f"pin-{rng.randrange(PINS):06}" for namespace in (CONTROL, "team-a", "team-b")}


def set_namespace(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def deployed(team: str, name: str, commit: str, message: str, path: str = "", option: str = "") -> dict[str, Any]:
    """An Application whose sync failed."""
    app = application(team)
    app["metadata"]["name"] = name
    app["spec"]["source"] |= {"path": path or "app", "targetRevision": WORDS["branch"]}
    app["spec"]["syncPolicy"] = {"syncOptions": [option or "Validate=false"]}
    row = {"kind": "ConfigMap", "version": "v1", "namespace": team, "name": "settings", "status": "OutOfSync"}
    results = [{**row, "group": "", "status": "SyncFailed", "message": message, "syncPhase": "Sync"}]
    operation = {"phase": "Failed", "message": message, "startedAt": WHEN, "finishedAt": WHEN}
    app["status"] = {
        "resources": [{**row, "health": {"status": "Degraded", "message": message}}],
        "sync": {"status": "OutOfSync", "revision": commit},
        "health": {"status": "Degraded", "message": message},
        "history": [{"id": 1, "revision": commit, "deployedAt": WHEN, "source": app["spec"]["source"]}],
        "conditions": [{"type": "SyncError", "message": message, "lastTransitionTime": WHEN}],
        "operationState": {
            **operation, "operation": {"sync": {}}, "syncResult": {"revision": commit, "resources": results},
        },
    }  # fmt: skip
    return app


def hostile() -> Iterator[dict[str, Any]]:
    """Objects that a tenant may create to mask another tenant's text: in every place that holds secret values."""
    yield set_namespace("team-a", secret("blindfold", {}, **WORDS))
    url = "https://git.example.com/blindfold"
    for number, word in enumerate(WORDS.values()):
        yield declared("repository", f"blindfold-{number}", url=f"{url}/{number}", project="team-a", password=word)
    tracked = {"argocd.argoproj.io/tracking-id": "theirs:/Secret:team-a/claimed"}
    claimed = set_namespace("team-a", secret("claimed", {}, **WORDS))
    yield {**claimed, "metadata": {**claimed["metadata"], "annotations": tracked}}
    addressed = application("team-a")
    addressed["metadata"]["name"] = "addressed"
    addressed["spec"]["source"]["repoURL"] = f"https://u:{COMMIT}@git.example.com/r"
    yield addressed
    stray = application("team-a")  # its project does not allow this destination
    stray["metadata"]["name"] = "stray"
    stray["spec"]["destination"]["namespace"] = "team-b"
    stray["status"] = {"conditions": [{"type": "X", "message": SECRETS["team-b"], "lastTransitionTime": WHEN}]}
    yield stray


def nobodys_event() -> dict[str, Any]:
    """An Event of a Pod without an Application; its message contains a Secret value of its namespace."""
    metadata = {"name": "nobodys.1", "namespace": "team-b"}
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": "team-b", "name": "nobodys"}
    details = {"reason": "Failed", "message": f"nobody logs in with {SECRETS['team-b']}", "lastTimestamp": WHEN}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "type": "Warning"}
    return {**event, "involvedObject": about, **details}


def in_git(folder: Path) -> dict[str, Any]:
    """An Application with a ConfigMap in Git that differs from the live one; the live one contains a Secret value."""
    repository = Repository(folder)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stage"}, "data": {"stage": IN_GIT}}
    repository.push({"app/stage.yaml": dump_yaml(config_map)})
    app = deployed("team-a", "in-git", repository.head, f"{IN_GIT} refuses {SECRETS['team-a']}")
    app["spec"]["source"] |= {"repoURL": repository.url, "targetRevision": "main"}
    app["status"]["resources"][0]["name"] = "stage"
    return app


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def values(module_rng: random.Random) -> dict[str, str]:
    return pins(module_rng)


@pytest.fixture(scope="module")
async def world(
    anyio_backend: str, values: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    manifests = [set_namespace(namespace, secret("pin", {}, pin=value)) for namespace, value in values.items()]
    for namespace, value in SECRETS.items():
        words = {} if namespace == CONTROL else OWN_WORDS
        manifests.append(set_namespace(namespace, secret("own", {}, token=value, **words)))
    manifests += hostile()
    message = WORDS["message"]
    manifests.append(deployed("team-b", "theirs", COMMIT, message, WORDS["path"], WORDS["option"]))
    manifests.append(deployed("team-a", "plain", OWN_COMMIT, "told", OWN_WORDS["path"], OWN_WORDS["option"]))
    manifests.append(deployed("team-a", "telling", "0" * 40, f"cannot log in with {SECRETS['team-a']}"))
    manifests.append(deployed("team-a", "hears", "3" * 40, f"of {IN_GIT}"))
    for name in TELLING_APPS:
        manifests.append(deployed("team-a", name, "2" * 40, f"cannot log in with {SECRETS['team-a']}"))
    manifests.append(deployed("team-a", "printing", "1" * 40, f"tried {', '.join(SECRETS.values())}"))
    manifests.append(set_namespace("team-a", secret("stage", {}, stage=IN_GIT)))
    tracked = {"argocd.argoproj.io/tracking-id": "in-git:/ConfigMap:team-a/stage"}
    live = {"stage": "before", "password": SECRETS["team-a"]}
    metadata = {"name": "stage", "namespace": "team-a", "annotations": tracked}
    manifests.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": live})
    manifests.append(nobodys_event())
    roots = tmp_path_factory.mktemp("git")
    settings = {"name": "argosy-cm", "namespace": CONTROL}
    data = {"source.local.roots": str(roots)}
    manifests.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": data})
    manifests.append(in_git(roots / "repository"))
    async with guarded_world(tmp_path_factory.mktemp("provenance"), manifests) as opened_world:
        last = ResourceKey("argoproj.io", "Application", CONTROL, "telling")
        await wait_until_async(lambda: opened_world.site.cluster_view.cache.get(last))
        yield opened_world


# -- masking confirms no guess ---------------------------------------------------------------------------------------


async def told_apart(world: World, entry: WebApplication, caller: str, guesses: Iterable[str], path: str) -> set[str]:
    """The guesses that are not echoed as sent; each request contains many."""
    headers, masked_guesses, batch = dict(world.callers[caller].headers), set[str](), list[str]()
    batches = [batch]
    for guess in guesses:
        if len(batch) == 600:  # the URL has a maximum length
            batch = []
            batches.append(batch)
        batch.append(guess)
    for chunk in batches:
        got = await ask(entry, "GET", path + "+".join(chunk), headers)
        assert got.code == 200, got.body[:300]
        visible_guesses = {guess.decode() for guess in GUESSED.findall(got.body)}
        masked_guesses |= set(chunk) - visible_guesses
        assert MARK not in got.body or masked_guesses, "something else is masked there, so that nothing is learned"
    return masked_guesses


OF_ALL, OF_ONE, OF_SETTINGS = "/activity?q=", f"/apps/{CONTROL}/app-a/resources?q=", "/settings/health?q="


@pytest.mark.parametrize(("caller", "path"), [("viewer-a", OF_ALL), ("viewer-a", OF_ONE), ("nothing", OF_SETTINGS)])
async def test_echoed_guesses_do_not_reveal_a_secret(
    world: World, values: dict[str, str], size: Callable[..., int], rng: random.Random, caller: str, path: str
) -> None:
    entry, count = world.entry(), size(PINS, test=900)
    guesses = [f"pin-{number:06}" for number in (range(PINS) if count == PINS else rng.sample(range(PINS), count))]
    guesses += values.values()
    assert await told_apart(world, entry, caller, guesses, path) == set()


async def test_search_finds_all_secrets_if_echoed_input_is_masked_by_value(
    world: World, values: dict[str, str], rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "argosy.web.secret_mask_by_request_scope.conceal_request", lambda request, find: (request, NO_ECHO)
    )
    monkeypatch.setattr(SecretMask, "for_scope", lambda self, scope, sent=None: self)
    guesses = [f"pin-{number:06}" for number in rng.sample(range(PINS), 900)]
    masked_guesses = await told_apart(world, world.entry(), "viewer-a", [*guesses, *values.values()], "/activity?q=")
    assert masked_guesses >= set(values.values())
    assert len(masked_guesses) <= len(set(values.values())), "wrong guesses are shown as they were sent"


@pytest.mark.parametrize(("path", "place"), [(OF_ONE, "team-a"), (OF_SETTINGS, CONTROL)])
async def test_search_finds_a_secret_if_the_request_echo_is_not_concealed(
    world: World, values: dict[str, str], monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    monkeypatch.setattr(
        "argosy.web.secret_mask_by_request_scope.conceal_request", lambda request, find: (request, NO_ECHO)
    )
    guesses = ["pin-314159", *values.values()]
    assert await told_apart(world, world.entry(), "admin", guesses, path) == {values[place]}


Seen = tuple[int, int, int]
ONCE = re.compile("webhook|session|delete|remove|revoke")  # signed, counted, or possible only once


async def seen(entry: WebApplication, method: str, path: str, headers: dict[str, str], body: bytes, guess: str) -> Seen:
    """What an attacker compares: the status code, and how often the guess and a mask appear."""
    got = await ask(entry, method, path, headers, body, reads_stream=method == "GET")
    content = got.body + str(got.headers.get("location", "")).encode()
    return got.code, content.count(guess.encode()) + content.count(guess.upper().encode()), content.count(MARK)


def questions(route: Route, guess: str) -> Iterator[str]:
    """URLs with the guess in each query parameter, plain, behind other text and encoded, and in each path parameter."""
    case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
    names = [parameter if isinstance(parameter, str) else parameter.name for parameter in route.query]
    encoded = "".join(f"%{byte:02x}" for byte in guess.encode())
    for name in {*names, "q", "said", "tab", "page", "sort", "next"}:
        base = address(route, case._replace(query={key: value for key, value in case.query.items() if key != name}))
        joint = "&" if "?" in base else "?"
        yield from (f"{base}{joint}{name}={form}" for form in (guess, "x" * 34 + guess, encoded, quote(encoded)))
    for name in case.values:
        yield address(route, case._replace(values={**case.values, name: guess}))


async def test_get_request_with_a_right_guess_is_answered_like_a_wrong_one(
    world: World, values: dict[str, str], size: Callable[..., int], rng: random.Random
) -> None:
    entry, wrong, differing = world.entry(), "pin-31415", list[str]()
    routes = [route for route in ROUTE_TABLE if route.method == "GET" and "logs" not in route.path]
    cases = [(route, number) for route in routes for number, _ in enumerate(questions(route, wrong))]
    for route, number in rng.sample(cases, min(len(cases), size(10 * len(cases), test=50))):
        caller = rng.choice(["viewer-a", "dev-a", "admin", "nobody"])
        headers, answers = dict(world.callers[caller].headers), set[Seen]()
        for guess in (f"{wrong}9", *values.values()):
            path = list(questions(route, guess))[number]
            answers.add(await seen(entry, "GET", path, headers, b"", guess))
        if len(answers) > 1:
            differing.append(f"{caller}: {list(questions(route, '?'))[number]}: {answers}")
    assert differing == []


@pytest.mark.tier("all", "prove")
async def test_mutating_request_treats_right_guess_like_a_wrong_one(world: World, values: dict[str, str]) -> None:
    entry, differing = world.entry(), list[str]()
    for route in ROUTE_TABLE:
        if not route.is_mutating or route.method == "DELETE" or ONCE.search(route.path):
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        body, headers = sent(route, case, dict(world.callers["dev-a"].headers))
        answers = set[Seen]()
        for number, guess in enumerate(("pin-271828", "pin-314159", *values.values())):
            text = json.dumps({"name": guess, "password": [guess], guess: {"spec": guess}}).encode()
            payload = text if route.is_api else body + f"&name={guess}".encode()
            path = address(route, case)
            path += f"{'&' if '?' in path else '?'}name={guess}&dryRun={guess}"
            answer = await seen(entry, route.method, path, headers, payload, guess)
            answers |= {answer} if number else set()  # a change that was made once may be refused from then on
        if len(answers) > 1:
            differing.append(f"{route.method} {route.path}: {answers}")
    assert differing == []


CHANGES = [
    route for route in ROUTE_TABLE if route.is_mutating and route.method != "DELETE" and not ONCE.search(route.path)
]


async def test_mutating_request_with_a_guess_does_not_unmask_stored_values(world: World) -> None:
    """The responses contain a masked value. A right guess, within text or alone, is answered like a wrong one."""
    entry, right, wrong, differing, masked = (
        world.entry(),
        SECRETS["team-a"],
        "of-team-a-0f5d4d",
        list[str](),
        0,
    )
    for route in CHANGES:
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        body, headers = sent(route, case, dict(world.callers["dev-a"].headers))
        for number, words in enumerate(("cannot log in with {}", "of other words {}", "{}")):
            answers = list[Seen]()
            for guess in (wrong, right):
                name = f"telling-{number}-{'right' if guess == right else 'wrong'}"  # one-time changes succeed for both
                path, text = address(route, case).replace("app-a", name), words.format(guess)
                fields = {"dryRun": True, "junk": text, "extra": [text], "status": {"conditions": [{"message": text}]}}
                form = body.replace(b"app-a", name.encode()) + b"&" + urlencode({"junk": text}).encode()
                payload = json.dumps(fields).encode() if route.is_api else form
                answers.append(await seen(entry, route.method, path, headers, payload, guess))
            masked += answers[0][2]
            if answers[0] != answers[1]:
                differing.append(f"{route.method} {route.path}: {words}: {answers}")
    assert differing == []
    assert masked > 0, "no answer holds a masked value, so that nothing is learned"


async def test_sync_response_masks_alike_for_right_and_wrong_guesses(world: World) -> None:
    entry, headers = world.entry(), dict(world.callers["syncer-a"].headers)
    headers["Content-Type"] = "application/json"
    marks = []
    for name, guess in (("syncing-1", "of-team-a-0f5d4d"), ("syncing-2", SECRETS["team-a"])):
        body = json.dumps({"dryRun": True, "junk": f"{'x' * 3_000} {guess}", "more": [guess]}).encode()
        got = await ask(entry, "POST", f"/api/v1/applications/{name}/sync", headers, body)
        assert got.code == 200 and b"cannot log in" in got.body, got.body[:300]
        assert SECRETS["team-a"].encode() not in got.body
        marks.append(got.body.count(MARK))
    assert marks[0] == marks[1] > 0


# -- no masking of foreign text --------------------------------------------------------------------------------------

THEIRS = "/api/v1/applications/theirs"
OF_THEIRS = {
    THEIRS: ("commit", "path", "option", "branch", "message"),
    "/api/v1/applications": ("commit", "path", "option", "branch", "message"),
    "/api/v1/stream/applications": ("commit", "path", "option", "branch", "message"),
    f"/apps/{CONTROL}/theirs": ("message",),
    f"/apps/{CONTROL}/theirs/operation": ("message",),
    f"/apps/{CONTROL}/theirs/settings": ("path", "branch"),
    f"/live?at=/apps/{CONTROL}/theirs/operation": ("message",),
    "/apps": ("message",),
    "/activity?kind=sync": ("message",),
    "/api/argosy/v1/activity?kind=sync": ("commit", "message"),
}


@pytest.mark.parametrize("path", OF_THEIRS)
async def test_application_text_is_not_masked_by_another_tenants_secrets(world: World, path: str) -> None:
    headers = dict(world.callers["admin"].headers)
    got = await ask(world.entry(), "GET", path, headers, reads_stream=True)
    assert got.code == 200
    assert [word for word in OF_THEIRS[path] if WORDS[word].encode() not in got.body] == []


async def test_search_finds_hidden_words_if_everything_is_masked_by_value(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SecretMask, "for_scope", lambda self, scope, sent=None: self)
    got = await ask(world.entry(), "GET", THEIRS, dict(world.callers["admin"].headers))
    assert [word for word, text in WORDS.items() if text.encode() in got.body] == []


@pytest.mark.parametrize("path", ["/api/v1/applications/plain", "/api/v1/applications"])
async def test_own_commits_paths_and_options_are_shown_even_if_a_secret_contains_them(world: World, path: str) -> None:
    got = await ask(world.entry(), "GET", path, dict(world.callers["viewer-a"].headers))
    assert [word for word, text in OWN_WORDS.items() if text.encode() not in got.body] == []


@pytest.mark.parametrize(
    "path",
    [
        f"/apps/{CONTROL}/in-git/diff", f"/apps/{CONTROL}/in-git/r/-/ConfigMap/team-a/stage?tab=desired",
        "/api/v1/applications/in-git/managed-resources", "/api/v1/applications/in-git/manifests",
    ],
)  # fmt: skip
async def test_value_from_git_is_shown_only_in_its_own_application(world: World, path: str) -> None:
    """It is also shown in status messages once the server has compared the ConfigMap; other Secrets stay masked."""
    entry, headers = world.entry(), dict(world.callers["viewer-a"].headers)
    got = await ask(entry, "GET", path, headers)
    assert got.code == 200 and IN_GIT.encode() in got.body, got.body[:300]
    assert SECRETS["team-a"].encode() not in got.body
    for other_path in ("/api/v1/applications/in-git", "/api/v1/applications", "/apps?q=in-git", "/activity?kind=sync"):
        got = await ask(entry, "GET", other_path, headers)
        assert f"{IN_GIT} refuses {MARK.decode()}".encode() in got.body, other_path
    got = await ask(entry, "GET", "/api/v1/applications/hears", headers)
    assert got.code == 200 and IN_GIT.encode() not in got.body, "of another Application's Git"


# -- no leak ---------------------------------------------------------------------------------------------------------

TELLING = [
    "/api/v1/applications/telling", "/api/v1/applications", "/api/v1/applications?fields=items.status.conditions",
    "/api/v1/applications?fields=items.status.operationState.message", "/api/v1/stream/applications",
    "/api/v1/stream/applications?fields=result.application.status", "/api/v1/stream/applications?name=telling",
    "/apps", "/apps?view=list", "/apps?view=summary", "/activity?kind=sync", "/api/argosy/v1/activity?kind=sync",
    "/doctor", "/api/argosy/v1/doctor?quick=true", f"/apps/{CONTROL}/telling", f"/apps/{CONTROL}/telling/operation",
    f"/apps/{CONTROL}/telling/events", f"/live?at=/apps/{CONTROL}/telling/operation", "/live?at=/apps",
    "/live?at=/activity", f"/apps/plan?deed=sync&app={CONTROL}/telling", "/environments", "/metrics",
    f"/api/argosy/v1/applications/{CONTROL}/telling/why",
]  # fmt: skip


@pytest.mark.parametrize("path", TELLING)
async def test_own_secret_is_masked_in_every_view_of_an_application(world: World, path: str) -> None:
    got = await ask(world.entry(), "GET", path, dict(world.callers["admin"].headers), reads_stream=True)
    assert got.code < 500
    assert SECRETS["team-a"].encode() not in got.body
    assert base64.b64encode(SECRETS["team-a"].encode()) not in got.body


@pytest.mark.parametrize("path", ["/activity?kind=event&q=nobody", "/api/argosy/v1/activity?kind=event&q=nobody"])
async def test_event_without_application_is_masked_with_secrets_of_its_namespace(world: World, path: str) -> None:
    got = await ask(world.entry(), "GET", path, dict(world.callers["admin"].headers))
    assert b"nobody logs in with ++++++++" in got.body
    assert SECRETS["team-b"].encode() not in got.body


@pytest.mark.parametrize("path", ["/apps?view=list&q=", "/activity?q=", "/api/argosy/v1/activity?q="])
async def test_search_does_not_match_masked_text(world: World, path: str) -> None:
    headers, entry = dict(world.callers["admin"].headers), world.entry()
    for part in (SECRETS["team-a"], SECRETS["team-a"][:9], f"with {SECRETS['team-a'][:5]}"):
        got = await ask(entry, "GET", path + quote_plus(part), headers)
        assert got.code == 200
        assert b"cannot log in" not in got.body and b"/apps/argocd/telling" not in got.body, part


async def test_secret_scope_is_built_at_most_once_per_application(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, headers, built = world.entry(), dict(world.callers["admin"].headers), list[str]()

    def count(application: dict[str, Any], *arguments: Any, **options: Any) -> SecretScope:
        built.append(str(application["metadata"]["name"]))
        return build_scope(application, *arguments, **options)

    monkeypatch.setattr(application_secret_scope, "build_scope", count)
    for _ in range(2):
        for path in ("/activity", "/api/argosy/v1/activity", "/apps", "/doctor", "/api/v1/applications"):
            got = await ask(entry, "GET", path, headers)
            assert got.code == 200
    assert "telling" in built
    assert sorted(built) == sorted(set(built)), "once for each Application"


async def test_application_text_is_not_masked_with_other_namespaces_secrets(
    world: World,
) -> None:
    """Tenants control the text of their Applications, so masking guessed values in it would confirm guesses."""
    entry, headers = world.entry(), dict(world.callers["viewer-a"].headers)
    for path in ("/api/v1/applications/printing", "/api/v1/applications", "/apps?q=printing", "/activity?kind=sync"):
        got = await ask(entry, "GET", path, headers)
        assert SECRETS[CONTROL].encode() in got.body and SECRETS["team-b"].encode() in got.body, path
        assert SECRETS["team-a"].encode() not in got.body, "its own are masked"


async def test_health_check_preview_does_not_mask_a_guessed_secret(world: World, values: dict[str, str]) -> None:
    """A script can assemble guesses that are not in the request."""
    expression = " .. ".join(f'"{letter}"' for letter in values[CONTROL])
    manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
    script = f'return {{status = "Degraded", message = {expression}}}'
    form = {"manifest": manifest, "script": script}
    headers = dict(world.callers["nothing"].headers) | {"Content-Type": "application/x-www-form-urlencoded"}
    got = await ask(world.entry(), "POST", "/settings/health", headers, urlencode(form).encode())
    assert got.code == 200 and values[CONTROL].encode() in got.body, got.body[:300]


async def test_forbidden_destination_does_not_mask_secrets_of_its_namespace(world: World) -> None:
    """Its project does not allow the destination: the text is masked with its own tenant's Secrets only."""
    got = await ask(world.entry(), "GET", "/api/v1/applications/stray", dict(world.callers["viewer-a"].headers))
    assert SECRETS["team-b"].encode() in got.body
