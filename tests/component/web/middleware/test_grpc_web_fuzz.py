"""Almost valid calls against a real installation: each ends with a status, and none with an internal error."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.grpc.service_table import list_methods
from support.grpc_native import call_native
from support.grpc_web import Reply, ask, ask_raw, encode_request, frame
from support.grpc_world import APPS, grpc_world
from support.identities import CHEAP
from support.protobuf_mutations import JUNK, fill
from support.rest_api import World
from support.sent_files import build_documents, pack

PASSWORD = "correct horse battery"
RBAC = "g, ann, role:admin\ng, dan, role:readonly\n"
# OK, InvalidArgument, DeadlineExceeded, NotFound, PermissionDenied, ResourceExhausted, FailedPrecondition, Aborted,
# Unimplemented, Unavailable, Unauthenticated: every status but Unknown and Internal, which are faults of the server
EXPECTED = {0, 3, 4, 5, 7, 8, 9, 10, 12, 14, 16}
# argo: grpc-go gives Internal for a malformed message, too
MALFORMED = ("grpc: ", "unexpected EOF", "cardinality violation")
UNCODED = "no such key"  # argo: its server returns some errors without a code, which grpc-go sends as Unknown
FILES = f"{APPS}/GetManifestsWithFiles"
LOGIN = "/session.SessionService/Create"
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    def build_authenticator(cluster: Any, view: Any) -> Authenticator:
        return Authenticator(cluster, view, "argocd", hashing=PasswordHasher(CHEAP), min_login_seconds=0.0)

    async with grpc_world(tmp_path_factory, "text", whom=build_authenticator) as opened:  # the name that `fill` gives
        accounts = {f"accounts.{name}": "apiKey, login" for name in ("ann", "dan")}
        await opened.cluster.patch(ResourceKey("", "ConfigMap", "argocd", "argocd-cm"), {"data": accounts})
        await opened.make("ConfigMap", "argocd-rbac-cm", data={"policy.csv": RBAC})
        authenticator = opened.site.authenticator
        await authenticator.prepare()
        for name in ("ann", "dan"):
            await authenticator.account_store.set_password(name, PASSWORD)
        await opened.seen("", "ConfigMap", "argocd-rbac-cm")
        await opened.until(lambda: all(account.password_hash for account in authenticator.state.accounts.values()))
        yield opened


async def log_in(world: World, name: str, password: str = PASSWORD) -> Reply:
    return await ask(world.client, "", LOGIN, {"username": name, "password": password})


async def send(world: World, path: str, body: bytes, token: str) -> Reply:
    return await ask_raw(world.client, path, body, token=token, grpc_timeout="3S")


def is_expected(reply: Reply) -> bool:
    prefixes = {13: MALFORMED, 2: (UNCODED,)}.get(reply.status, ())
    return reply.status in EXPECTED or reply.message.startswith(prefixes)


async def test_a_login_gives_a_token_that_is_accepted_until_the_logout(world: World) -> None:
    token = (await log_in(world, "ann")).document()["token"]
    info = (await send(world, "/session.SessionService/GetUserInfo", frame(b""), token)).document()
    assert (info["loggedIn"], info["username"]) == (True, "ann")
    assert (await send(world, "/session.SessionService/Delete", frame(b""), token)).status == 0
    refused = await send(world, "/application.ApplicationService/List", frame(b""), token)
    assert (refused.status, refused.message) == (16, "invalid session: token is revoked, please re-login")  # argo


async def test_a_wrong_password_has_the_message_of_argo_cd(world: World) -> None:
    reply = await log_in(world, "ann", "wrong")
    assert (reply.status, reply.message) == (16, "Invalid username or password")


@pytest.mark.parametrize("name", ["ann", "dan"])
async def test_every_method_ends_with_a_status(world: World, name: str) -> None:
    source, token = Random(7), ""
    for path, method in sorted(list_methods().items()):
        full = encode_request(path, fill(method.request))
        for mutation in range(3):
            data = bytearray(full if mutation else b"")
            if mutation == 2:
                position = source.randint(0, len(data))
                data[position : position + 2] = source.choice(JUNK)[:3000]
            token = (await log_in(world, name)).document()["token"] if mutation == 0 else token
            reply = await send(world, path, frame(bytes(data)), token)
            assert (reply.http_code, is_expected(reply)) == (200, True), (path, mutation, reply)


async def test_random_bodies_end_with_a_status(world: World) -> None:
    source, methods = Random(11), sorted(list_methods())
    token = (await log_in(world, "dan")).document()["token"]
    for _ in range(200):
        body = source.randbytes(source.randint(0, 60))
        if source.random() < 0.7:
            body = frame(body)
        path = source.choice(methods)
        reply = await send(world, path, body, source.choice([token, ""]))
        assert is_expected(reply), (path, body, reply)


async def test_random_bodies_end_with_a_status_over_http_2(world: World) -> None:
    source, methods = Random(13), [*sorted(list_methods()), *[FILES] * 50]
    token = (await log_in(world, "dan")).document()["token"]
    for _ in range(60):
        body = source.randbytes(source.randint(0, 60))
        if source.random() < 0.7:
            body = frame(body)
        path, sent = source.choice(methods), {"token": source.choice([token, ""]), "grpc-timeout": "3S"}
        reply = await asyncio.to_thread(call_native, world.client.port, path, body, sent)
        assert is_expected(reply), (path, body, reply)


async def test_almost_valid_archives_end_with_a_status(world: World) -> None:
    source, token = Random(17), (await log_in(world, "dan")).document()["token"]
    plain = gzip.decompress(
        pack({"app/a.yaml": "kind: ConfigMap\n", "app/kustomization.yaml": "resources: [a.yaml]\n"})
    )
    for number in range(40):
        mutated = bytearray(plain)
        for _ in range(source.randint(1, 3)):
            mutated[source.randrange(len(mutated))] = source.randrange(256)
        archive = gzip.compress(bytes(mutated), 1) if number % 3 else bytes(mutated)
        documents = build_documents(archive, "text", size=source.randint(1, 3000))
        body = b"".join(frame(encode_request(FILES, document)) for document in documents)
        reply = await asyncio.to_thread(call_native, world.client.port, FILES, body, {"token": token})
        assert is_expected(reply), (number, reply)
