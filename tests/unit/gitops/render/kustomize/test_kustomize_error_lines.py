"""Every error of a kustomization names the file and line to correct."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: one
        image: x
"""
BASE = {"a.yaml": CONFIG_MAP, "d.yaml": DEPLOYMENT}
TOP = "kind: Kustomization\nresources:\n- a.yaml\n- d.yaml\n"

# K stands for kustomization.yaml
HERE: list[tuple[str, str, str]] = [
    ("a file that is not there", "resources:\n- a.yaml\n- zz.yaml\n",
     "K:3: zz.yaml does not exist (open zz.yaml: no such file or directory): add it or correct the path"),
    ("a base in yesterday's words", "resources:\n- a.yaml\nbases:\n- zz\n", "K:4: zz does not"),
    ("an unknown field", "resources:\n- a.yaml\nimagez: []\n", "K:3: unknown field imagez"),
    ("a field of the wrong type", TOP + "images:\n- name: x\n  newTag: 1\n", "K:7: images[0].newTag"),
    ("a map for a list", "resources: {}\nnamePrefix: x\n", "K:1: resources must be a list"),
    ("another kind", "resources: []\nkind: Foo\n", "K:2: kind is 'Foo'"),
    ("another version", "resources: []\napiVersion: v1\n", "K:2: apiVersion of a"),
    ("bad YAML", "resources:\n- a: [\n", "K:3: "),
    ("a cycle", "resources:\n- a.yaml\n- .\n", "K:3: . is a cycle"),
    ("a way out", "resources:\n- ../x.yaml\n", "K:2: '../x.yaml' leads out"),
    ("one id twice", "resources:\n- a.yaml\n- b.yaml\n", "K:3: ConfigMap a (v1) is defined twice (in a.yaml"),
    ("an order nobody knows", TOP + "sortOptions:\n  order: up\n", "K:6: sortOptions.order is 'up'"),
    ("an order and its opposite", TOP + "sortOptions: {order: fifo, legacySortOptions: {}}\n", "K:5: sortOptions.leg"),
    ("no such replicas", TOP + "replicas:\n- name: q\n  count: 1\n", "K:6: replicas: no"),
    ("a bad pattern", TOP + "images:\n- name: '('\n", "K:6: '(' is not a valid regular"),
    ("no kustomization in a base", "resources:\n- a.yaml\n- empty\n", "K:3: there is no kust"),
    ("a literal without a value", TOP + "configMapGenerator:\n- name: m\n  literals:\n  - a=b\n  - c\n",
     "K:9: ConfigMap m: the literal 'c'"),
    ("a generator's file", TOP + "configMapGenerator:\n- name: m\n  files:\n  - =\n", "K:8: ConfigMap m"),
    ("a generator that exists", TOP + "configMapGenerator:\n- literals: []\n  name: a\n", "K:6: Config"),
    ("a var twice", TOP + "vars:\n- name: X\n- name: X\n", "K:7: the var X is declared twice"),
    ("a var of nothing", TOP + "vars:\n- name: X\n  objref: {kind: A, name: b}\n", "K:6: the var X: th"),
    ("a source of nothing", TOP + "replacements:\n- source:\n    kind: Zip\n  targets: []\n",
     "K:6: replacements: no resource matches"),
    ("a target that is not there", TOP + "replacements:\n- source: {kind: ConfigMap}\n  targets:\n  - select: {kind: "
     "Deployment}\n    fieldPaths:\n    - metadata.name\n    - spec.nope\n", "K:11: replacements: Depl"),
    ("validators", TOP + "validators:\n- v.yaml\n", "K:6: validators run programs"),
    ("no component", TOP + "components:\n- empty\n", "K:6: there is no kustomization.yaml in empty"),
    ("a patch file that is not there", TOP + "patches:\n- target: {kind: A}\n  path: zz.yaml\n",
     "K:7: zz.yaml does not exist"),
    ("a bad target", TOP + "patches:\n- path: p.yaml\n  target:\n    name: '('\n", "K:7: '(' is not a valid reg"),
    ("a patch without text", TOP + "patches:\n- target: {kind: A}\n", "K:6: an entry of patches needs"),
    ("operations without a target", TOP + "patches:\n- patch: |-\n    - op: remove\n      path: /x\n",
     "K:6: a JSON patch needs a target"),
    ("an operation within", TOP + "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - op: add\n      path: /x\n"
     "      value: 1\n    - op: remove\n      path: /y\n", "K:11: patch of ConfigMap a"),
    ("bad YAML within", TOP + "patches:\n- patch: |-\n    kind: A\n    x: [\n", "K:8: "),
    ("a patch within that fits nothing", TOP + "patchesStrategicMerge:\n- |-\n  apiVersion: v1\n  kind: Pod\n"
     "  metadata:\n    name: q\n", "K:10: the patch matches no resource"),
    ("a list within for a map", TOP + "patches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    "
     "metadata: {name: web}\n    spec:\n      template: []\n", "K:11: patch of Deployment web"),
    ("a transformer that is no YAML", TOP + "transformers:\n- |-\n  kind: A\n  x: [\n", "K:8: "),
    ("a program", TOP + "transformers:\n- t.yaml\n", "t.yaml:2: Foo t"),
]  # fmt: skip


def refusal(files: dict[str, str]) -> str:
    with pytest.raises(UserError) as caught:
        build(TextTree(files), "")
    return str(caught.value)


