"""Accounts and tokens over the API, by the real identities and Argo CD's own rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.desk.accounts.passwords import Hashing
from argosy.model.names import ResourceKey
from argosy.server.identity.identities import Identities
from support.identities import CHEAP
from support.rest_api import DENIED, World, rest_world

pytestmark = pytest.mark.anyio
ACCOUNT, ROLE = "/api/v1/account", "/api/v1/projects/team/roles/ci/token"
PASSWORD = "correct horse battery"
RBAC = "g, ann, role:admin\np, cid, accounts, get, *, allow\n"
POLICY = "p, proj:team:ci, applications, get, team/*, allow"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    def real(cluster: Any, lookout: Any) -> Identities:
        return Identities(cluster, lookout, "argocd", hashing=Hashing(CHEAP), padding=0.0)

    async with rest_world(tmp_path_factory.mktemp("accounts"), real) as world:
        data = {f"accounts.{name}": "apiKey, login" for name in ("ann", "bob", "cid")}
        await world.cluster.patch(ResourceKey("", "ConfigMap", "argocd", "argocd-cm"), {"data": data})
        await world.make("ConfigMap", "argocd-rbac-cm", data={"policy.csv": RBAC})
        spec = {"roles": [{"name": "ci", "policies": [POLICY]}], "sourceRepos": ["*"]}
        await world.make("AppProject", "team", api="argoproj.io/v1alpha1", spec=spec)
        await world.application("models", "team")
        await world.application("other")
        await world.site.identities.prepare()
        for name in ("ann", "bob", "cid"):
            await world.site.identities.book.set_password(name, PASSWORD)
        await world.seen("argoproj.io", "Application", "other")
        await world.seen("", "ConfigMap", "argocd-rbac-cm")
        await world.until(lambda: all(each.password for each in world.site.identities.standing.accounts.values()))
        yield world


async def token(world: World, name: str, password: str = PASSWORD) -> str:
    return str(await world.site.identities.login(name, password))


async def test_everybody_sees_themselves_and_who_may_sees_all(world: World) -> None:
    ann, bob, cid = [await token(world, name) for name in ("ann", "bob", "cid")]
    for who, names in ((ann, ["admin", "ann", "bob", "cid"]), (bob, ["bob"]), (cid, ["admin", "ann", "bob", "cid"])):
        got = await world.ask(who, "GET", ACCOUNT)
        assert [each["name"] for each in got.json()["items"]] == names
        assert b"$2" not in got.body  # no hash
    assert (await world.ask(bob, "GET", f"{ACCOUNT}/bob")).json()["capabilities"] == ["apiKey", "login"]
    for name in ("ann", "absent"):
        got = await world.ask(bob, "GET", f"{ACCOUNT}/{name}")
        assert (got.code, got.body) == (403, DENIED)
    assert (await world.ask(cid, "GET", f"{ACCOUNT}/ann")).code == 200
    assert (await world.raw("GET", ACCOUNT)).code == 401


async def test_one_can_ask_what_one_may(world: World) -> None:
    ann, bob = await token(world, "ann"), await token(world, "bob")
    path = f"{ACCOUNT}/can-i/applications/sync/team/models"
    assert (await world.ask(ann, "GET", path)).json() == {"value": "yes"}
    assert (await world.ask(bob, "GET", path)).json() == {"value": "no"}
    assert (await world.ask(bob, "GET", f"{ACCOUNT}/can-i/x/y/%2A")).json() == {"value": "no"}


async def test_a_token_works_until_it_is_taken_back(world: World) -> None:
    bob = await token(world, "bob")
    made = await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", {"id": "ci", "expiresIn": 3600})
    key = made.json()["token"]
    (mark,) = (await world.ask(key, "GET", f"{ACCOUNT}/bob")).json()["tokens"]
    assert mark["id"] == "ci" and int(mark["expiresAt"]) - int(mark["issuedAt"]) == 3600
    assert (await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", {"id": "ci"})).code == 400
    for wrong in ({"expiresIn": -1}, {"expiresIn": "soon"}, {"id": 5}, []):
        assert (await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", wrong)).code == 400, wrong
    assert (await world.ask(bob, "DELETE", f"{ACCOUNT}/bob/token/ci")).code == 200
    assert (await world.ask(bob, "DELETE", f"{ACCOUNT}/bob/token/ci")).code == 400
    await world.until(lambda: not world.site.identities.standing.accounts["bob"].tokens)
    assert (await world.ask(key, "GET", f"{ACCOUNT}/bob")).code == 401


async def test_tokens_of_others_are_for_those_who_may(world: World) -> None:
    bob, cid, ann = [await token(world, name) for name in ("bob", "cid", "ann")]
    for who in (bob, cid):
        for method, path in (("POST", "ann/token"), ("DELETE", "ann/token/x"), ("POST", "absent/token")):
            got = await world.ask(who, method, f"{ACCOUNT}/{path}", {})
            assert (got.code, got.body) == (403, DENIED)
    assert (await world.ask(ann, "POST", f"{ACCOUNT}/bob/token", {"id": "by-ann"})).code == 200
    assert (await world.ask(ann, "DELETE", f"{ACCOUNT}/bob/token/by-ann")).code == 200


async def test_a_password_is_changed_by_who_knows_their_own(world: World) -> None:
    cid, ann = await token(world, "cid"), await token(world, "ann")
    path, new = f"{ACCOUNT}/password", "another horse entirely"
    for wrong in ({"newPassword": new, "currentPassword": "guess"}, {"currentPassword": PASSWORD}, {"newPassword": 5}):
        assert (await world.ask(cid, "PUT", path, wrong)).code == 400
    others = {"name": "ann", "newPassword": new, "currentPassword": PASSWORD}
    assert (await world.ask(cid, "PUT", path, others)).body == DENIED
    assert (await world.ask(cid, "PUT", path, {"newPassword": new, "currentPassword": PASSWORD})).code == 200
    await world.until(lambda: world.site.identities.standing.accounts["cid"].changed > 0)
    assert await token(world, "cid", new)
    back = {"name": "cid", "newPassword": PASSWORD, "currentPassword": PASSWORD}
    assert (await world.ask(ann, "PUT", path, back)).code == 200
    assert (await world.raw("PUT", path)).code in (401, 403, 415)


async def test_a_role_of_a_project_has_tokens_of_its_own(world: World) -> None:
    ann, bob = await token(world, "ann"), await token(world, "bob")
    made = await world.ask(ann, "POST", ROLE, {"id": "pipeline", "expiresIn": "600"})
    key = made.json()["token"]
    await world.until(lambda: bool(world.site.identities.standing.role_tokens("team", "ci")))
    seen = (await world.ask(key, "GET", "/api/v1/applications?fields=items.metadata.name")).json()
    assert seen["items"] == [{"metadata": {"name": "models"}}]
    assert (await world.ask(key, "GET", "/api/v1/applications/other")).body == DENIED
    for method, path in (("POST", ROLE), ("DELETE", f"{ROLE}/1"), ("POST", ROLE.replace("team", "absent"))):
        assert (await world.ask(bob, method, path, {})).body == DENIED
    for path, sent in ((ROLE, {"id": "pipeline"}), (ROLE.replace("/ci/", "/none/"), {}), (ROLE, {"expiresIn": -5})):
        assert (await world.ask(ann, "POST", path, sent)).code == 400
    (mark,) = world.site.identities.standing.role_tokens("team", "ci") or ()
    for path in (f"{ROLE}/1", f"{ROLE}/x", f"{ROLE}/1?id=none"):
        assert (await world.ask(ann, "DELETE", path)).code == 400
    assert (await world.ask(ann, "DELETE", f"{ROLE}/{mark.issued}")).code == 200
    await world.until(lambda: not world.site.identities.standing.role_tokens("team", "ci"))
    assert (await world.ask(key, "GET", "/api/v1/applications")).code == 401
