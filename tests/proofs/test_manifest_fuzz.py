"""Fuzzes the YAML reader with slightly invalid input: a value or an error, never a crash, a hang or excessive memory.

ARGOSY_PROOF_SEED repeats a run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.kube.objects import YamlDialect, dump_yaml_documents, read_yaml_documents, yaml_scalars
from argosy.kube.objects.kubernetes_yaml_parser import _DocumentReader
from support.fuzzer import Found, feed, made_up, mutated, peak_memory
from support.kustomize.scalars import EXTRA, SCALARS

pytestmark = pytest.mark.tier("test", "prove")

GOOD = [
    *(text.encode() for text in EXTRA),
    *(f"a: {scalar}\nb: [{scalar.splitlines()[0] if scalar else ''}]\n".encode() for scalar in SCALARS),
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: 'y'}}\ndata:\n  k: |\n    text\n",
    b'{"apiVersion": "v1", "kind": "List", "items": [{"a": 1, "b": [true, null, "\\u00e9", 1e3]}]}',
    b"- &x {a: &y [1, 2]}\n- *x\n- *y\n- {<<: *x, b: *y}\n",
    b"a:\n- b\n-  c: d\n   e: >\n     folded\n     text\n\n     more\n-\n  - f\n---\ng\n...\n--- !!str 5\n",
    b"? [complex, key]\n: x\n? a\n: b\n",
    b"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
    b"%YAML 1.2\n%TAG ! tag:x,2000:\n---\n!a b: !<tag:yaml.org,2002:int> 5\n",
]


def texts(rng: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield made_up(rng) if rng.random() < 0.2 else mutated(rng, rng.choice(GOOD), GOOD)


def plain(value: Any) -> bool:
    """True if the value consists of JSON data only."""
    if type(value) is dict:
        return all(type(key) is str and plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(plain, value))
    return value is None or type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))


def take(text: bytes) -> None:
    for profile in YamlDialect:
        documents = read_yaml_documents(text, dialect=profile)
        assert plain(documents)
    if len(text) % 8 == 0:
        assert read_yaml_documents(dump_yaml_documents(documents), dialect=YamlDialect.KUBERNETES) == documents


def test_mutated_yaml_is_read_or_rejected(rng: random.Random, size: Callable[[int], int]) -> None:
    count = size(200_000)
    refused = feed(texts(rng, count), take)
    assert count / 10 < refused < count, "the inputs are too good or too bad to show anything"


def forget_unknown_aliases(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_DocumentReader, "expand_alias", lambda self, event: self.anchors[event.anchor])


def trust_dates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(yaml_scalars, "_MONTH_DAYS", ())


def never_finish(patch: pytest.MonkeyPatch) -> None:
    def merge(self: Any, *_: Any) -> None:
        while True:
            pass

    patch.setattr(_DocumentReader, "read_merge", merge)
    patch.setattr("support.fuzzer.SECONDS", 0.2)


@pytest.mark.parametrize("seed_bug", [forget_unknown_aliases, trust_dates, never_finish])
def test_proof_detects_a_reader_that_crashes_or_hangs(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None]
) -> None:
    for cache_name in ("_SCALAR_CACHES",):
        monkeypatch.setattr(
            f"argosy.kube.objects.kubernetes_yaml_parser.{cache_name}", {profile: {} for profile in YamlDialect}
        )
    seed_bug(monkeypatch)
    with pytest.raises(Found):
        feed(texts(rng, 50_000), take)


@pytest.mark.skipif(not peak_memory(), reason="this system does not say how much memory a process had at most")
@pytest.mark.parametrize("is_kept", [True, False])
def test_proof_detects_an_input_that_takes_too_much_memory(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """With retained and with released memory; the earlier memory peak of the process must not hide it."""
    monkeypatch.setattr("support.fuzzer.MEGABYTES", 32)
    earlier, retained = bytearray(512 << 20), []
    del earlier

    def take(data: bytes) -> None:
        memory = bytearray(256 << 20)  # meanwhile the system may reclaim other pages of this process
        retained.append(memory if is_kept else data)

    feed(texts(rng, 3), retained.append)
    with pytest.raises(Found, match="more than 32 MB within the first 1 inputs"):
        feed(texts(rng, 1), take)
