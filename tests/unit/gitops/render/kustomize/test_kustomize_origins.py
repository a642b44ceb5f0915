"""Each field of a built kustomization is traced to its file and line, and to the values that it overrides."""

from __future__ import annotations

import pytest

from argosy.gitops.application import KustomizeOptions
from argosy.gitops.application.step_results import FieldOrigin
from argosy.gitops.render.field_origins import OriginNode
from argosy.gitops.render.kustomize import build, trace_origins
from argosy.kube.resource_key import ResourceKey
from support.file_trees import TextTree

BASE = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    spec:
      containers:
      - name: one
        image: img:1
        env:
        - name: A
          value: a
        - name: B
          value: b
      - name: two
        image: other:1
      volumes:
      - name: v
        configMap:
          name: settings
"""
FILES = {
    "base/kustomization.yaml": "resources:\n- d.yaml\n",
    "base/d.yaml": f"# first\n---\n{BASE}",
    "top/kustomization.yaml": """resources:
- ../base
namePrefix: p-
namespace: space
commonLabels:
  team: ml
  tier: web
commonAnnotations:
  note: text
labels:
- includeSelectors: false
  pairs:
    extra: label
images:
- name: other
  newName: another
  newTag: "2"
replicas:
- name: web
  count: 5
patches:
- path: patch.yaml
- target:
    kind: Deployment
  patch: |-
    - op: add
      path: /spec/template/spec/containers/1/args
      value:
      - x
    - op: add
      path: /spec/template/spec/containers/1/env/-
      value: {name: D, value: d}
    - op: replace
      path: /spec/minReadySeconds
      value: 4
configMapGenerator:
- name: settings
  literals:
  - key=value
  - other=thing
  files:
  - text.txt
  envs:
  - e.env
  options:
    labels:
      made: here
components:
- ../part
replacements:
- source:
    kind: ConfigMap
    fieldPath: data.key
  targets:
  - select: {kind: Deployment}
    fieldPaths:
    - spec.template.spec.hostname
    options: {create: true}
transformers:
- t.yaml
""",
    "top/patch.yaml": """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: two
        image: other:9
      - name: one
        env:
        - name: B
          value: bb
        - name: C
          value: c
        resources:
          limits:
            cpu: 1
