"""Tokens of service accounts."""

from datetime import UTC, datetime
from pathlib import Path

from argosy.apiserver.tokens import Tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_strangers_token_makes_no_key(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "key", lambda namespace, name: "uid")
    assert tokens.user("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", NOW) is None
    assert not (tmp_path / "key").exists()


def test_a_token_is_good_until_it_ends_and_while_its_account_lives(tmp_path: Path) -> None:
    living = {("team", "robot"): "uid-1"}
    tokens = Tokens(tmp_path / "key", lambda namespace, name: living.get((namespace, name)))
    account = {"metadata": {"name": "robot", "namespace": "team", "uid": "uid-1"}}
    token = tokens.request(account, {"spec": {"expirationSeconds": 600}}, NOW)["status"]["token"]
    user = tokens.user(token, NOW)
    assert user is not None and user.name == "system:serviceaccount:team:robot"
    assert tokens.user(token, NOW.replace(hour=1)) is None
    head, body, signature = token.split(".")
    assert tokens.user(f"{head}.{body}x.{signature}", NOW) is None
    living.clear()
    assert tokens.user(token, NOW) is None
