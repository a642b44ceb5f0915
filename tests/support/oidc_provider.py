"""A small OpenID provider on loopback with TLS: discovery, authorize, token, keys and userinfo endpoints.

In: the faults to inject, if any. Out: a provider with its URL and CA. Never: mocks a client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from argosy.sandbox.apiserver.tls import CertificateFiles, ensure_certificates

CLIENT, CLIENT_SECRET = "argosy", "s3cr3t of the client"


@dataclass
class IdentityProvider:
    """Signs in every user with `claims`; the other fields control the behaviour of the provider."""

    url: str
    authority: str  # PEM
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ann-id", "email": "ann@x", "groups": ["devs"]})
    changes: dict[str, Any] = field(default_factory=dict)  # changed claims of an id_token; None removes a claim
    publishes: dict[str, Any] = field(default_factory=dict)  # fields that the discovery document overrides or adds
    algorithm: str = "RS256"
    clock_ahead: float = 0.0
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    signs_with: rsa.RSAPrivateKey | None = None  # signing key, if it differs from the published key
    seen: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    user_info: Any = None  # the userinfo response; None: `claims`
    user_info_code: int = 200
    access_tokens: set[str] = field(default_factory=set)

    # -- published documents ------------------------------------------------------------------------------------

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **self.publishes,
        }

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig"}, {"kty": "oct", "k": "eA", "kid": "two"}]}

    # -- browser and client endpoints ---------------------------------------------------------------------------

    def authorize(self, parameters: dict[str, str]) -> str:
        """Issue a code; return the redirect URL."""
        assert parameters["response_type"] == "code"
        assert parameters["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = parameters
        return f"{parameters['redirect_uri']}?{urlencode({'code': code, 'state': parameters['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        request = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64decode(authorization.removeprefix("Basic ") or b"").decode()
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        if (
            request is None
            or proof.decode() != request["code_challenge"]
            or form["redirect_uri"] != request["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        if pair != f"{CLIENT}:{CLIENT_SECRET.replace(' ', '%20')}":
            return 401, {"error": "invalid_client"}
        access_token = secrets.token_urlsafe(16)
        self.access_tokens.add(access_token)
        return 200, {"access_token": access_token, "token_type": "Bearer", "id_token": self.id_token(request)}

    def user_information(self, authorization: str) -> tuple[int, Any]:
        if authorization.removeprefix("Bearer ") not in self.access_tokens:
            return 401, {"error": "invalid_token"}
        return self.user_info_code, self.claims if self.user_info is None else self.user_info

    def id_token(self, parameters: dict[str, str]) -> str:
        now = int(time.time() + self.clock_ahead)
        default_claims = {
            "iss": self.url,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": parameters["nonce"],
            **self.claims,
        }
        all_claims = {name: value for name, value in {**default_claims, **self.changes}.items() if value is not None}
        match self.algorithm:
            case "none":
                return jwt.encode(all_claims, None, algorithm="none")  # type: ignore[arg-type]
            case "HS256":  # signed with the published public key as if it were a shared secret
                form = serialization.PublicFormat.SubjectPublicKeyInfo
                return hs256(all_claims, self.key.public_key().public_bytes(serialization.Encoding.PEM, form))
            case _:
                return jwt.encode(
                    all_claims, self.signs_with or self.key, algorithm=self.algorithm, headers={"kid": "one"}
                )


def hs256(said: dict[str, Any], key: bytes) -> str:
    """Sign a token with HS256; written by hand, because PyJWT refuses a public key as the secret."""
    parts = [json.dumps(segment).encode() for segment in ({"alg": "HS256", "typ": "JWT", "kid": "one"}, said)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.new(key, text, hashlib.sha256).digest()).rstrip(b"=")
    return (text + b"." + signature).decode()


@contextmanager
def identity_provider(folder: Path) -> Iterator[IdentityProvider]:
    certificate_files: CertificateFiles = ensure_certificates(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asking)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_files.certificate, certificate_files.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider = IdentityProvider(f"https://127.0.0.1:{server.server_port}", certificate_files.authority.read_text())
    server.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


class Asking(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        provider: IdentityProvider = self.server.provider  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        provider.seen.append(parts.path)
        match parts.path:
            case "/.well-known/openid-configuration":
                self._answer(200, provider.configuration())
            case "/keys":
                self._answer(200, provider.keys())
            case "/userinfo":
                self._answer(*provider.user_information(self.headers.get("Authorization", "")))
            case "/authorize":
                parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(parameters))
                self.end_headers()
            case _:
                self._answer(404, {})

    def do_POST(self) -> None:
        provider: IdentityProvider = self.server.provider  # type: ignore[attr-defined]
        provider.seen.append(self.path)
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text).items()}
        self._answer(*provider.token(form, self.headers.get("Authorization", "")))

    def _answer(self, code: int, document: Any) -> None:
        """Send bytes unchanged, and everything else as JSON."""
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return
