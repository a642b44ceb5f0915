"""Every invalid token is rejected with the same error and never treated as anonymous."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.web.auth.caller import BadCredential, RequestCredentials
from support.identities import Room, identity_room

pytestmark = pytest.mark.anyio
Made = Callable[["Signing"], str]


class Signing:
    """Builds tokens by hand, so that they can be invalid."""

    def __init__(self, room: Room, key: bytes) -> None:
        self.key = key
        self.now = int(room.clock.now().timestamp())
        self.other = b"x" * 44

    @property
    def claims(self) -> dict[str, Any]:
        begin = {"iss": "argocd", "sub": "admin:login", "jti": "a-session"}
        return {**begin, "iat": self.now, "nbf": self.now, "exp": self.now + 600}

    def text(self, head: str, body: str, key: bytes | None = None) -> str:
        signed = f"{part(head)}.{part(body)}"
        signature = hmac.new(self.key if key is None else key, signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    def token(self, head: dict[str, Any] | None = None, without: str = "", **claims: Any) -> str:
        payload = {name: value for name, value in {**self.claims, **claims}.items() if name != without}
        return self.text(json.dumps(head or {"alg": "HS256", "typ": "JWT"}), json.dumps(payload))


def part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def cut(token: str, signature: str) -> str:
    return f"{token.rpartition('.')[0]}.{signature}"


HEAD = {"alg": "HS256", "typ": "JWT"}
BAD: dict[str, Made] = {
    "nothing at all": lambda s: ".",
    "parents that are no list": lambda s: s.token(parents="admin:apiKey"),
    "a parent without an id": lambda s: s.token(parents=[["admin:apiKey"]]),
    "a parent without a time": lambda s: s.token(parents=[["admin:apiKey", "x"]]),
    "too many parents": lambda s: s.token(parents=[["admin:apiKey", "x", s.now]] * 9),
    "a parent that is gone": lambda s: s.token(parents=[["admin:apiKey", "deleted", s.now]]),
    "a parent of a project that is gone": lambda s: s.token(parents=[["proj:none:ci", "x", s.now]]),
    "two parts": lambda s: s.token().rpartition(".")[0],
    "four parts": lambda s: f"{s.token()}.x",
    "no base64": lambda s: f"!!.!!.{'x' * 43}",
    "padding": lambda s: cut(s.token(), s.token().rpartition(".")[2] + "="),
    "a second spelling of the signature": lambda s: respelled(s.token()),
    "white space": lambda s: f" {s.token()}",
    "a line break": lambda s: f"{s.token()}\n",
    "too long": lambda s: s.token(junk="x" * 9000),
    "another key": lambda s: s.text(json.dumps(HEAD), json.dumps(s.claims), s.other),
    "an empty key": lambda s: s.text(json.dumps(HEAD), json.dumps(s.claims), b""),
    "no signature": lambda s: cut(s.token(), ""),
    "a signature of zeros": lambda s: cut(s.token(), "A" * 43),
    "a signature of another token": lambda s: cut(s.token(), s.token(jti="x").rpartition(".")[2]),
    "alg none": lambda s: cut(s.token({"alg": "none", "typ": "JWT"}), ""),
    "alg none, signed": lambda s: s.token({"alg": "none", "typ": "JWT"}),
    "alg NONE, signed": lambda s: s.token({"alg": "NONE"}),
    "alg RS256": lambda s: s.token({"alg": "RS256", "typ": "JWT"}),
    "alg HS512": lambda s: s.token({"alg": "HS512", "typ": "JWT"}),
    "alg hs256": lambda s: s.token({"alg": "hs256", "typ": "JWT"}),
    "alg is missing": lambda s: s.token({"typ": "JWT"}),
    "alg is a list": lambda s: s.token({"alg": ["HS256"]}),
    "typ of another": lambda s: s.token({"alg": "HS256", "typ": "at+jwt"}),
    "kid of a path": lambda s: s.token({**HEAD, "kid": "../../dev/null"}),
    "kid of a query": lambda s: s.token({**HEAD, "kid": "' OR 1=1"}),
    "a key in the header": lambda s: s.token({**HEAD, "jwk": {"kty": "oct", "k": "eA"}}),
    "an address in the header": lambda s: s.token({**HEAD, "jku": "https://evil.example/keys"}),
    "crit": lambda s: s.token({**HEAD, "crit": ["exp"]}),
    "unencoded payload": lambda s: s.token({**HEAD, "b64": False}),
    "the header is a list": lambda s: s.text("[]", json.dumps(s.claims)),
    "the header says alg twice": lambda s: s.text('{"alg":"HS256","alg":"HS256"}', json.dumps(s.claims)),
    "the body is a list": lambda s: s.text(json.dumps(HEAD), "[]"),
    "the body is no JSON": lambda s: s.text(json.dumps(HEAD), "admin"),
    "the body says sub twice": lambda s: s.text(
        json.dumps(HEAD), json.dumps(s.claims).replace('"sub"', '"sub": "bob:login", "sub"')
    ),
    "the body is very deep": lambda s: s.text(json.dumps(HEAD), "[" * 3000 + "]" * 3000),
    "iss is missing": lambda s: s.token(without="iss"),
    "iss of another": lambda s: s.token(iss="https://idp.example"),
    "iss is a list": lambda s: s.token(iss=["argocd"]),
    "aud of another": lambda s: s.token(aud="other"),
    "aud of others": lambda s: s.token(aud=["other", "more"]),
    "sub is missing": lambda s: s.token(without="sub"),
    "sub is empty": lambda s: s.token(sub=""),
    "sub is blank": lambda s: s.token(sub="  "),
    "sub is a number": lambda s: s.token(sub=1),
    "sub of nobody": lambda s: s.token(sub="eve:login"),
    "sub like a role": lambda s: s.token(sub="role:admin"),
    "sub like a role that logs in": lambda s: s.token(sub="role:admin:login"),
    "sub like a role of no project": lambda s: s.token(sub="proj:none:ci"),
    "sub with another capability": lambda s: s.token(sub="admin:root"),
    "sub with three words": lambda s: s.token(sub="admin:login:x"),
    "sub in capitals": lambda s: s.token(sub="Admin:login"),
    "sub with a NUL": lambda s: s.token(sub="admin\0:login"),
    "a token that was never given": lambda s: s.token(sub="bob:apiKey", jti="never"),
    "a capability that the account has not": lambda s: s.token(sub="admin:apiKey"),
    "an account that may not log in": lambda s: s.token(sub="robot:login"),
    "an account that is disabled": lambda s: s.token(sub="gone:login"),
    "jti is missing": lambda s: s.token(without="jti"),
    "jti is empty": lambda s: s.token(jti=""),
    "jti is a number": lambda s: s.token(jti=7),
    "iat is missing": lambda s: s.token(without="iat"),
    "iat to come": lambda s: s.token(iat=s.now + 60),
    "iat as text": lambda s: s.token(iat=str(s.now)),
    "iat is true": lambda s: s.token(iat=True),
    "iat with a fraction": lambda s: s.token(iat=s.now + 0.5),
    "nbf to come": lambda s: s.token(nbf=s.now + 60),
    "nbf is null": lambda s: s.token(nbf=None),
    "exp is missing": lambda s: s.token(without="exp"),
    "exp is over": lambda s: s.token(iat=s.now - 60, nbf=s.now - 60, exp=s.now - 1),
    "exp is now": lambda s: s.token(iat=s.now - 60, nbf=s.now - 60, exp=s.now),
    "exp is 0": lambda s: s.token(exp=0),
    "exp is below 0": lambda s: s.token(exp=-1),
    "exp before iat": lambda s: s.token(iat=s.now + 3, exp=s.now + 2),
    "exp in a year": lambda s: s.token(exp=s.now + 365 * 86400),
    "exp in 25 hours": lambda s: s.token(exp=s.now + 25 * 3600),
    "exp is endless": lambda s: s.text(json.dumps(HEAD), json.dumps(s.claims).replace(str(s.now + 600), "1e400")),
    "exp as text": lambda s: s.token(exp=str(s.now + 600)),
    "exp is null": lambda s: s.token(exp=None),
    "a session of yesterday": lambda s: s.token(auth_time=s.now - 90_000, exp=s.now + 600),
    "a session that began later": lambda s: s.token(auth_time=s.now + 3),
    "a person of no provider": lambda s: s.token(iss="argosy", sub="ann", groups=["x"]),
    "a person of a provider that is not asked": lambda s: s.token(iss="argosy", sub="ann", provider="https://x y"),
    "groups that are none": lambda s: s.token(iss="argosy", sub="ann", groups="role:admin"),
    "older than the password": lambda s: s.token(iat=s.now - 3600, nbf=s.now - 3600),
}  # fmt: skip


def respelled(token: str) -> str:
    """Change a bit of the last character that carries no data: it holds two such bits."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = letters.index(token[-1])
    return token[:-1] + letters[last ^ 1]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    folder: Path = tmp_path_factory.mktemp("tokens")
    async with identity_room(folder) as opened_room:
        await opened_room.settings(
            accounts__bob="apiKey, login", accounts__robot="apiKey", accounts__gone="login",
            accounts__gone__enabled="false", users__anonymous__enabled="true",
        )  # fmt: skip
        yield opened_room


