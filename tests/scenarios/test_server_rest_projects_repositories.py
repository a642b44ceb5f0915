"""Projects and repositories over the REST API: valid requests, invalid input, and missing permissions."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import GroupKind, ResourceKey
from support.engine import Repository
from support.rest_api import World, code, denied, denied_by_name, path, rest_world, secrets_of, value

pytestmark = pytest.mark.anyio
URL = "https://git.example.invalid/team/app"
PROJECTS, REPOSITORIES, CLUSTERS = "/api/v1/projects", "/api/v1/repositories", "/api/v1/clusters"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("rest")
    async with rest_world(folder) as world:
        chart = {
            "chart/Chart.yaml": "name: web\nversion: 1.0.0\n",
            "chart/values.yaml": "replicas: 2\nimage: {tag: v1}\n",
        }
        kustomization = "images: [{name: web, newTag: v2}]\nresources: [a.yaml]\n"
        world.repository.push({**chart, "app/kustomization.yaml": kustomization, "app/a.yaml": "{}"}, "first")
        await world.application("models", "team")
        await world.seen("argoproj.io", "Application", "models")
        yield world


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"sourceRepos": ["*"], **spec}}


@pytest.fixture(autouse=True)
async def team(world: World) -> None:
    """Reset project team before each test."""
    project = named("team", destinations=[{"server": "*", "namespace": "*"}])
    assert (await world.ask("ann", "POST", PROJECTS, {"project": project, "upsert": True})).code == 200


# -- projects ----------------------------------------------------------------------------------------------------


async def test_project_is_created_read_updated_and_deleted(world: World) -> None:
    response = await world.ask("ann", "POST", PROJECTS, {"project": named("one", description="x")})
    assert response.code == 200 and response.json()["metadata"]["name"] == "one"
    assert (await world.get("ann", f"{PROJECTS}/one"))["spec"]["description"] == "x"
    changed = await world.ask("ann", "PUT", f"{PROJECTS}/one", {"project": named("one", description="y")})
    assert changed.json()["spec"]["description"] == "y"
    names = [project["metadata"]["name"] for project in (await world.get("ann", PROJECTS))["items"]]
    assert {"default", "one"} <= set(names) and names == sorted(names)
    uid = (await world.get("ann", f"{PROJECTS}/one"))["metadata"]["uid"]
    assert (await world.ask("ann", "DELETE", f"{PROJECTS}/one")).code == 200
    events = (await world.cluster.list(GroupKind("", "Event"), namespace="argocd")).items
    (deleted,) = [event for event in events if event["reason"] == "ResourceDeleted"]
    assert (deleted["message"], deleted["involvedObject"]["uid"]) == ("ann deleted project", uid)
    assert (await code(world, "ann", "GET", f"{PROJECTS}/one")) == (404, 'appprojects.argoproj.io "one" not found')


async def test_create_of_a_different_existing_project_needs_upsert(world: World) -> None:
    sent = {"project": named("two")}
    assert (await world.ask("ann", "POST", PROJECTS, sent)).code == 200
    assert (await world.ask("ann", "POST", PROJECTS, sent)).code == 200
    other = {"project": named("two", description="new")}
    assert (await code(world, "ann", "POST", PROJECTS, other))[1].endswith("use upsert flag to force update")
    assert (await world.ask("ann", "POST", PROJECTS, {**other, "upsert": True})).code == 200
    assert (await world.get("ann", f"{PROJECTS}/two"))["spec"]["description"] == "new"


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        ({}, "project: is required"),
        ({"project": 5}, "JSON object"),
        ({"project": {"metadata": {}}}, "name"),
        ({"project": {"metadata": {"name": "x", "namespace": "elsewhere"}}}, "omit this field"),
        ({"project": named("x", destinations="all")}, "list"),
        (
            {"project": named("x", roles=[{"name": "r", "policies": ["p, role:admin, *, *, *, allow"]}])},
            "is not a valid policy",
        ),
        ({"project": named("x", roles=[{"name": "a b"}])}, "invalid or duplicate role name"),
        (
            {"project": named("x", destinations=[{"server": "!*", "namespace": "a"}])},
            "server has an invalid format, '!*'",
        ),
        (
            {"project": named("x", roles=[{"name": "r", "policies": ["p, proj:x:r, applications, get, y/*, allow"]}])},
            "no",
        ),
    ],
)
async def test_invalid_project_is_refused(world: World, sent: Any, word: str) -> None:
    status_code, message = await code(world, "ann", "POST", PROJECTS, sent)
    assert status_code == 400 and word in message
    assert (await code(world, "ann", "GET", f"{PROJECTS}/x"))[0] == 404


async def test_project_name_in_the_body_must_match_the_path(world: World) -> None:
    await world.ask("ann", "POST", PROJECTS, {"project": named("three")})
    status_code, message = await code(world, "ann", "PUT", f"{PROJECTS}/three", {"project": named("default")})
    assert status_code == 400 and "three" in message


async def test_project_in_use_cannot_be_deleted_or_restricted(world: World) -> None:
    status_code, message = await code(world, "ann", "DELETE", f"{PROJECTS}/team")
    assert status_code == 400 and "referenced by 1 applications: models" in message
    assert (await code(world, "ann", "DELETE", f"{PROJECTS}/default"))[0] == 400
    response_code, error_message = await code(
        world, "ann", "PUT", f"{PROJECTS}/team", {"project": named("team", sourceRepos=["https://x"])}
    )
    assert response_code == 400 and "1 applications source became invalid" in error_message


async def test_project_user_can_change_the_description_but_not_widen_the_project(world: World) -> None:
    spec = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    project = (await world.get("ann", f"{PROJECTS}/team"))["spec"]
    assert project == spec
    wider = {
        "project": {
            "metadata": {"name": "team"},
            "spec": {**spec, "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]},
        }
    }
    await denied(world, "cid", "PUT", f"{PROJECTS}/team", wider)
    sources = {"project": {"metadata": {"name": "team"}, "spec": {**spec, "sourceRepos": ["*", URL]}}}
    await denied(world, "cid", "PUT", f"{PROJECTS}/team", sources)
    assert (
        await world.ask("cid", "PUT", f"{PROJECTS}/team", {"project": named("team", **spec, description="d")})
    ).code == 200


async def test_project_sync_windows_links_events_and_global_projects(world: World) -> None:
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    shut = {**window, "schedule": "nonsense"}
    await world.ask("ann", "POST", PROJECTS, {"project": named("four", syncWindows=[window, shut])})
    assert (await world.get("ann", f"{PROJECTS}/four/syncwindows"))["windows"] == [window]
    assert (await world.get("ann", f"{PROJECTS}/four/links")) == {"items": []}
    good, bad = "https://wiki.example.com/{{.project.metadata.name}}", "javascript:x"
    link = f"- {{title: Runbook, url: '{good}'}}\n- {{title: x, url: '{bad}'}}\n"
    key = ResourceKey("", "ConfigMap", "argocd", "argocd-cm")
    await world.cluster.patch(key, {"data": {"project.links": link}})
    deep_link = {"url": "https://wiki.example.com/four", "title": "Runbook"}
    assert (await world.get("ann", f"{PROJECTS}/four/links")) == {"items": [deep_link]}
    happened = (await world.get("ann", f"{PROJECTS}/four/events"))["items"]
    assert [(event["reason"], event["message"]) for event in happened] == [("ResourceCreated", "ann created project")]
    assert (await world.get("ann", f"{PROJECTS}/four/globalprojects")) == {"items": []}


async def test_detailed_project_has_repositories_and_clusters_without_secrets(world: World) -> None:
    sent = {"repo": URL, "project": "team", "username": "canary-user", "password": "canary-password"}
    assert (await world.ask("ann", "POST", f"{REPOSITORIES}?credsOnly=true", sent)).code == 200
    cluster = {
        "server": "https://prod:6443",
        "name": "prod",
        "project": "team",
        "config": {"bearerToken": "canary-token"},
    }
    assert (await world.ask("ann", "POST", CLUSTERS, cluster)).code == 200
    got = await world.ask("cid", "GET", f"{PROJECTS}/team/detailed")
    assert b"canary" not in got.body
    assert got.json()["repositories"] == [{"repo": URL, "type": "git"}]
    assert got.json()["clusters"] == [{"server": "https://prod:6443", "name": "prod"}]
    await world.ask("ann", "DELETE", f"{REPOSITORIES}/{path(URL)}")
    await world.ask("ann", "DELETE", f"{CLUSTERS}/{path('https://prod:6443')}")


async def test_projects_are_denied_without_permission(world: World) -> None:
    assert [project["metadata"]["name"] for project in (await world.get("cid", PROJECTS))["items"]] == ["team"]
    assert (await world.get("bob", PROJECTS))["items"] == []
    for method, where, sent in (
        ("GET", "default", None),
        ("GET", "absent", None),
        ("PUT", "default", {"project": named("default")}),
        ("DELETE", "default", None),
        ("GET", "default/detailed", None),
        ("GET", "default/syncwindows", None),
        ("GET", "default/events", None),
    ):
        await denied(world, "cid", method, f"{PROJECTS}/{where}", sent)
    permission = await denied_by_name(world, "cid", "POST", PROJECTS, {"project": named("mine")})
    assert permission == "projects, create, mine, sub: cid"  # argo


# -- repositories ------------------------------------------------------------------------------------------------


async def test_repository_is_stored_as_a_secret_and_read_without_password(world: World) -> None:
    url = world.repository.url
    sent = {"repo": url, "name": "app", "username": "ann", "password": "canary-1234", "enableLfs": True}
    response = await world.ask("ann", "POST", REPOSITORIES, sent)
    assert response.code == 200 and b"canary" not in response.body
    (secret,) = await secrets_of(world, "repository")
    assert secret["metadata"]["name"].startswith("repo-") and value(secret, "password") == "canary-1234"
    got = await world.ask("ann", "GET", f"{REPOSITORIES}/{path(url)}")
    assert b"canary" not in got.body
    document = got.json()
    assert document["connectionState"]["status"] == "Successful" and document["enableLfs"] is True
    assert (document["repo"], document["type"], document["username"]) == (url, "git", "ann")
    await world.ask("ann", "PUT", f"{REPOSITORIES}/{path(url)}", {"repo": url, "name": "renamed", "username": "ann"})
    (secret,) = await secrets_of(world, "repository")
    assert value(secret, "password") == "canary-1234" and value(secret, "name") == "renamed"
    await world.ask(
        "ann", "PUT", f"{REPOSITORIES}/{path(url)}", {"repo": url, "username": "ann", "proxy": "http://elsewhere:1"}
    )
    (secret,) = await secrets_of(world, "repository")
    assert value(secret, "password") == ""
    assert (await world.ask("ann", "DELETE", f"{REPOSITORIES}/{path(url)}")).code == 200
    assert await secrets_of(world, "repository") == []
    await denied(world, "ann", "GET", f"{REPOSITORIES}/{path(url)}")


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        ({}, "repo is required"),
        ({"repo": ["x"]}, "must be a string"),
        ({"repo": "https://ann:canary@host/x"}, "password"),
        ({"repo": "/etc"}, "Unable to connect"),
        ({"repo": URL, "githubAppPrivateKey": "canary"}, "not supported yet"),
    ],
)
async def test_invalid_repository_is_refused(world: World, sent: Any, word: str) -> None:
    status_code, message = await code(world, "ann", "POST", REPOSITORIES, sent)
    assert status_code == 400 and word in message and "canary" not in message
    assert await secrets_of(world, "repository") == []


async def test_repository_update_must_keep_url_and_project(world: World) -> None:
    await world.ask(
        "ann", "POST", f"{REPOSITORIES}?credsOnly=true", {"repo": URL, "project": "team", "password": "canary"}
    )
    where = f"{REPOSITORIES}/{path(URL)}"
    assert (await code(world, "ann", "PUT", where, {"repo": URL + "-evil"}))[0] == 400
    await denied(world, "cid", "PUT", where, {"repo": URL})  # without a project it would be global
    await denied(world, "cid", "PUT", where, {"repo": URL, "project": "other"})
    assert (await world.ask("cid", "PUT", where, {"repo": URL, "project": "team", "username": "u"})).code == 200
    assert (await code(world, "ann", "POST", REPOSITORIES + "?credsOnly=true", {"repo": URL, "project": "team"}))[
        0
    ] == 400
    assert [repository["repo"] for repository in (await world.get("cid", REPOSITORIES))["items"]] == [URL]
    assert (await world.get("bob", REPOSITORIES))["items"] == []
    await world.ask("ann", "DELETE", where)


async def test_repositories_are_denied_without_permission(world: World) -> None:
    where = f"{REPOSITORIES}/{path(URL)}"
    for method, endpoint, sent in (
        ("GET", where, None),
        ("PUT", where, {"repo": URL}),
        ("DELETE", where, None),
        ("GET", f"{where}/refs", None),
        ("GET", f"{where}/apps", None),
        ("POST", f"{where}/appdetails", {"source": {"repoURL": URL}}),
        ("GET", f"{where}/helmcharts", None),
    ):
        await denied(world, "bob", method, endpoint, sent)
    for who, endpoint, document in (("bob", f"{where}/validate", "x"), ("dan", REPOSITORIES, {"repo": URL})):
        permission = await denied_by_name(world, who, "POST", endpoint, document)
        assert permission == f"repositories, create, {URL}, sub: {who}"


async def test_validate_checks_the_connection_of_a_repository(world: World) -> None:
    url = path(world.repository.url)
    assert (await world.ask("ann", "POST", f"{REPOSITORIES}/{url}/validate", world.repository.url)).json() == {}
    status_code, message = await code(
        world, "ann", "POST", f"{REPOSITORIES}/{path('/nowhere')}/validate?username=u", "x"
    )
    assert status_code == 400 and message.startswith("Unable to connect to repository")
    assert (await code(world, "ann", "POST", f"{REPOSITORIES}/{url}/validate?insecure=perhaps", "x"))[0] == 400


async def test_app_details_of_a_folder_in_a_submodule_are_returned(world: World) -> None:
    parent = Repository(world.repository.path.parent / "parent")
    for arguments in (("submodule", "add", "--quiet", world.repository.url, "lib"), ("commit", "--quiet", "-m", "lib")):
        options = ("-c", "protocol.file.allow=always", "-c", "user.name=ann", "-c", "user.email=ann@example.com")
        subprocess.run(["git", "-C", str(parent.path), *options, *arguments], check=True, capture_output=True)
    source = {"repoURL": parent.url, "targetRevision": "main", "path": "lib/app"}
    where = f"{REPOSITORIES}/{path(parent.url)}/appdetails"
    details = await world.ask("ann", "POST", where, {"source": source})
    assert details.json() == {"type": "Kustomize", "kustomize": {"images": ["web:v2"]}}


async def test_repository_refs_apps_and_app_details_are_returned(world: World) -> None:
    where = f"{REPOSITORIES}/{path(world.repository.url)}"
    assert (await world.get("ann", f"{where}/refs")) == {"branches": ["main"], "tags": []}
    listing = await world.get("ann", f"{where}/apps?revision=main")
    assert listing["items"] == [{"path": "app", "type": "Kustomize"}, {"path": "chart", "type": "Helm"}]
    source = {"repoURL": world.repository.url, "targetRevision": "main"}
    got = await world.ask("ann", "POST", f"{where}/appdetails", {"source": {**source, "path": "app"}})
    assert got.json() == {"type": "Kustomize", "kustomize": {"images": ["web:v2"]}}
    helm = (await world.ask("ann", "POST", f"{where}/appdetails", {"source": {**source, "path": "chart"}})).json()[
        "helm"
    ]
    assert helm["parameters"] == [{"name": "image.tag", "value": "v1"}, {"name": "replicas", "value": "2"}]
    for wrong in ({}, {"source": 5}, {"source": {**source, "path": "../.."}}, {"source": {"repoURL": URL}}):
        assert (await code(world, "ann", "POST", f"{where}/appdetails", wrong))[0] == 400
    assert (await code(world, "ann", "GET", f"{where}/apps?revision=nowhere"))[0] == 400
    assert (await code(world, "ann", "GET", f"{where}/helmcharts"))[0] == 400
    await denied(world, "dan", "GET", f"{where}/apps")  # read permission alone must not cause a clone
    for path_of in ("refs", "apps"):  # naming a project would use its credentials
        await denied(world, "cid", "GET", f"{where}/{path_of}?appProject=default")


@pytest.mark.parametrize(
    ("base", "kind", "field"),
    [
        ("repocreds", "repo-creds", "url"),
        ("write-repocreds", "repo-write-creds", "url"),
        ("write-repositories", "repository-write", "repo"),
    ],
)
async def test_templates_and_write_credentials_are_separate(world: World, base: str, kind: str, field: str) -> None:
    where, url = f"/api/v1/{base}", "https://git.example.invalid/team"
    sent = {field: url, "username": "u", "password": "canary-5678"}
    response = await world.ask("ann", "POST", where, sent)
    assert response.code == 200 and b"canary" not in response.body
    (secret,) = await secrets_of(world, kind)
    assert value(secret, "password") == "canary-5678"
    got = await world.ask("ann", "GET", where)
    assert [credential[field] for credential in got.json()["items"]] == [url] and b"canary" not in got.body
    assert (await world.get("cid", where))["items"] == []
    await denied_by_name(world, "bob", "POST", where, sent)
    await denied(world, "bob", "PUT", f"{where}/{path(url)}", sent)
    await denied(world, "bob", "DELETE", f"{where}/{path(url)}")
    assert (await code(world, "ann", "PUT", f"{where}/{path(url)}", {field: url + "/x"}))[0] == 400
    assert (await world.ask("ann", "PUT", f"{where}/{path(url)}", {field: url, "username": "v"})).code == 200
    (secret,) = await secrets_of(world, kind)
    assert (value(secret, "username"), value(secret, "password")) == ("v", "canary-5678")
    assert (await world.ask("ann", "DELETE", f"{where}/{path(url)}")).code == 200
    assert await secrets_of(world, kind) == []