""",
    "top/text.txt": "one\n",
    "top/e.env": "# c\n\nENV=1\n",
    "top/t.yaml": "\napiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: t}\nannotations:\n  late: x\n"
    "fieldSpecs:\n- path: metadata/annotations\n  create: true\n",
    "part/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches:\n"
    "- target: {kind: Deployment}\n  patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n"
    "      name: any\n    spec:\n      paused: true\n",
}


@pytest.fixture(scope="module")
def built() -> dict[str, OriginNode]:
    return {key.kind: tree for key, tree in trace_origins(TextTree(FILES), "top").items()}


POD = "/spec/template/spec"
LINES = [
    ("/kind", "base/d.yaml", 4),
    ("/metadata/name", "top/kustomization.yaml", 3),
    ("/metadata/namespace", "top/kustomization.yaml", 4),
    ("/metadata/labels/team", "top/kustomization.yaml", 6),
    ("/metadata/labels/tier", "top/kustomization.yaml", 7),
    ("/metadata/labels/extra", "top/kustomization.yaml", 13),
    ("/spec/selector/matchLabels/tier", "top/kustomization.yaml", 7),
    ("/spec/selector/matchLabels/app", "base/d.yaml", 10),
    ("/metadata/annotations/note", "top/kustomization.yaml", 9),
    ("/spec/replicas", "top/kustomization.yaml", 20),
    (f"{POD}/containers/0/name", "base/d.yaml", 21),
    (f"{POD}/containers/0/image", "top/kustomization.yaml", 17),
    (f"{POD}/containers/1/image", "base/d.yaml", 15),
    (f"{POD}/containers/1/env/0/value", "top/patch.yaml", 14),
    (f"{POD}/containers/1/env/0/name", "base/d.yaml", 19),
    (f"{POD}/containers/1/env/1/value", "top/patch.yaml", 16),
    (f"{POD}/containers/1/env/2/value", "base/d.yaml", 18),
    (f"{POD}/containers/1/resources/limits/cpu", "top/patch.yaml", 19),
    (f"{POD}/containers/1/args/0", "top/kustomization.yaml", 29),
    (f"{POD}/containers/1/env/3/value", "top/kustomization.yaml", 32),
    ("/spec/minReadySeconds", "top/kustomization.yaml", 35),
    ("/spec/paused", "part/kustomization.yaml", 11),
    (f"{POD}/hostname", "top/kustomization.yaml", 51),
    ("/metadata/annotations/late", "top/t.yaml", 2),
    (f"{POD}/volumes/0/configMap/name", "base/d.yaml", 26),
]


@pytest.mark.parametrize(("pointer", "file", "line"), LINES, ids=[case[0] for case in LINES])
def test_field_is_traced_to_its_file_and_line(built: dict[str, OriginNode], pointer: str, file: str, line: int) -> None:
    origin = built["Deployment"].find_origin(pointer)
    assert (origin.file, origin.line) == (file, line)


@pytest.mark.parametrize(
    ("pointer", "file", "line"),
    [
        ("/data/key", "top/kustomization.yaml", 39),
        ("/data/other", "top/kustomization.yaml", 40),
        ("/data/text.txt", "top/text.txt", 1),
        ("/data/ENV", "top/e.env", 3),
        ("/metadata/labels/made", "top/kustomization.yaml", 47),
        ("/metadata/name", "top/kustomization.yaml", 3),
    ],
)
def test_generated_field_is_traced_to_its_value(
    built: dict[str, OriginNode], pointer: str, file: str, line: int
) -> None:
    origin = built["ConfigMap"].find_origin(pointer)
    assert (origin.file, origin.line) == (file, line)


def test_overridden_origins_are_kept_in_order(built: dict[str, OriginNode]) -> None:
    base = FieldOrigin("base/d.yaml", 22)
    patch = FieldOrigin("top/patch.yaml", 10, overrides=base)
    image = FieldOrigin("top/kustomization.yaml", 17, overrides=patch)
    assert built["Deployment"].find_origin(f"{POD}/containers/0/image") == image
    assert built["Deployment"].find_origin("/spec/replicas").overrides == FieldOrigin("base/d.yaml", 8)
    assert built["ConfigMap"].find_origin("/metadata/name").overrides == FieldOrigin("top/kustomization.yaml", 37)


def test_trace_has_exactly_the_manifests_of_the_build() -> None:
    expected = {
        (manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        for manifest in build(TextTree(FILES), "top")
    }
    assert {(key.kind, key.namespace, key.name) for key in trace_origins(TextTree(FILES), "top")} == expected


def test_field_set_by_the_application_has_no_line_in_a_file() -> None:
    options = KustomizeOptions(name_prefix="x-", images=("img:7",))
    origins = trace_origins(TextTree(FILES), "base", options=options)[ResourceKey("apps", "Deployment", "", "x-web")]
    assert origins.find_origin("/metadata/name") == FieldOrigin(
        "source.kustomize", overrides=FieldOrigin("base/d.yaml", 6)
    )
    assert origins.find_origin(f"{POD}/containers/0/image").file == "source.kustomize"


def test_application_settings_and_file_entries_have_different_origins() -> None:
    top = "resources: [../base]\ncommonLabels:\n  a: file\nimages:\n- name: other\n  newTag: '2'\n"
    options = KustomizeOptions(common_labels={"b": "set"}, images=("img:7",))
    (origins,) = trace_origins(TextTree({**FILES, "top/kustomization.yaml": top}), "top", options=options).values()
    assert origins.find_origin("/metadata/labels/a") == FieldOrigin("top/kustomization.yaml", 3)
    assert origins.find_origin("/metadata/labels/b") == FieldOrigin("source.kustomize")
    assert origins.find_origin(f"{POD}/containers/0/image").file == "source.kustomize"
    assert origins.find_origin(f"{POD}/containers/1/image").line == 6


def test_field_of_a_remote_base_names_its_repository() -> None:
    remote = TextTree({"k/kustomization.yaml": "resources: [d.yaml]\nnameSuffix: -s\n", "k/d.yaml": BASE})
    tree = TextTree({"kustomization.yaml": "resources:\n- https://example.com/o/r//k?ref=v1\n"})
    origins = trace_origins(tree, "", fetch=lambda url, ref: remote)[ResourceKey("apps", "Deployment", "", "web-s")]
    origin = origins.find_origin("/spec/replicas")
    assert (origin.file, origin.line) == ("k/d.yaml", 6)
    assert origin.repository.startswith("https://example.com/o/r")
    assert origins.find_origin("/metadata/name").file == "k/kustomization.yaml"


def test_patch_that_repeats_the_value_of_the_base_is_the_origin() -> None:
    top = """resources: [../base, other.yaml]
