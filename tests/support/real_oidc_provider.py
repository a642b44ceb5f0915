"""Runs the npm package oidc-provider, a certified OpenID provider, as a local process.

In: a folder. Out: a RealProvider that a test visits like a browser. Never: uses the network beyond this machine;
`make install` installs the package.
"""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from argosy.sandbox.apiserver.tls import ensure_certificates
from support.deadlines import HANG_SECONDS
from support.oidc_login import CALLBACK

PACKAGES = Path(__file__).parents[2] / ".venv/oidc"
SCRIPT = Path(__file__).with_name("oidc_provider_server.mjs")
CLIENT, CLIENT_SECRET = "argosy", "a secret of the client"
MAX_REDIRECTS = 10
is_installed = (PACKAGES / "node_modules/oidc-provider").is_dir() and shutil.which("node") is not None


def signing_key(kid: str) -> dict[str, Any]:
    private = rsa.generate_private_key(65537, 2048)
    return {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private)), "kid": kid, "use": "sig", "alg": "RS256"}


@dataclass
class RealProvider:
    process: subprocess.Popen[str]
    url: str
    authority: str
    settings: dict[str, Any]
    cookies: dict[str, str] = field(default_factory=dict)

    def change(self, **settings: Any) -> None:
        self.settings |= settings
        self._tell()
        self._read_until("changed")

    def _read_until(self, word: str) -> str:
        """Read lines up to one with this prefix; skip warnings that the provider prints."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise AssertionError("the provider has ended")

    def _tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.settings) + "\n")
        self.process.stdin.flush()

    def visit(self, url: str) -> str:
        """Follow redirects like a browser; return the first URL outside the provider."""
        for _ in range(MAX_REDIRECTS):
            if not url.startswith(self.url):
                return url
            code, headers, text = self.ask(url)
            assert code in (302, 303), f"{code}: {text[:500]}"
            url = urljoin(url, headers["Location"] or "")
        raise AssertionError("too many redirects")

    def ask(self, url: str) -> tuple[int, Any, str]:
        parts = urlsplit(url)
        context = ssl.create_default_context(cadata=self.authority)
        connection = http.client.HTTPSConnection("127.0.0.1", parts.port, context=context, timeout=HANG_SECONDS)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request("GET", f"{parts.path}?{parts.query}", headers={"Cookie": cookie, "Accept": "text/html"})
        response = connection.getresponse()
        for line in response.headers.get_all("Set-Cookie") or ():
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text


@contextmanager
def real_oidc_provider(folder: Path) -> Iterator[RealProvider]:
    certificate_files = ensure_certificates(folder)
    client = {"client_id": CLIENT, "client_secret": CLIENT_SECRET, "redirect_uris": [CALLBACK]}
    settings = {
        "clients": [client, {**client, "client_id": "other"}], "jwks": {"keys": [signing_key("one")]},
        "conformIdTokenClaims": True, "subject": "ann-id",
        "claims": {"email": "ann@x", "email_verified": True, "groups": ["devs"]},
    }  # fmt: skip
    command = ["node", str(SCRIPT), str(PACKAGES), str(certificate_files.certificate), str(certificate_files.key)]
    with (folder / "provider.log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
    try:
        provider = RealProvider(process, "", certificate_files.authority.read_text(), settings)
        provider._tell()
        provider.url = f"https://127.0.0.1:{provider._read_until('ready')}"
        yield provider
    finally:
        process.kill()
        process.wait()