async def test_invalid_token_table_has_at_least_45_cases() -> None:
    assert len(BAD) >= 45


async def test_valid_handmade_token_is_accepted(shared: Room) -> None:
    signing = Signing(shared, (await shared.secret())["server.secretkey"])
    caller = await shared.who(signing.token())
    assert caller is not None
    assert (caller.name, caller.kind, caller.credential_kind) == ("admin", "account", "bearer")
    assert await shared.who(signing.token(sub="admin")) is not None  # argo: a subject without a capability is a login
    assert await shared.who(signing.token(aud="argocd")) is not None


@pytest.mark.parametrize("wrong", BAD)
async def test_invalid_token_is_rejected_even_with_anonymous_access(shared: Room, wrong: str) -> None:
    signing = Signing(shared, (await shared.secret())["server.secretkey"])
    token = BAD[wrong](signing)
    for bad_token in (
        RequestCredentials(bearer=token),
        RequestCredentials(cookies={"argosy-1": token}),
        RequestCredentials(cookies={"argocd.token": token}),
    ):
        with pytest.raises(BadCredential):
            await shared.identities.identify(bad_token)


async def test_request_without_credentials_is_anonymous_if_enabled(shared: Room) -> None:
    caller = await shared.identities.identify(RequestCredentials())
    assert caller is not None
    assert caller.credential_kind == "anonymous"
    assert not shared.identities.is_allowed(caller, "applications", "get", "default/x")
    assert shared.identities.is_still_valid(caller)