patches:
- target: {name: web}
  patch: |-
    - op: replace
      path: /spec/replicas
      value: 1
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      template:
        spec:
          containers:
          - name: one
            image: img:1
"""
    files = {**FILES, "top/kustomization.yaml": top, "top/other.yaml": BASE.replace("name: web", "name: other")}
    origins_by_name = {key.name: tree for key, tree in trace_origins(TextTree(files), "top").items()}
    assert origins_by_name["web"].find_origin("/spec/replicas") == FieldOrigin(
        "top/kustomization.yaml", 7, overrides=FieldOrigin("base/d.yaml", 8)
    )
    assert origins_by_name["web"].find_origin(f"{POD}/containers/0/image").line == 17
    assert origins_by_name["web"].find_origin(f"{POD}/containers/0/name") == FieldOrigin("base/d.yaml", 14)
    assert origins_by_name["web"].find_origin("/metadata/name") == FieldOrigin("base/d.yaml", 6)
    assert origins_by_name["other"].find_origin("/spec/replicas") == FieldOrigin("top/other.yaml", 6)


def test_json_patch_operation_is_traced_to_its_first_line() -> None:
    top = """resources: [../base]
patches:
- target: {name: web}
  patch: |-
    - op: copy
      from: /spec/replicas
      path: /spec/minReadySeconds
    - value: {cpu: 2}
      path: /spec/template/spec/containers/0/resources
      op: add
"""
    origins_by_name = {
        key.name: tree for key, tree in trace_origins(TextTree({**FILES, "top/kustomization.yaml": top}), "top").items()
    }
    assert origins_by_name["web"].find_origin("/spec/minReadySeconds") == FieldOrigin("top/kustomization.yaml", 5)
    assert origins_by_name["web"].find_origin(f"{POD}/containers/0/resources/cpu").line == 8


def test_merging_generator_overrides_only_the_keys_that_it_sets() -> None:
    files = {
        "base/kustomization.yaml": "configMapGenerator:\n- name: m\n  literals: [a=1, b=2]\n",
        "top/kustomization.yaml": "resources: [../base]\nconfigMapGenerator:\n- name: m\n  behavior: merge\n"
        "  literals:\n  - b=3\n",
    }
    (tree,) = trace_origins(TextTree(files), "top").values()
    assert tree.find_origin("/data/a") == FieldOrigin("base/kustomization.yaml", 3)
    assert tree.find_origin("/data/b") == FieldOrigin(
        "top/kustomization.yaml", 6, overrides=FieldOrigin("base/kustomization.yaml", 3)
    )
    assert tree.find_origin("/metadata/name") == FieldOrigin("base/kustomization.yaml", 2)


def test_json_that_is_not_valid_yaml_is_traced_to_its_file() -> None:
    text = '{"apiVersion": "v1",\n"kind": "ConfigMap",\n"metadata": {"name": "m"},\n"data": {"a": "x\\/y"}}'
    files = {"kustomization.yaml": "resources: [m.json]\nnamePrefix: p-\n", "m.json": text}
    (tree,) = trace_origins(TextTree(files), "").values()
    assert tree.find_origin("/data/a").file == "m.json"
    assert tree.find_origin("/metadata/name").file == "kustomization.yaml"
