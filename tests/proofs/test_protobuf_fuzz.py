"""Fuzz Protobuf request bodies: each gives an object or a Status 400, never a crash, a hang or excessive memory.

ARGOSY_PROOF_SEED repeats a run.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson
import pytest

from argosy.errors import ClusterError
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema import protobuf_reader
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type
from argosy.kube.schema.builtin_type_json_codec import decode
from argosy.sandbox.apiserver.http.content_negotiation import PROTOBUF_MEDIA_TYPE
from argosy.sandbox.apiserver.http.request_bodies import read_object
from support.fuzzer import Found, feed
from support.protobuf_mutations import mutated_messages, real_messages

pytestmark = pytest.mark.tier("test", "prove")


def take(body: bytes) -> None:
    """Read a body as the API server does: an accepted object can be stored and sent, a rejected body is a 400."""
    try:
        value = read_object(body, PROTOBUF_MEDIA_TYPE, "Object", strict=True).value
    except ClusterError as error:
        if error.code != 400:
            raise AssertionError(f"refused with {error.code}") from error
        orjson.dumps(error.message)  # the message must be serializable to be sent
        raise
    orjson.dumps(value)
    type_ = find_builtin_type(*split_api_version(value["apiVersion"]), value["kind"])
    assert type_ is not None
    decode(type_, value, kind=value["kind"], api_version=value["apiVersion"])


def test_malformed_protobuf_is_decoded_or_rejected_with_400(rng: random.Random, size: Callable[..., int]) -> None:
    count = size(1_000_000, test=1_500)
    refused = feed(mutated_messages(rng, real_messages(), count), take)
    assert count / 10 < refused < count * 9 / 10, "the inputs are too good or too bad to show anything"


def trust_wire_types(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        protobuf_reader.MessageReader,
        "read_packed_list",
        lambda self, manifest, entry, wire, value: manifest.update(x=value),
    )


def trust_raw_json(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(protobuf_reader._CONVERTERS, "Raw", lambda reading, value, depth: orjson.loads(value or b"null"))
    protobuf_reader._wire_fields.cache_clear()


@pytest.mark.parametrize("seed_bug", [trust_wire_types, trust_raw_json])
def test_fuzzer_detects_seeded_reader_bugs(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    seed_bug(monkeypatch)
    try:
        with pytest.raises(Found):
            feed(mutated_messages(rng, real_messages(), 30_000), take)
    finally:
        protobuf_reader._wire_fields.cache_clear()
