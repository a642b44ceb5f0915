"""Compares YAML reading and writing with kubectl (sigs.k8s.io/yaml) and kustomize (go-yaml v3). Needs no cluster."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.kube.objects import YamlDialect, dump_yaml, read_yaml, read_yaml_documents
from support.deadlines import HANG_SECONDS

KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

HEAD = "apiVersion: example.com/v1\nkind: Probe\nmetadata: {name: a}\n"
NUMBERS = "0123456789+-_.eExXoObBaf:"
LETTERS = "abyn01 :#-?,[]{}&*!|>'\"%@`\n\t\\~.=<é\xa0😀\r/_ "


def _kubectl(folder: Path, text: str, form: str) -> str | None:
    file = folder / "probe.yaml"
    file.write_text(text)
    command = [str(KUBECTL), "annotate", "--local", "-f", str(file), "q=r", "-o", form]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    return done.stdout if done.returncode == 0 else None


def _kustomize(folder: Path, text: str) -> str | None:
    (folder / "probe.yaml").write_text(text)
    (folder / "kustomization.yaml").write_text("resources: [probe.yaml]\n")
    command = [str(KUBECTL), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    return done.stdout if done.returncode == 0 else None


def _random_scalars(count: int) -> list[str]:
    source = random.Random(20)
    texts = ("".join(source.choices(NUMBERS, k=source.randint(1, 7))) for _ in range(count))
    # A scalar that ends in a colon is a mapping, and lone dashes are structure.
    return [text for text in texts if not text.endswith(":") and text.strip("-") and text != "..."]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float) or (isinstance(one, int) and abs(one) >= 2**63):
        return not isinstance(one, str) and not isinstance(other, str) and float(one) == float(other)
    return type(one) is type(other) and bool(one == other)


def test_ten_thousand_random_scalars_are_read_as_by_kubectl(tmp_path: Path) -> None:
    scalars = _random_scalars(10_000)
    text = HEAD + "spec:\n" + "".join(f"- {scalar}\n" for scalar in scalars)
    printed = _kubectl(tmp_path, text, "json")
    assert printed is not None
    pairs = zip(scalars, json.loads(printed)["spec"], read_yaml(text)["spec"], strict=True)
    assert [
        (scalar, kubectl_value, ours) for scalar, kubectl_value, ours in pairs if not _same(kubectl_value, ours)
    ] == []


def test_random_keys_become_the_same_strings_as_in_kubectl(tmp_path: Path) -> None:
    text = HEAD + "spec:\n" + "".join(f"- {scalar}: 1\n" for scalar in _random_scalars(4_000))
    printed = _kubectl(tmp_path, text, "json")
    assert printed is not None
    assert read_yaml(text)["spec"] == json.loads(printed)["spec"]


def test_random_scalars_are_read_as_by_kustomize(tmp_path: Path) -> None:
    text = HEAD + "spec:\n" + "".join(f"- {scalar}\n" for scalar in _random_scalars(5_000))
    built = _kustomize(tmp_path, text)
    assert built is not None
    ours = read_yaml(text, dialect=YamlDialect.KUSTOMIZE)["spec"]
    pairs = zip(_random_scalars(5_000), read_yaml(built)["spec"], ours, strict=True)
    assert [
        (scalar, kustomize_value, own) for scalar, kustomize_value, own in pairs if not _same(kustomize_value, own)
    ] == []


def _random_value(source: random.Random, depth: int) -> Any:
    chance = source.random()
    if depth == 0 or chance < 0.3:
        words = "word " * source.randint(1, 40)
        return source.choice(["a", "x: y", 1, None, True, 1.5, 1e20, "", [], {}, "a\nb\n", words])
    if chance < 0.6:
        return [_random_value(source, depth - 1) for _ in range(source.randint(0, 4))]
    names = [source.choice("abcdefghij") * source.randint(1, 40) for _ in range(source.randint(0, 4))]
    return {name: _random_value(source, depth - 1) for name in names}


@pytest.mark.parametrize("count", [500, pytest.param(2_000, marks=pytest.mark.tier("all"))])
def test_large_object_is_written_exactly_as_by_kubectl(tmp_path: Path, count: int) -> None:
    source = random.Random(21)
    words = ["word", "yes", "12", "a:", "#x", "it's", "é", "a  b", "\x01"]
    strings = _random_scalars(count)
    strings += ["".join(source.choices(LETTERS, k=source.randint(0, 8))) for _ in range(2 * count)]
    strings += [" ".join(source.choices(words, k=source.randint(10, 60))) + end for end in ["", "\n", " "] * 150]
    numbers = [source.uniform(-1, 1) * 10 ** source.randint(-30, 30) for _ in range(300)]
    keys = {"".join(source.choices("ab-_./:é#A", k=source.randint(0, 9))): "v" for _ in range(500)}
    keys |= {"k" * 130: {"a": [1, [2]]}, "é" * 70: [1, {"b": 2}], "a\nb": "x", "m " * 100: "word " * 30}
    pairs = [{f"a{source.randint(0, 200)}": 1, f"a{source.randint(0, 200)}x": 2} for _ in range(300)]
    spec = {
        "list": strings + numbers,
        "map": {f"k{index}": text for index, text in enumerate(strings)},
        "keys": keys,
        "pairs": pairs,
        "nested": [_random_value(source, 6) for _ in range(200)],
    }
    metadata = {"annotations": {"q": "r"}, "name": "a"}
    manifest = {"apiVersion": "example.com/v1", "kind": "Probe", "metadata": metadata, "spec": spec}
    printed = _kubectl(tmp_path, json.dumps(manifest), "yaml")
    assert printed is not None
    assert dump_yaml(manifest).split("\n") == printed.split("\n")


def test_kubectl_reads_written_yaml_back_unchanged(tmp_path: Path) -> None:
    source = random.Random(22)
    letters = LETTERS + "\x00\x07\x1b\x7f\x85\u2028\u2029\ufeff\ufffe"
    strings = _random_scalars(1_000) + ["".join(source.choices(letters, k=source.randint(0, 9))) for _ in range(3_000)]
    spec = {"list": strings, "keys": [{text: text} for text in strings], "nested": _random_value(source, 6)}
    manifest = {"apiVersion": "example.com/v1", "kind": "Probe", "metadata": {"name": "a"}, "spec": spec}
    printed = _kubectl(tmp_path, dump_yaml(manifest), "json")
    assert printed is not None
    assert json.loads(printed)["spec"] == spec


STRUCTURES = [
    "s: {a: 1, a: 2}",
    "s: {1: 1, 2.5: 2, y: 3}",
    "s: {~: 1}",
    "s: ! 12",
    "s: !!int '3'",
    "s: !!int abc",
    "s: !!float 3",
    "s: !!binary aGVsbG8=",
    "s: !!timestamp x",
    "s: !foo {a: !bar 12}",
    "s: .inf",
    "s: &a [*a]",
    "s: [*zz]",
    "b: &b {x: 1, z: 2}\ns: {<<: *b, x: 3}",
    "b: &b {x: 1, z: 2}\ns: {x: 3, <<: *b}",
    "b: &b {x: 1}\nc: &c {x: 2, z: 1}\ns: {<<: [*b, *c]}",
    "b: &b [{a: 1}]\ns: {<<: *b}",
    "s: {<<: 1}",
    "s: {<<: {a: 1}, <<: {b: 2}}",
    "b: &b 1.5\ns: {*b : 2}",
    "s: 2020-01-01T10:00:00+02:00",
    "s: {2020-01-01: 1}",
    "s: [--listen=:8080, =, 22:22, a#b]",
    "s: {a, b: , c: ~}",
    "s: >\n  a\n    b\n  c\n\n  d\n",
    "s: >+\n  a\n    b\n\n",
    "s: >2\n    b\n  c\n  d\n\n  e\n",
    "s: |\n  a\n\n  b",
    "s: a: b",
    "s: @a",
    "1: 2",
]


def _structure(number: int) -> str:
    """A structure in an object that is named after it, so that one process can read all of them."""
    return f"{HEAD.replace('name: a', f'name: case-{number}')}{STRUCTURES[number]}\n"


def _ours(profile: YamlDialect) -> list[Any]:
    """Our result for each structure; None if we refuse it."""
    documents: list[Any] = []
    for number in range(len(STRUCTURES)):
        try:
            documents.append(read_yaml(_structure(number), dialect=profile))
        except ManifestError:
            documents.append(None)
    return documents


def _differences(ours: list[Any], reference: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    pairs = [(text, our, reference.get(f"case-{number}")) for number, (text, our) in enumerate(zip(STRUCTURES, ours))]
    return [(text, our, their) for text, our, their in pairs if our != their]


def test_structures_are_read_or_refused_as_by_kubectl(tmp_path: Path) -> None:
    for number in range(len(STRUCTURES)):
        (tmp_path / f"{number}.yaml").write_text(_structure(number))
    command = [str(KUBECTL), "annotate", "--local", "-f", str(tmp_path), "q=r", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    kubectl_manifests, left, decoder = {}, done.stdout.lstrip(), json.JSONDecoder()
    while left:
        manifest, end = decoder.raw_decode(left)
        del manifest["metadata"]["annotations"]
        kubectl_manifests[manifest["metadata"]["name"]] = manifest
        left = left[end:].lstrip()
    assert kubectl_manifests and _differences(_ours(YamlDialect.KUBERNETES), kubectl_manifests) == []


def test_structures_are_read_or_refused_as_by_kustomize(tmp_path: Path) -> None:
    ours = _ours(YamlDialect.KUSTOMIZE)
    taken = [number for number, our in enumerate(ours) if our is not None]
    built = _kustomize(tmp_path, "---\n".join(map(_structure, taken)))
    assert built is not None, "it refuses one that we read"
    kustomize_manifests = {manifest["metadata"]["name"]: manifest for manifest in read_yaml_documents(built)}
    assert _differences(ours, kustomize_manifests) == []


REFUSED = [number for number, our in enumerate(_ours(YamlDialect.KUSTOMIZE)) if our is None]


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=pytest.mark.tier("all") if at > 2 else ()) for at, number in enumerate(REFUSED)],
    ids=lambda number: STRUCTURES[number],
)
def test_structures_that_we_refuse_are_refused_by_kustomize(number: int, tmp_path: Path) -> None:
    assert _kustomize(tmp_path, _structure(number)) is None
