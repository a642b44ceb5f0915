"""Fuzzes kustomizations and patches with slightly invalid input: manifests or an error, never a crash.

Hundreds of thousands of inputs, mutated as text and as data. ARGOSY_PROOF_SEED repeats a run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from argosy.gitops.render.kustomize import build, kustomization_schema, strategic_merge
from support.file_trees import TextTree
from support.fuzzer import Found, disturbed, feed, made_up, mutated

pytestmark = pytest.mark.tier("test", "prove")

CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {l: m}}\ndata: {x: '1', y: a:b}\n"
DEPLOYMENT = b"""apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 1
  template:
    spec:
      volumes: [{name: v, configMap: {name: a}}]
      containers: [{name: c, image: 'nginx:1', env: [{name: A, value: $(V)}], ports: [{containerPort: 80}]}]
"""
FIXED = {
    "a.yaml": CONFIG_MAP,
    "d.yaml": DEPLOYMENT,
    "f.txt": b"text\n",
    "e.env": b"A=1\nB=2\n",
    "config.yaml": b"nameReference: [{kind: ConfigMap, fieldSpecs: [{path: spec/ref}]}]\n",
    "base/kustomization.yaml": b"resources: [b.yaml]\nnamePrefix: b-\n",
    "base/b.yaml": b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
    "part/kustomization.yaml": b"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -p\n",
}
KUSTOMIZATIONS = [
    b"resources: [a.yaml, d.yaml, base]\nnamePrefix: p-\nnameSuffix: -s\nnamespace: n\ncomponents: [part]\n",
    b"resources: [a.yaml, d.yaml]\nlabels: [{pairs: {a: b}, includeSelectors: true, fields: [{path: "
    b"spec/x, create: true}]}]\n"
    b"commonLabels: {c: d}\ncommonAnnotations: {e: f}\n",
    b"resources: [d.yaml]\nimages: [{name: nginx, newName: x, newTag: v2, digest: 'sha256:a'}]\n"
    b"replicas: [{name: d, count: 5}]\nsortOptions: {order: fifo}\nbuildMetadata: [originAnnotations, "
    b"managedByLabel]\n",
    b"configMapGenerator: [{name: g, literals: [a=b], files: [k=f.txt], envs: [e.env], options: {labels: {a: b}}}]\n"
    b"secretGenerator: [{name: g, type: t, literals: [a=b], behavior: create}]\n"
    b"generatorOptions: {disableNameSuffixHash: true, immutable: true}\n",
    b"resources: [a.yaml, d.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: data.y, "
    b"options: {delimiter: ':', "
    b"index: 1}}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths: "
    b"['spec.template.spec.containers.[name=c].image', "
    b"spec.new.0]\n    options: {create: true}\n    reject: [{name: z}]\n",
    b"resources: [a.yaml, d.yaml]\nvars: [{name: V, objref: {apiVersion: v1, kind: ConfigMap, name: a}, "
    b"fieldref: {fieldpath: data.x}}]\nconfigurations: [config.yaml]\n",
    b"resources: [a.yaml, d.yaml]\npatches:\n- target: {kind: Depl.*, labelSelector: 'a in (b)'}\n  "
    b"patch: |-\n    - op: add\n"
    b"      path: /spec/x\n      value: 1\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    "
    b"metadata: {name: a}\n"
    b"    data: {z: '3'}\n",
    b"resources: [d.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PrefixSuffixTransformer\n"
    b"  metadata: {name: t}\n  prefix: a-\n  fieldSpecs: [{path: metadata/name}]\n",
]  # fmt: skip
PATCHES = [
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, labels: {a: b}}\nspec:\n  replicas: 3\n  template:\n"
    b"    spec:\n      containers: [{name: c, env: [{name: A, $patch: delete}, {name: B, value: x}], ports: "
    b"[{containerPort: 80, protocol: TCP}, {containerPort: 81}]}]\n      volumes: [{$patch: replace}, {name: w}]\n",
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: null, z: '5'}\n",
    b"- op: replace\n  path: /spec/replicas\n  value: 4\n- {op: add, path: /metadata/labels, value: {a: b}}\n",
    b'[{"op": "test", "path": "/kind", "value": "Deployment"}, {"op": "copy", "from": "/spec", "path": "/spec/copy"},\n'
    b'{"op": "move", "from": "/spec/replicas", "path": "/r"}, {"op": "remove", "path": '
    b'"/spec/template/spec/volumes/0"},\n'
    b'{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "z"}}]',
    b"$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
]
USES = [
    b"resources: [a.yaml, d.yaml]\npatches: [{path: p.yaml}]\n",
    b"resources: [a.yaml, d.yaml]\npatches: [{path: p.yaml, target: {kind: Deployment}}]\n",
    b"resources: [a.yaml, d.yaml]\npatchesStrategicMerge: [p.yaml]\n",
    b"resources: [a.yaml, d.yaml]\npatchesJson6902: [{path: p.yaml, target: {kind: Deployment, name: d}}]\n",
    b"resources: [a.yaml, d.yaml]\npatches: [{path: p.yaml, target: {name: .*}, options: {allowNameChange: true}}]\n",
]


def texts(rng: random.Random, count: int, good: list[bytes]) -> Iterator[bytes]:
    data = [yaml.safe_load(text) for text in good]
    for _ in range(count):
        how = rng.random()
        if how < 0.05:
            yield made_up(rng)
        elif how < 0.5:
            yield mutated(rng, rng.choice(good), good)
        else:
            yield json.dumps(disturbed(rng, rng.choice(data)), ensure_ascii=rng.random() < 0.5).encode()


def render(text: bytes) -> None:
    build(TextTree({**FIXED, "kustomization.yaml": text}), "")


def patch(text: bytes) -> None:
    build(TextTree({**FIXED, "kustomization.yaml": USES[len(text) % len(USES)], "p.yaml": text}), "")


def test_mutated_kustomizations_are_built_or_rejected(rng: random.Random, size: Callable[..., int]) -> None:
    count = size(200_000, test=500)
    refused = feed(texts(rng, count, KUSTOMIZATIONS), render)
    assert count / 20 < refused < count * 0.95, "the inputs are too good or too bad to show anything"


def test_mutated_patches_are_applied_or_rejected(rng: random.Random, size: Callable[..., int]) -> None:
    count = size(200_000, test=500)
    refused = feed(texts(rng, count, PATCHES), patch)
    assert count / 20 < refused < count * 0.95, "the inputs are too good or too bad to show anything"


def trust_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kustomization_schema, "_TYPE_NAMES", {})


def trust_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError

    monkeypatch.setattr("argosy.gitops.render.kustomize.transformer_pipeline.set_replicas", fail)


def trust_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    def mismatch(at: str, target: Any, patch: Any) -> Exception:
        return TypeError(at)

    monkeypatch.setattr(strategic_merge, "_build_type_error", mismatch)


@pytest.mark.parametrize(
    ("seed_bug", "good", "take"),
    [(trust_types, KUSTOMIZATIONS, render), (trust_fields, KUSTOMIZATIONS, render), (trust_patches, PATCHES, patch)],
)
def test_proof_detects_a_build_that_crashes(
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    seed_bug: Callable[..., None],
    good: list[bytes],
    take: Callable[[bytes], None],
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(Found):
        feed(texts(rng, 20_000, good), take)
