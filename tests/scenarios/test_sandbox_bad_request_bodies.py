"""Request bodies that are too large, too deep, malicious or invalid get a Status with the right code."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from support.clusters import Answer, Sandbox, configmap
from support.http_attacks import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    PROTOBUF,
    STRATEGIC_PATCH,
    YAML,
    alias_bomb,
    broken_protobufs,
    many_keys,
    merge_bomb,
    nested,
)

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MEGABYTE = 1 << 20

WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


@pytest.fixture(scope="module")
def furnished(shared: Sandbox) -> Sandbox:
    assert shared.request("POST", CONFIGMAPS, configmap("base", {"a": "1"})).code == 201
    assert shared.request("POST", DEPLOYMENTS, WEB).code == 201
    return shared


@pytest.fixture(autouse=True)
def goes_on(furnished: Sandbox) -> Iterator[None]:
    """After every test: the server answers, its log has no new lines, and its memory is bounded."""
    already = len(furnished.log())
    yield
    assert furnished.request("GET", f"{CONFIGMAPS}/base").json()["data"] == {"a": "1"}
    assert furnished.log()[already:] == ""
    assert furnished.memory() < 400 * MEGABYTE


def refused(answer: Answer, *codes: int) -> dict[str, Any]:
    status: dict[str, Any] = answer.json()
    assert answer.code in codes, status
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.code)
    assert status["message"]
    return status


def send(server: Sandbox, method: str, path: str, body: bytes, media: str, *codes: int) -> dict[str, Any]:
    return refused(server.request(method, path, body, media), *codes)


# -- size and depth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("media", [JSON, YAML, PROTOBUF])
def test_body_over_3_mib_returns_413(furnished: Sandbox, media: str) -> None:
    status = send(furnished, "POST", CONFIGMAPS, b"x" * (3 * MEGABYTE + 1), media, 413)
    assert status["reason"] == "RequestEntityTooLarge"
    assert status["message"] == "Request entity too large: limit is 3145728"


def test_chunked_body_over_3_mib_returns_413(furnished: Sandbox) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(4 * 16):
            yield b"x" * (MEGABYTE // 16)

    connection = furnished.endpoint.connection()
    headers = {"Authorization": f"Bearer {furnished.endpoint.token}", "Content-Type": JSON}
    connection.request("POST", CONFIGMAPS, chunks(), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert json.loads(answer.read())["code"] == answer.status == 413
    connection.close()


def test_body_of_exactly_3_mib_is_parsed(furnished: Sandbox) -> None:
    body = json.dumps(configmap("large", {"a": ""})).encode()
    body = body.replace(b'"a": ""', b'"a": "' + b"x" * (3 * MEGABYTE - len(body)) + b'"')
    assert len(body) == 3 * MEGABYTE
    status = send(furnished, "POST", CONFIGMAPS, body, JSON, 422)
    assert "may not be more than 1048576 bytes" in status["message"]


DEEP = {
    "lists": nested(100_000),
    "objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "unclosed": b"[" * 1_000_000,
    "within": b'{"metadata":{"name":"x"},"data":' + nested(100_000) + b"}",
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("media", [JSON, YAML])
def test_nesting_of_100_000_levels_is_refused_in_json_and_yaml(furnished: Sandbox, body: bytes, media: str) -> None:
    send(furnished, "POST", CONFIGMAPS, body, media, 400)


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("media", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY])
def test_nesting_of_100_000_levels_is_refused_in_every_patch_type(furnished: Sandbox, body: bytes, media: str) -> None:
    query = "?fieldManager=m" if media == APPLY else ""
    send(furnished, "PATCH", f"{CONFIGMAPS}/base{query}", body, media, 400, 422)


@pytest.mark.parametrize("body", [b"- " * 100_000, b"? " * 100_000, b"{a: " * 100_000], ids=["- ", "? ", "{a: "])
def test_deep_nesting_in_yaml_only_syntax_is_refused(furnished: Sandbox, body: bytes) -> None:
    send(furnished, "POST", CONFIGMAPS, body, YAML, 400)


@pytest.mark.parametrize("bomb", [alias_bomb(), merge_bomb()], ids=["aliases", "merge keys"])
def test_yaml_alias_and_merge_bombs_are_refused_with_bounded_memory(furnished: Sandbox, bomb: bytes) -> None:
    before = furnished.memory()
    send(furnished, "POST", CONFIGMAPS, bomb, YAML, 400)
    assert "alias" in send(furnished, "PATCH", f"{CONFIGMAPS}/b?fieldManager=m", bomb, APPLY, 400)["message"]
    assert furnished.memory() - before < 256 * MEGABYTE, "without a limit it takes more"


LARGE = {
    "many keys": (JSON, many_keys(100_000), 422),
    "too many values": (JSON, many_keys(200_000), 400),
    "a key many times": (JSON, b'{"metadata":{"name":""}' + b',"data":{"b":"1"}' * 100_000 + b"}", 422),
    "many documents": (YAML, b"---\na: 1\n" * 300_000, 400),
    "many anchors": (YAML, b"\n".join(b"k%d: &a%d 1" % (n, n) for n in range(60_000)), 422),
    "one long word": (YAML, b"a: " + b"x" * (2 * MEGABYTE), 422),
    "an open quote": (YAML, b"a: '" + b"''" * MEGABYTE, 400),
    "comments": (YAML, b"#\n" * MEGABYTE, 400),
    "a long name": (JSON, b'{"metadata":{"name":"' + b"a" * 2 * MEGABYTE + b'"}}', 422),
}


@pytest.mark.parametrize(("media", "body", "code"), LARGE.values(), ids=LARGE)
@pytest.mark.tier("all")
def test_large_invalid_body_is_refused(furnished: Sandbox, media: str, body: bytes, code: int) -> None:
    send(furnished, "POST", CONFIGMAPS, body, media, code)


# -- text --------------------------------------------------------------------------------------------------------

TEXTS = {
    "nothing": (b"", 400),
    "null": (b"null", 400),
    "a list": (b"[]", 400),
    "a word": (b'"x"', 400),
    "a number": (b"5", 400),
    "half an object": (b'{"metadata":', 400),
    "two objects": (b"{}{}", 400),
    "NUL after the end": (b'{"metadata":{"name":"x"}}\x00', 400),
    "NUL in a name": (b'{"metadata":{"name":"x\\u0000"}}', 422),
    "no UTF-8": (b'{"metadata":{"name":"x\xff"}}', 422),
    "half a surrogate": (b'{"metadata":{"name":"\\ud800"}}', 422),
    "NaN": (b'{"metadata":{"name":"x"},"immutable":NaN}', 400),
    "another kind": (b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}', 400),
    "another version": (b'{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x"}}', 400),
    "a kind that is a number": (b'{"kind":5,"apiVersion":[],"metadata":{"name":"x"}}', 400),
    "metadata that is a list": (b'{"metadata":[]}', 400),
    "a name that is an object": (b'{"metadata":{"name":{"a":1}}}', 400),
    "labels that are a list": (b'{"metadata":{"name":"x","labels":[1]}}', 400),
    "owners that are none": (b'{"metadata":{"name":"x","ownerReferences":[1,null,"x"]}}', 400),
    "managers that are none": (b'{"metadata":{"name":"x","managedFields":[{"manager":5,"fieldsV1":[]}]}}', 400),
    "a time that is none": (b'{"metadata":{"name":"x","creationTimestamp":"yesterday"}}', 400),
    "data that are numbers": (b'{"metadata":{"name":"x"},"data":{"a":1}}', 400),
}


@pytest.mark.parametrize(("body", "code"), TEXTS.values(), ids=TEXTS)
def test_body_that_is_not_a_valid_configmap_is_refused(furnished: Sandbox, body: bytes, code: int) -> None:
    send(furnished, "POST", CONFIGMAPS, body, JSON, code)
    if body:
        send(furnished, "PUT", f"{CONFIGMAPS}/base", body, JSON, 400, 409, 422)


def test_duplicate_key_is_refused_by_strict_validation_and_otherwise_a_warning(furnished: Sandbox) -> None:
    body = b'{"metadata":{"name":"twice"},"data":{"a":"1"},"data":{"b":"1"}}'
    status = send(furnished, "POST", f"{CONFIGMAPS}?fieldValidation=Strict", body, JSON, 400)
    assert 'strict decoding error: duplicate field "data"' in status["message"]
    answer = furnished.request("POST", CONFIGMAPS, body)
    assert answer.code == 201 and answer.headers["warning"] == '299 - "duplicate field \\"data\\""'


NUMBERS = [b"9" * 100_000, b"9" * 4000, b"9" * 20, b"-9" + b"9" * 20, b"1e999999", b"1.5", b"0x10", b"1_000", b"--1"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12].decode())
def test_replicas_that_are_not_an_int32_are_refused(furnished: Sandbox, number: bytes) -> None:
    body = b'{"metadata":{"name":"x"},"spec":{"replicas":' + number + b"}}"
    send(furnished, "POST", DEPLOYMENTS, body, JSON, 400)


@pytest.mark.parametrize("number", [b".nan", b".inf", b"0x" + b"f" * 100_000, b"1" + b":59" * 10_000])
def test_yaml_only_number_is_refused_for_replicas(furnished: Sandbox, number: bytes) -> None:
    send(furnished, "POST", DEPLOYMENTS, b"metadata: {name: x}\nspec:\n  replicas: " + number, YAML, 400)


def test_python_yaml_tags_are_refused_and_execute_nothing(furnished: Sandbox, tmp_path: Any) -> None:
    for tag in (f"!!python/object/apply:os.mkdir ['{tmp_path}/made']", f"!!python/name:os.mkdir {tmp_path}"):
        send(furnished, "POST", CONFIGMAPS, b"metadata: " + tag.encode(), YAML, 400)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("unknown", ["a\nb", "a\r\nX-Injected: 1", "ü", "\u2028", "x" * MEGABYTE, '"\\'])
def test_unknown_field_name_cannot_break_the_warning_header(furnished: Sandbox, unknown: str) -> None:
    body = {**configmap("x"), unknown: 1}
    answer = furnished.request("POST", f"{CONFIGMAPS}?dryRun=All", body)
    assert answer.code == 201 and "x-injected" not in answer.headers
    assert len(answer.headers.get("warning", "")) < 5000


def test_broken_protobuf_is_refused(furnished: Sandbox) -> None:
    rng = random.Random(20)
    for body in broken_protobufs(rng):
        answer = furnished.request("POST", f"{CONFIGMAPS}?dryRun=All", body, PROTOBUF)
        if answer.code != 201:  # with a changed byte in a value it is still a ConfigMap
            refused(answer, 400, 422)


@pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/json-patch+json", "a/b/c", "json"])
def test_unsupported_media_type_returns_415(furnished: Sandbox, media: str) -> None:
    send(furnished, "POST", CONFIGMAPS, b"{}", media, 415)
    send(furnished, "PATCH", f"{CONFIGMAPS}/base", b"{}", "application/json", 415)
