"""Service account tokens."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from argosy.errors import ClusterError
from argosy.sandbox.apiserver.service_account_tokens import ServiceAccountTokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_foreign_token_does_not_create_the_signing_key(tmp_path: Path) -> None:
    tokens = ServiceAccountTokens(tmp_path / "key", lambda namespace, name: "uid")
    assert tokens.find_user("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", NOW) is None
    assert not (tmp_path / "key").exists()


def test_token_is_valid_until_it_expires_or_its_account_is_deleted(tmp_path: Path) -> None:
    living = {("team", "robot"): "uid-1"}
    tokens = ServiceAccountTokens(tmp_path / "key", lambda namespace, name: living.get((namespace, name)))
    account = {"metadata": {"name": "robot", "namespace": "team", "uid": "uid-1"}}
    token = tokens.create_token(account, {"spec": {"expirationSeconds": 600}}, NOW)["status"]["token"]
    user = tokens.find_user(token, NOW)
    assert user is not None and user.name == "system:serviceaccount:team:robot"
    assert tokens.find_user(token, NOW.replace(hour=1)) is None
    head, body, signature = token.split(".")
    assert tokens.find_user(f"{head}.{body}x.{signature}", NOW) is None
    living.clear()
    assert tokens.find_user(token, NOW) is None


def test_token_bound_to_a_secret_is_invalid_after_the_secret_is_replaced(tmp_path: Path) -> None:
    secrets = {("team", "key"): "uid-2"}
    tokens = ServiceAccountTokens(tmp_path / "key", lambda *account: "uid-1", lambda *secret: secrets.get(secret))
    account = {"metadata": {"name": "robot", "namespace": "team", "uid": "uid-1"}}
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "key", "uid": "uid-2"}
    token = tokens.create_token(account, {"spec": {"boundObjectRef": bound}}, NOW)["status"]["token"]
    assert tokens.find_user(token, NOW) is not None
    secrets[("team", "key")] = "uid-3"
    assert tokens.find_user(token, NOW) is None
    with pytest.raises(ClusterError, match="is not a Secret of this namespace"):
        tokens.create_token(account, {"spec": {"boundObjectRef": bound}}, NOW)
