"""Accounts and tokens over the REST API, with the real Authenticator and Argo CD's RBAC rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.auth.signed_tokens import MAX_PARENTS
from support.identities import CHEAP
from support.rest_api import DENIED, World, rest_world

pytestmark = pytest.mark.anyio
ACCOUNT, ROLE = "/api/v1/account", "/api/v1/projects/team/roles/ci/token"
NAMES = ("ann", "bob", "cid", "dan")
PASSWORD = "correct horse battery"
RBAC = """
g, ann, role:admin
p, cid, accounts, get, *, allow
p, dan, accounts, update, *, allow
p, dan, projects, update, team, allow
p, proj:team:ci, projects, update, team, allow
"""
DEPLOY = "p, proj:team:deployer, applications, *, team/*, allow"
POLICY = "p, proj:team:ci, applications, get, team/*, allow"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    def real(cluster: Any, lookout: Any) -> Authenticator:
        return Authenticator(cluster, lookout, "argocd", hashing=PasswordHasher(CHEAP), min_login_seconds=0.0)

    async with rest_world(tmp_path_factory.mktemp("accounts"), real) as world:
        data = {f"accounts.{name}": "apiKey, login" for name in NAMES}
        await world.cluster.patch(ResourceKey("", "ConfigMap", "argocd", "argocd-cm"), {"data": data})
        await world.make("ConfigMap", "argocd-rbac-cm", data={"policy.csv": RBAC})
        roles = [{"name": "ci", "policies": [POLICY]}, {"name": "deployer", "policies": [DEPLOY]}]
        spec = {"roles": roles, "sourceRepos": ["*"]}
        await world.make("AppProject", "team", api="argoproj.io/v1alpha1", spec=spec)
        await world.application("models", "team")
        await world.application("other")
        await world.site.authenticator.prepare()
        for name in NAMES:
            await world.site.authenticator.account_store.set_password(name, PASSWORD)
        await world.seen("argoproj.io", "Application", "other")
        await world.seen("", "ConfigMap", "argocd-rbac-cm")
        await world.until(
            lambda: all(account.password_hash for account in world.site.authenticator.state.accounts.values())
        )
        yield world


async def token(world: World, name: str, password: str = PASSWORD) -> str:
    return str(await world.site.authenticator.login(name, password))


async def test_account_list_shows_own_account_or_all_with_permission(world: World) -> None:
    ann, bob, cid = [await token(world, name) for name in ("ann", "bob", "cid")]
    for who, names in ((ann, ["admin", *NAMES]), (bob, ["bob"]), (cid, ["admin", *NAMES])):
        got = await world.ask(who, "GET", ACCOUNT)
        assert [account["name"] for account in got.json()["items"]] == names
        assert b"$2" not in got.body  # no hash
    assert (await world.ask(bob, "GET", f"{ACCOUNT}/bob")).json()["capabilities"] == ["apiKey", "login"]
    for name in ("ann", "absent"):
        got = await world.ask(bob, "GET", f"{ACCOUNT}/{name}")
        assert (got.code, got.body) == (403, DENIED)
    assert (await world.ask(cid, "GET", f"{ACCOUNT}/ann")).code == 200
    assert (await world.raw("GET", ACCOUNT)).code == 401


async def test_can_i_reports_the_permissions_of_the_caller(world: World) -> None:
    ann, bob = await token(world, "ann"), await token(world, "bob")
    path = f"{ACCOUNT}/can-i/applications/sync/team/models"
    assert (await world.ask(ann, "GET", path)).json() == {"value": "yes"}
    assert (await world.ask(bob, "GET", path)).json() == {"value": "no"}
    assert (await world.ask(bob, "GET", f"{ACCOUNT}/can-i/x/y/%2A")).json() == {"value": "no"}


async def test_account_token_works_until_it_is_deleted(world: World) -> None:
    bob = await token(world, "bob")
    response = await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", {"id": "ci", "expiresIn": 3600})
    key = response.json()["token"]
    (mark,) = (await world.ask(key, "GET", f"{ACCOUNT}/bob")).json()["tokens"]
    assert mark["id"] == "ci" and int(mark["expiresAt"]) - int(mark["issuedAt"]) == 3600
    assert (await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", {"id": "ci"})).code == 400
    for wrong in ({"expiresIn": -1}, {"expiresIn": "soon"}, {"id": 5}, []):
        assert (await world.ask(bob, "POST", f"{ACCOUNT}/bob/token", wrong)).code == 400, wrong
    assert (await world.ask(bob, "DELETE", f"{ACCOUNT}/bob/token/ci")).code == 200
    assert (await world.ask(bob, "DELETE", f"{ACCOUNT}/bob/token/ci")).code == 400
    await world.until(lambda: not world.site.authenticator.state.accounts["bob"].tokens)
    assert (await world.ask(key, "GET", f"{ACCOUNT}/bob")).code == 401


async def test_tokens_of_other_accounts_need_permission(world: World) -> None:
    bob, cid, ann = [await token(world, name) for name in ("bob", "cid", "ann")]
    for who in (bob, cid):
        for method, path in (("POST", "ann/token"), ("DELETE", "ann/token/x"), ("POST", "absent/token")):
            got = await world.ask(who, method, f"{ACCOUNT}/{path}", {})
            assert (got.code, got.body) == (403, DENIED)
    assert (await world.ask(ann, "POST", f"{ACCOUNT}/bob/token", {"id": "by-ann"})).code == 200
    assert (await world.ask(ann, "DELETE", f"{ACCOUNT}/bob/token/by-ann")).code == 200


async def test_password_change_needs_the_current_password_or_admin_rights(world: World) -> None:
    cid, ann = await token(world, "cid"), await token(world, "ann")
    path, new = f"{ACCOUNT}/password", "another horse entirely"
    for wrong in ({"newPassword": new, "currentPassword": "guess"}, {"currentPassword": PASSWORD}, {"newPassword": 5}):
        assert (await world.ask(cid, "PUT", path, wrong)).code == 400
    others = {"name": "ann", "newPassword": new, "currentPassword": PASSWORD}
    assert (await world.ask(cid, "PUT", path, others)).body == DENIED
    assert (await world.ask(cid, "PUT", path, {"newPassword": new, "currentPassword": PASSWORD})).code == 200
    await world.until(lambda: world.site.authenticator.state.accounts["cid"].password_changed_at > 0)
    assert await token(world, "cid", new)
    back = {"name": "cid", "newPassword": PASSWORD, "currentPassword": PASSWORD}
    assert (await world.ask(ann, "PUT", path, back)).code == 200
    assert (await world.raw("PUT", path)).code in (401, 403, 415)


async def test_project_role_token_works_until_it_is_deleted(world: World) -> None:
    ann, bob = await token(world, "ann"), await token(world, "bob")
    response = await world.ask(ann, "POST", ROLE, {"id": "pipeline", "expiresIn": "600"})
    key = response.json()["token"]
    await world.until(lambda: bool(world.site.authenticator.state.find_role_tokens("team", "ci")))
    listing = (await world.ask(key, "GET", "/api/v1/applications?fields=items.metadata.name")).json()
    assert listing["items"] == [{"metadata": {"name": "models"}}]
    assert (await world.ask(key, "GET", "/api/v1/applications/other")).body == DENIED
    for method, path in (("POST", ROLE), ("DELETE", f"{ROLE}/1"), ("POST", ROLE.replace("team", "absent"))):
        assert (await world.ask(bob, method, path, {})).body == DENIED
    for path, sent in ((ROLE, {"id": "pipeline"}), (ROLE.replace("/ci/", "/none/"), {}), (ROLE, {"expiresIn": -5})):
        assert (await world.ask(ann, "POST", path, sent)).code == 400
    (mark,) = world.site.authenticator.state.find_role_tokens("team", "ci") or ()
    for path in (f"{ROLE}/1", f"{ROLE}/x", f"{ROLE}/1?id=none"):
        assert (await world.ask(ann, "DELETE", path)).code == 400
    assert (await world.ask(ann, "DELETE", f"{ROLE}/{mark.issued_at}")).code == 200
    await world.until(lambda: not world.site.authenticator.state.find_role_tokens("team", "ci"))
    assert (await world.ask(key, "GET", "/api/v1/applications")).code == 401


async def create(world: World, maker: str, path: str, **body: Any) -> Any:
    return await world.ask(maker, "POST", path, body)


async def test_token_cannot_create_one_that_outlives_it(world: World) -> None:
    session = await token(world, "bob")
    path = f"{ACCOUNT}/bob/token"
    short = (await create(world, session, path, id="short", expiresIn=600)).json()["token"]
    for seconds in (0, 601, 86400):
        refused = await create(world, short, path, expiresIn=seconds)
        assert refused.code == 403 and "cannot outlive the token that creates it" in refused.json()["message"], seconds
    assert (await create(world, short, path, id="child", expiresIn=60)).code == 200
    endless = (await create(world, session, path, id="endless")).json()["token"]
    assert (await create(world, endless, path, id="endless-child")).code == 200
    for name in ("short", "child", "endless", "endless-child"):
        assert (await world.ask(session, "DELETE", f"{path}/{name}")).code == 200


async def test_deleting_a_token_revokes_the_tokens_it_created(world: World) -> None:
    session = await token(world, "bob")
    path = f"{ACCOUNT}/bob/token"
    first = (await create(world, session, path, id="first")).json()["token"]
    second = (await create(world, first, path, id="second")).json()["token"]
    third = (await create(world, second, path, id="third")).json()["token"]
    assert (await world.ask(third, "GET", f"{ACCOUNT}/bob")).code == 200
    assert (await world.ask(session, "DELETE", f"{path}/first")).code == 200
    await world.until(lambda: len(world.site.authenticator.state.accounts["bob"].tokens) == 2)
    for key in (first, second, third):
        assert (await world.ask(key, "GET", f"{ACCOUNT}/bob")).code == 401
    for name in ("second", "third"):
        assert (await world.ask(session, "DELETE", f"{path}/{name}")).code == 200


async def test_chain_of_derived_tokens_is_limited(world: World) -> None:
    session = await token(world, "bob")
    path = f"{ACCOUNT}/bob/token"
    maker = (await create(world, session, path, id="link-0")).json()["token"]
    for number in range(1, MAX_PARENTS + 1):
        maker = (await create(world, maker, path, id=f"link-{number}")).json()["token"]
    refused = await create(world, maker, path)
    assert refused.code == 403 and "sign in with a password" in refused.json()["message"]
    for number in range(MAX_PARENTS + 1):
        assert (await world.ask(session, "DELETE", f"{path}/link-{number}")).code == 200


async def test_token_cannot_create_one_with_more_permissions(world: World) -> None:
    session = await token(world, "dan")
    assert (await create(world, session, f"{ACCOUNT}/ann/token", id="by-session")).code == 200, "as in Argo CD"
    key = (await create(world, session, f"{ACCOUNT}/dan/token", id="key")).json()["token"]
    for path in (f"{ACCOUNT}/ann/token", ROLE, ROLE.replace("/ci/", "/deployer/")):
        refused = await create(world, key, path)
        assert refused.code == 403 and "more permissions than its own" in refused.json()["message"], path
    assert (await create(world, key, f"{ACCOUNT}/bob/token", id="by-key")).code == 200, "bob has no rights at all"
    ann = await token(world, "ann")
    for path in ("dan/token/key", "bob/token/by-key", "ann/token/by-session"):
        assert (await world.ask(ann, "DELETE", f"{ACCOUNT}/{path}")).code == 200


async def test_admin_token_creates_tokens_for_accounts_with_fewer_permissions(world: World) -> None:
    session = await token(world, "ann")
    key = (await create(world, session, f"{ACCOUNT}/ann/token", id="key")).json()["token"]
    for name in ("bob", "cid", "ann"):
        assert (await create(world, key, f"{ACCOUNT}/{name}/token", id="by-key")).code == 200, name
        assert (await world.ask(session, "DELETE", f"{ACCOUNT}/{name}/token/by-key")).code == 200
    assert (await world.ask(session, "DELETE", f"{ACCOUNT}/ann/token/key")).code == 200


async def test_role_token_creates_only_tokens_of_that_role(world: World) -> None:
    session = await token(world, "ann")
    key = (await create(world, session, ROLE, id="ci-key", expiresIn=600)).json()["token"]
    await world.until(lambda: bool(world.site.authenticator.state.find_role_tokens("team", "ci")))
    refused = await create(world, key, ROLE.replace("/ci/", "/deployer/"), expiresIn=60)
    assert refused.code == 403 and "more permissions than its own" in refused.json()["message"]
    assert (await create(world, key, ROLE, expiresIn=6000)).code == 403
    child = (await create(world, key, ROLE, id="ci-child", expiresIn=60)).json()["token"]
    await world.until(lambda: len(world.site.authenticator.state.find_role_tokens("team", "ci") or ()) == 2)
    assert (await world.ask(child, "GET", "/api/v1/applications/models")).code == 200
    marks = {mark.id: mark.issued_at for mark in world.site.authenticator.state.find_role_tokens("team", "ci") or ()}
    assert (await world.ask(session, "DELETE", f"{ROLE}/{marks['ci-key']}")).code == 200
    await world.until(lambda: len(world.site.authenticator.state.find_role_tokens("team", "ci") or ()) == 1)
    assert (await world.ask(child, "GET", "/api/v1/applications/models")).code == 401
    assert (await world.ask(session, "DELETE", f"{ROLE}/{marks['ci-child']}")).code == 200
    await world.until(lambda: not world.site.authenticator.state.find_role_tokens("team", "ci"))
