"""YAML scalars whose source text matters in kustomize: dates, numbers, nulls and blanks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.render.kustomize import build
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree
from support.paths import VENV

KUBECTL = VENV / "kubectl-1.32" / "kubectl"
needs_kubectl = pytest.mark.skipif(not KUBECTL.is_file(), reason="kubectl 1.32 is not here: make install")
HEAD = "apiVersion: v1\nkind: ConfigMap\n"
PLAIN = f"{HEAD}metadata: {{name: a, labels: {{q: w, r: s}}, annotations: {{c: d, e: f}}}}\n"
OWN = "resources: [a.yaml]\n"


def patches(text: str) -> str:
    lines = "".join(f"    {line}\n" for line in f"{HEAD}{text}".splitlines())
    return f"{OWN}patches:\n- patch: |-\n{lines}"


def merges(text: str) -> str:
    lines = "".join(f"  {line}\n" for line in f"{HEAD}{text}".splitlines())
    return f"{OWN}patchesStrategicMerge:\n- |-\n{lines}"


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a date in an annotation is as it is written": (
        f"{HEAD}metadata: {{name: a, annotations: {{d: 2020-01-01, v: 1.50, t: True, q: '2020-01-01'}}}}\n",
        OWN,
        {"metadata": {"name": "a", "annotations": {"d": "2020-01-01", "v": "1.50", "t": "True", "q": "2020-01-01"}}},
    ),
    "nulls that are written out stay in flow maps, blanks go": (
        f"{HEAD}metadata: {{name: a}}\ndata: {{x: , y: ~, z: null, m: {{n: }}, l: [{{b: }}]}}\n",
        patches("metadata: {name: a}\ndata: {k: v}\n"),
        {"metadata": {"name": "a"}, "data": {"y": None, "z": None, "m": {}, "l": [{"b": ""}], "k": "v"}},
    ),
    "blanks stay where nothing is patched": (
        f"{HEAD}metadata: {{name: a, labels: }}\ndata: {{x: , w: {{v}}}}\n",
        OWN,
        {"metadata": {"name": "a", "labels": ""}, "data": {"x": "", "w": {"v": ""}}},
    ),
    "a blank in a patch deletes": (
        f"{HEAD}metadata: {{name: a}}\ndata: {{x: one, w: two}}\n",
        patches("metadata: {name: a}\ndata: {x: , q: {r: }}\n"),
        {"metadata": {"name": "a"}, "data": {"w": "two", "q": {}}},
    ),
    "annotations of a patch are as they are written, labels are values": (
        PLAIN,
        patches("metadata: {name: a, labels: {l: 1.50}, annotations: {v: 1.50, d: 2020-01-01, c: ~, x: }}\n"),
        {
            "metadata": {
                "name": "a",
                "labels": {"q": "w", "r": "s", "l": 1.5},
                "annotations": {"e": "f", "v": "1.50", "d": "2020-01-01"},
            }
        },
    ),
    "labels of an old patch are as they are written too, and nulls delete nothing": (
        PLAIN,
        merges("metadata:\n  name: a\n  labels: {q: null, l: 0x1F}\n  annotations:\n    c:\n    e: ~\n    v: 1.50\n"),
        {
            "metadata": {
                "name": "a",
                "labels": {"q": "null", "r": "s", "l": "0x1F"},
                "annotations": {"c": "", "e": "~", "v": "1.50"},
            }
        },
    ),
    "an old patch without labels leaves them": (
        PLAIN,
        merges("metadata:\n  name: a\n  labels:\n  annotations: null\n"),
        {"metadata": {"name": "a", "labels": {"q": "w", "r": "s"}, "annotations": {"c": "d", "e": "f"}}},
    ),
    "an old patch may be one line": (
        PLAIN,
        f"{OWN}patchesStrategicMerge:\n- '{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}},data: {{k: v}}}}'\n",
        {
            "metadata": {"name": "a", "labels": {"q": "w", "r": "s"}, "annotations": {"c": "d", "e": "f"}},
            "data": {"k": "v"},
        },
    ),
}


@pytest.mark.parametrize(("resource", "kustomization", "expected"), CASES.values(), ids=CASES.keys())
def test_scalars_keep_their_source_text_where_kustomize_does(
    resource: str, kustomization: str, expected: dict[str, Any]
) -> None:
    manifests = build(TextTree({"a.yaml": resource, "kustomization.yaml": kustomization}), "")
    assert manifests == [{"apiVersion": "v1", "kind": "ConfigMap", **expected}]


@needs_kubectl
@pytest.mark.parametrize(
    ("resource", "kustomization", "expected"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.tier("all") if number > 1 else ())
        for number, (name, case) in enumerate(CASES.items())
    ],
)
def test_kubectl_scalars_match(resource: str, kustomization: str, expected: dict[str, Any], tmp_path: Path) -> None:
    manifests = by_kubectl({"a.yaml": resource, "kustomization.yaml": kustomization}, tmp_path)
    assert manifests == [{"apiVersion": "v1", "kind": "ConfigMap", **expected}]


def by_kubectl(files: dict[str, str], folder: Path) -> list[Any]:
    for path, text in files.items():
        (folder / path).write_text(text)
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, check=True)
    return read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE)


def pod(fields: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: c, {fields}}}]}}\n"


REPEATED = [
    ("env: [{name: A, value: '1'}, {name: B}, {name: A, value: '2'}]", "image: x", "A=2 B"),
    ("env: [{name: A, value: '1'}, {name: B}, {name: A, value: '2'}]", "env: [{name: A, value: '9'}]", "A=2 B"),
    ("env: [{name: A}, {name: B, value: '1'}, {name: B, value: '2'}]", "env: [{name: B, value: '9'}]", "B=2 A"),
    ("env: [{name: A, value: '1'}, {name: A, value: '2'}]", "env: [{name: A, $patch: delete}]", ""),
    ("env: [{name: A, value: '0'}]", "env: [{name: A, value: '1'}, {name: A, value: '2'}]", "A=1"),
    ("image: x", "env: [{name: A, value: '1'}, {name: A, value: '2'}]", "A=2"),
]


def repeated(own: str, patch: str) -> dict[str, str]:
    return {"a.yaml": pod(own), "p.yaml": pod(patch), "kustomization.yaml": f"{OWN}patches: [{{path: p.yaml}}]\n"}


@pytest.mark.parametrize(("own", "patch", "expected"), REPEATED)
def test_patch_keeps_one_list_element_per_merge_key(own: str, patch: str, expected: str) -> None:
    [manifest] = build(TextTree(repeated(own, patch)), "")
    env = manifest["spec"]["containers"][0]["env"]
    assert (
        " ".join(variable["name"] + (f"={variable['value']}" if "value" in variable else "") for variable in env)
        == expected
    )


@needs_kubectl
@pytest.mark.parametrize(
    ("own", "patch"),
    [
        pytest.param(own, patch, marks=pytest.mark.tier("all") if number else ())
        for number, (own, patch, _) in enumerate(REPEATED)
    ],
)
def test_kubectl_keeps_the_same_list_element_per_merge_key(own: str, patch: str, tmp_path: Path) -> None:
    files = repeated(own, patch)
    assert by_kubectl(files, tmp_path) == build(TextTree(files), "")
