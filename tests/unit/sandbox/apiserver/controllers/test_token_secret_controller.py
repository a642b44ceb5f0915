"""Secrets of type kubernetes.io/service-account-token: they get a token, which is valid as long as they contain it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.api_client import Api, eventually, named

pytestmark = pytest.mark.anyio
SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"


def token_secret(name: str, account: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {ACCOUNT_NAME: account, **annotations}}
    return {**named("v1", "Secret", name), "metadata": metadata, "type": "kubernetes.io/service-account-token"}


async def read_token(api: Api, name: str) -> str:
    """Wait for the token of a Secret."""

    async def find() -> str:
        secret = (await api.get(f"{SECRETS}/{name}")).json
        return str((secret.get("data") or {}).get("token") or "")

    await eventually(find)
    return base64.b64decode(await find()).decode()


async def review(api: Api, token: str, *audiences: str) -> dict[str, Any]:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    return dict((await api.made(REVIEWS, body))["status"])


async def is_gone(api: Api, path: str) -> bool:
    return (await api.get(path)).code == 404


async def test_secret_gets_a_token_of_its_account(api: Api) -> None:
    account = await api.made(ACCOUNTS, named("v1", "ServiceAccount", "robot"))
    await api.made(SECRETS, token_secret("key", "robot"))
    token = await read_token(api, "key")
    secret = (await api.get(f"{SECRETS}/key")).json
    assert base64.b64decode(secret["data"]["namespace"]) == b"default"
    assert secret["metadata"]["annotations"] == {ACCOUNT_NAME: "robot", ACCOUNT_UID: account["metadata"]["uid"]}
    status = await review(api, token)
    assert (status["authenticated"], status["user"]["username"]) == (True, "system:serviceaccount:default:robot")
    assert status["user"]["groups"] == [
        "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"
    ]  # fmt: skip
    assert status["user"]["uid"] == account["metadata"]["uid"]
    assert not (await review(api, token, "vault")).get("authenticated")


async def test_token_is_invalid_when_its_secret_no_longer_contains_it(api: Api) -> None:
    await api.made(ACCOUNTS, named("v1", "ServiceAccount", "robot"))
    await api.made(SECRETS, token_secret("key", "robot"))
    first = await read_token(api, "key")
    secret = (await api.get(f"{SECRETS}/key")).json
    assert (await api.put(f"{SECRETS}/key", {**secret, "data": {**secret["data"], "token": "b3RoZXI="}})).code == 200
    assert not (await review(api, first)).get("authenticated")
    assert (await api.delete(f"{SECRETS}/key")).code == 200
    assert not (await review(api, first)).get("authenticated")


async def test_secret_is_deleted_with_its_account(api: Api) -> None:
    await api.made(ACCOUNTS, named("v1", "ServiceAccount", "robot"))
    await api.made(SECRETS, token_secret("key", "robot"))
    await api.made(SECRETS, {**named("v1", "Secret", "other"), "data": {"token": "eA=="}})
    token = await read_token(api, "key")
    assert (await api.delete(f"{ACCOUNTS}/robot")).code == 200
    assert not (await review(api, token)).get("authenticated")
    await eventually(lambda: is_gone(api, f"{SECRETS}/key"))
    assert (await api.get(f"{SECRETS}/other")).code == 200


async def test_secret_for_another_or_no_account_is_deleted(api: Api) -> None:
    await api.made(ACCOUNTS, named("v1", "ServiceAccount", "robot"))
    await api.made(SECRETS, token_secret("none", "nobody"))
    await api.made(SECRETS, token_secret("earlier", "robot", **{ACCOUNT_UID: "of-an-earlier-one"}))
    for name in ("none", "earlier"):
        await eventually(lambda name=name: is_gone(api, f"{SECRETS}/{name}"))


async def test_reference_of_the_account_is_removed_with_the_secret(api: Api) -> None:
    account = {**named("v1", "ServiceAccount", "robot"), "secrets": [{"name": "key"}, {"name": "kept"}]}
    await api.made(ACCOUNTS, account)
    await api.made(SECRETS, token_secret("key", "robot"))
    await read_token(api, "key")
    assert (await api.delete(f"{SECRETS}/key")).code == 200

    async def has_one_reference() -> bool:
        return bool((await api.get(f"{ACCOUNTS}/robot")).json["secrets"] == [{"name": "kept"}])

    await eventually(has_one_reference)
