"""Authentication: valid and invalid tokens, users, and impersonation."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from argosy.sandbox.apiserver.authentication import hash_token
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.service_account_tokens import ISSUER
from support.api_client import TOKEN, Api, named

pytestmark = pytest.mark.anyio
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
SECRETS = "/api/v1/namespaces/kube-system/secrets"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def plane(clock: Clock) -> AsyncIterator[ControlPlane]:
    async with ControlPlane.open(admin_token=TOKEN, clock=clock, rbac=True) as opened:
        api = Api(opened)
        while (await api.get(ACCOUNT)).code != 200:
            await asyncio.sleep(0)
        yield opened


async def issued(api: Api, **spec: Any) -> str:
    answer = await api.post(f"{ACCOUNT}/token", {"spec": spec})
    assert answer.code == 201, answer.body
    return str(answer.json["status"]["token"])


async def who(api: Api, token: str, **headers: str) -> tuple[int, str]:
    answer = await api.of(token).post(WHO, {}, **headers)
    return answer.code, answer.json["status"]["userInfo"]["username"] if answer.code == 201 else answer.json["reason"]


def part(token: str, number: int) -> Any:
    text = token.split(".")[number]
    return orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def packed(value: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


async def test_token_identifies_its_service_account(api: Api) -> None:
    token = await issued(api)
    assert await who(api, token) == (201, "system:serviceaccount:default:default")
    head, claims = part(token, 0), part(token, 1)
    assert (head["alg"], claims["iss"], claims["aud"]) == ("RS256", ISSUER, [ISSUER])
    assert claims["sub"] == "system:serviceaccount:default:default"
    keys = (await api.get("/openid/v1/jwks")).json["keys"]
    assert head["kid"] in {jwk["kid"] for jwk in keys}


async def test_token_is_rejected_after_its_expiration(api: Api, clock: Clock) -> None:
    token = await issued(api, expirationSeconds=600)
    clock.now += timedelta(seconds=599)
    assert (await who(api, token))[0] == 201
    clock.now += timedelta(seconds=2)
    assert await who(api, token) == (401, "Unauthorized")


async def test_token_is_rejected_before_its_issue_time(api: Api, clock: Clock) -> None:
    token = await issued(api)
    clock.now -= timedelta(hours=1)
    assert (await who(api, token))[0] == 401


async def test_token_is_valid_if_the_clock_was_set_back_less_than_a_minute(api: Api, clock: Clock) -> None:
    token = await issued(api, expirationSeconds=600)
    clock.now -= timedelta(seconds=59)
    assert (await who(api, token))[0] == 201
    clock.now -= timedelta(seconds=2)
    assert (await who(api, token))[0] == 401


async def test_token_is_rejected_after_its_account_is_deleted_or_recreated(api: Api) -> None:
    token = await issued(api)
    await api.delete(ACCOUNT)
    assert (await who(api, token))[0] == 401
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    assert (await who(api, token))[0] == 401


async def test_token_for_another_audience_is_rejected(api: Api) -> None:
    token = await issued(api, audiences=["vault"])
    assert (await who(api, token))[0] == 401
    for audiences, status in (
        (["vault"], ["vault"]),
        (["vault", "other"], ["vault"]),
        (["other"], None),
        ([], None),
    ):
        answer = (await api.post(REVIEW, {"spec": {"token": token, "audiences": audiences}})).json["status"]
        assert answer.get("audiences") == status and answer.get("authenticated", False) is (status is not None)


async def forged(token: str) -> list[str]:
    head, body, signature = token.split(".")
    claims = part(token, 1)
    other = {**claims, "sub": "system:serviceaccount:kube-system:default"}
    return [
        f"{packed({'alg': 'none'})}.{body}.",
        f"{packed({'alg': 'none'})}.{body}.{signature}",
        f"{packed({'alg': 'HS256', 'kid': part(token, 0)['kid']})}.{body}.{signature}",
        f"{head}.{packed(other)}.{signature}",
        f"{head}.{packed({**claims, 'exp': claims['exp'] * 2})}.{signature}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.{signature}!",
        f"{head}.{body}.{signature}==",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{packed([])}.{body}.{signature}",
        "...",
        "a.b.c",
        "\u00ff.\u00ff.\u00ff",
    ]


async def test_forged_token_is_rejected(api: Api) -> None:
    for bad in await forged(await issued(api)):
        assert (await who(api, bad))[0] == 401, bad
        review = (await api.post(REVIEW, {"spec": {"token": bad}})).json
        assert review["status"] == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize("seconds", [599, 0x100000001, -1])
async def test_token_request_with_invalid_expiration_is_rejected(api: Api, seconds: int) -> None:
    assert (await api.post(f"{ACCOUNT}/token", {"spec": {"expirationSeconds": seconds}})).code == 422


async def test_token_request_for_missing_account_returns_404(api: Api) -> None:
    assert (await api.post(ACCOUNT.replace("s/default", "s/none") + "/token", {})).code == 404


@pytest.mark.parametrize("header", ["", "Basic YWRtaW46eA==", "Bearer", "Bearer ", "Bearer wrong", f"Token {TOKEN}"])
async def test_request_without_valid_token_returns_401(api: Api, header: str) -> None:
    for path in ("/api/v1/pods", "/apis", "/metrics", "/nowhere"):
        answer = await api.get(path, authorization=header) if header else await api.of("").get(path)
        assert (answer.code, answer.json["reason"]) == (401, "Unauthorized")


async def test_user_secret_authenticates_until_it_is_deleted(api: Api) -> None:
    notes = {"user": "alice", "groups": "devs,ops", "token-digest": hash_token("t")}
    about = {"name": "user-alice", "annotations": {f"sandbox.argosy.dev/{key}": value for key, value in notes.items()}}
    await api.made(SECRETS, {"metadata": about, "type": "sandbox.argosy.dev/user"})
    info = (await api.of("t").post(WHO, {})).json["status"]["userInfo"]
    assert (info["username"], info["groups"]) == ("alice", ["devs", "ops", "system:authenticated"])
    await api.delete(f"{SECRETS}/user-alice")
    assert (await who(api, "t"))[0] == 401


async def test_secret_of_other_namespace_or_type_is_not_a_user(api: Api) -> None:
    notes = {"sandbox.argosy.dev/user": "mallory", "sandbox.argosy.dev/token-digest": hash_token("t")}
    secret = {"metadata": {"name": "x", "annotations": notes}, "type": "sandbox.argosy.dev/user"}
    await api.made("/api/v1/namespaces/default/secrets", secret)
    await api.made(SECRETS, {**secret, "type": "Opaque"})
    assert (await who(api, "t"))[0] == 401


# -- impersonation ------------------------------------------------------------------------------------


async def test_admin_may_impersonate_any_user(api: Api) -> None:
    headers = {"impersonate_user": "bob", "impersonate_group": "devs"}
    info = (await api.post(WHO, {}, **headers)).json["status"]["userInfo"]
    assert (info["username"], info["groups"]) == ("bob", ["devs", "system:authenticated"])
    assert (await api.get("/api/v1/pods", impersonate_user="bob")).code == 403


async def test_impersonated_service_account_has_its_groups(api: Api) -> None:
    answer = await api.post(WHO, {}, impersonate_user="system:serviceaccount:default:builder")
    groups = answer.json["status"]["userInfo"]["groups"]
    assert groups == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]


async def test_impersonation_without_permission_is_forbidden(api: Api) -> None:
    token = await issued(api)
    for headers in (
        {"impersonate_user": "bob"},
        {"impersonate_user": "system:serviceaccount:default:default", "impersonate_group": "system:masters"},
        {"impersonate_user": "admin", "impersonate_uid": "1"},
    ):
        assert (await api.of(token).post(WHO, {}, **headers)).code == 403


async def test_each_impersonated_extra_needs_its_own_permission(api: Api) -> None:
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes", "userextras/a/b"],
         "resourceNames": ["read"], "verbs": ["impersonate"]},
    ]  # fmt: skip
    await api.post(f"/apis/{group}/v1/clusterroles", named(f"{group}/v1", "ClusterRole", "extras", rules=rules))
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": "extras"}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    body = named(f"{group}/v1", "ClusterRoleBinding", "extras", roleRef=reference, subjects=[account])
    await api.post(f"/apis/{group}/v1/clusterrolebindings", body)
    limited = api.of(await issued(api))

    async def ask(**extras: str) -> Any:
        return await limited.post(WHO, {}, impersonate_user="bob", **extras)

    scopes, wrong = "impersonate_extra_Scopes", "impersonate_extra_a%zz"
    extra = (await ask(**{scopes: "read", "impersonate_extra_a%2Fb": "read"})).json["status"]["userInfo"]["extra"]
    assert extra == {"scopes": ["read"], "a/b": ["read"]}
    refusal = (
        'userextras.authentication.k8s.io "{}" is forbidden: User "system:serviceaccount:default:default" cannot '
        'impersonate resource "userextras/{}" in API group "authentication.k8s.io" at the cluster scope'
    )
    assert (await ask(**{scopes: "write"})).message == refusal.format("write", "scopes")
    assert (await ask(**{wrong: "read"})).message == refusal.format("read", "a%zz")


async def test_impersonated_group_without_user_is_rejected(api: Api) -> None:
    assert (await api.post(WHO, {}, impersonate_group="system:masters")).code == 400