@pytest.mark.parametrize(("kustomization", "said"), [case[1:] for case in HERE], ids=[case[0] for case in HERE])
def test_invalid_entry_error_names_its_line(kustomization: str, said: str) -> None:
    more = {"b.yaml": CONFIG_MAP, "empty/x.yaml": "", "t.yaml": "\nkind: Foo\nmetadata: {name: t}\n"}
    files = {**BASE, **more, "p.yaml": "- {op: remove, path: /x}\n", "kustomization.yaml": kustomization}
    assert refusal(files).startswith(said.replace("K:", "kustomization.yaml:"))


PATCHES: list[tuple[str, str, str]] = [
    ("an operation", "- op: add\n  path: /x\n  value: 1\n- op: remove\n  path: /y/z\n", "p.yaml:4: patch of Dep"),
    ("an index", "# c\n- op: replace\n  path: /spec/template/spec/containers/3/image\n  value: y\n", "p.yaml:2: patch"),
    ("bad YAML", "a: 1\nb: [\n", "p.yaml:3: "),
    ("nothing", "# nothing\n", "p.yaml:1: the patch is empty"),
    ("no kind", "metadata:\n  name: web\n", "p.yaml:1: the patch has no kind"),
    ("no name", "kind: Deployment\nmetadata:\n  labels: {}\n", "p.yaml:2: the patch has no metadata.name"),
    ("a map for a text", "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n"
     "      - name: two\n      - name: one\n        image:\n          a: b\n", "p.yaml:9: patch of Deployment web"),
    ("a directive", "kind: Deployment\nmetadata: {name: web}\nspec:\n  $patch: boo\n", "p.yaml:4: patch of"),
    ("two", "kind: A\nmetadata: {name: b}\n---\nkind: B\nmetadata: {name: b}\n", "p.yaml:4: several patches share"),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "said"), [case[1:] for case in PATCHES], ids=[case[0] for case in PATCHES])
def test_invalid_patch_error_names_its_line(patch: str, said: str) -> None:
    top = TOP + "patches:\n- path: ./p.yaml\n  target: {kind: Deployment}\n"
    assert refusal({**BASE, "kustomization.yaml": top, "p.yaml": patch}).startswith(said)


def test_unmatched_patch_error_names_the_line_of_its_name() -> None:
    patch = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"
    patch += "---\nkind: Pod\napiVersion: v1\nmetadata:\n  name: q\n"
    files = {**BASE, "kustomization.yaml": TOP + "patchesStrategicMerge: [p.yaml]\n", "p.yaml": patch}
    assert refusal(files).startswith("p.yaml:8: the patch matches no resource: no resource is Pod q")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{CONFIG_MAP}---\n\nmetadata: {{name: b}}\n", "a.yaml:9: document 2 has no kind"),
        (f"---\n{CONFIG_MAP}---\n---\nkind: B\n", "a.yaml:10: document 3, a B, has no metadata.name"),
        ("kind: List\nitems:\n- {kind: A, metadata: {name: b}}\n- kind: A\n", "a.yaml:4: document 3, a A, has no meta"),
        ("\n- a\n", "a.yaml:2: document 1 is not a Kubernetes object"),
        ("kind: A\nmetadata: {name: a}\nx: 1\nx: 2\n", "a.yaml:4: "),
    ],
)
def test_invalid_manifest_error_names_its_line(text: str, said: str) -> None:
    assert refusal({"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text}).startswith(said)


MANIFESTS: list[tuple[str, str, str]] = [
    ("commonLabels: {a: b}\n", "kind: A\nmetadata:\n  name: a\n  labels: [x]\n", "m.yaml:4: labels of A a () is no"),
    ("namePrefix: p-\n", f"{CONFIG_MAP}---\nkind: Pod\napiVersion: v1\nmetadata: {{name: d}}\nspec:\n  volumes: text\n",
     "m.yaml:12: Pod p-d (v1): spec/volumes is 'text'"),
    ("namespace: one\n", "kind: A\nmetadata: {name: a}\n---\nkind: A\nmetadata: {name: a, namespace: q}\n",
     "m.yaml:1: the namespace gives two resources the same id"),
    ("vars:\n- name: X\n  objref: {kind: A, name: a}\n  fieldref: {fieldpath: spec.x}\n",
     "kind: A\nmetadata: {name: a}\n", "kustomization.yaml:3: the var X: A a () has no field spec.x"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "manifest", "said"), MANIFESTS)
def test_transformation_error_names_its_file_and_line(more: str, manifest: str, said: str) -> None:
    assert refusal({"kustomization.yaml": f"resources: [m.yaml]\n{more}", "m.yaml": manifest}).startswith(said)


def test_error_in_a_base_names_the_file_of_the_base() -> None:
    files = {"base/kustomization.yaml": "namePrefix: x\nresources:\n- zz.yaml\n"}
    files |= {"top/kustomization.yaml": "resources: [../base]\n"}
    with pytest.raises(UserError) as caught:
        build(TextTree(files), "top")
    assert str(caught.value).startswith("base/kustomization.yaml:3: zz.yaml does not exist")


def test_invalid_utf8_in_an_env_file_is_reported_with_its_line() -> None:
    files: dict[str, str | bytes] = {"k/kustomization.yaml": "configMapGenerator:\n- name: m\n  envs: [./e.env]\n"}
    files["k/e.env"] = b"A=1\n# c\nB=\xff\n"
    with pytest.raises(UserError) as caught:
        build(TextTree(files), "k")
    assert str(caught.value).startswith("k/e.env:3: not valid UTF-8")
