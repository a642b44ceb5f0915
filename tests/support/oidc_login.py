"""OpenID Connect logins for tests: the server side and the browser side.

In: a Room, a provider, and a function that visits the login page. Out: cookies, codes, tokens and callers. Never:
decides which responses of the provider are valid.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit

from argosy.kube.objects import dump_yaml
from argosy.web.auth.caller import Caller
from support.deadlines import HANG_SECONDS
from support.identities import Room, identity_room
from support.oidc_provider import CLIENT, CLIENT_SECRET, IdentityProvider, identity_provider

CALLBACK = "https://argosy.example/auth/callback"


class Provider(Protocol):
    url: str
    authority: str  # PEM


ProviderT = TypeVar("ProviderT", bound=Provider)


class LoginScene(Generic[ProviderT]):
    """Logins at a provider. `visit` opens a URL of the provider like a new browser and returns the redirect URL."""

    def __init__(
        self, room: Room, provider: ProviderT, visit: Callable[[str], str], *, client: str, secret: str, **config: Any
    ) -> None:
        self.room, self.provider = room, provider
        self._visit, self._client_secret = visit, secret
        self._config = {
            "name": "SSO", "issuer": provider.url, "clientID": client, "clientSecret": "$oidc.clientSecret",
            "requestedScopes": ["openid", "email", "groups"], "rootCA": provider.authority, **config,
        }  # fmt: skip

    async def configure(self, **changes: Any) -> None:
        """Write `oidc.config` to the settings of the server; None removes a field."""
        config = {name: value for name, value in {**self._config, **changes}.items() if value is not None}
        await self.room.secrets(oidc__clientSecret=self._client_secret)
        await self.room.settings(oidc__config=dump_yaml(config))

    async def go(self) -> tuple[str, dict[str, str]]:
        """Start a login and visit the provider; return the login cookie and the parameters of the callback."""
        login = await self.room.identities.sso_login.start_login(CALLBACK, "/applications")
        location = self._visit(login.location)
        assert location.startswith(CALLBACK), location
        return login.cookie, {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}

    async def back(self, cookie: str, brought: dict[str, str]) -> str:
        signing_in = self.room.identities.sso_login
        session = await signing_in.finish_login(cookie, brought["state"], brought["code"], brought.get("iss", ""))
        return session.token

    async def sign_in(self) -> Caller:
        caller = await self.room.who(await self.back(*await self.go()), "argosy-1")
        assert caller is not None
        return caller


class Scene(LoginScene[IdentityProvider]):
    """Logins at a test provider that needs no user interaction."""

    def __init__(self, room: Room, provider: IdentityProvider) -> None:
        super().__init__(room, provider, functools.partial(_visit, provider), client=CLIENT, secret=CLIENT_SECRET)
        self.key = provider.key

    def renew(self) -> None:
        """Reset the provider to its defaults, and create a new authenticator without cached state."""
        fresh = IdentityProvider(self.provider.url, self.provider.authority, key=self.key)
        self.provider.__dict__.update(fresh.__dict__)
        self.provider.clock_ahead = self.room.clock._ahead
        self.room.identities = self.room.server(self.room.glance)


@contextlib.asynccontextmanager
async def open_scene(folder: Path) -> AsyncIterator[Scene]:
    """Open a provider and a room; `configure` connects them."""
    with identity_provider(folder / "tls") as provider:
        async with identity_room(folder / "room") as room:
            yield Scene(room, provider)


def _visit(provider: IdentityProvider, url: str) -> str:
    parts = urlsplit(url)
    context = ssl.create_default_context(cadata=provider.authority)
    connection = http.client.HTTPSConnection("127.0.0.1", parts.port, context=context, timeout=HANG_SECONDS)
    connection.request("GET", f"{parts.path}?{parts.query}")
    location = connection.getresponse().headers["Location"]
    connection.close()
    return location
