"""Invalid kustomizations: the error names file, line and cause, and nothing outside the repository is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from argosy.errors import LimitError, UserError
from argosy.gitops.render.kustomize import build
from argosy.gitops.source.folder_tree import FolderTree

SECRET = "the-canary-sings"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
TOP = "top/kustomization.yaml"
MEANT = "# by hand\nresources:\n- a.yaml\n"


class Broken(NamedTuple):
    name: str
    files: dict[str, str]
    file: str
    line: int
    words: str
    links: Mapping[str, str] = MappingProxyType({})
    limit: bool = False


def case(name: str, text: str, line: int, words: str, file: str = TOP, **more: Any) -> Broken:
    files = {TOP: text, "top/a.yaml": MAP, "top/d.yaml": DEPLOYMENT, **more.pop("files", {})}
    return Broken(name, files, file, line, words, **more)


def with_file(name: str, file: str, text: str, line: int, words: str, entry: str = "", **more: Any) -> Broken:
    entry = entry or f"resources:\n- {file}\n"
    return case(name, entry, line, words, f"top/{file}", files={f"top/{file}": text}, **more)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg")
)
MERGES = (
    "a: &a {"
    + ", ".join(f"k{n}: v" for n in range(2000))
    + "}\n"
    + "".join(f"m{n}: {{<<: *a, z: 1}}\n" for n in range(2000))
)
CASES = [
    case("missing file", MEANT + "- none.yaml\n", 4, "none.yaml does not exist"),
    case("missing folder", "resources:\n- ../none\n", 2, "does not exist"),
    case("no kustomization in a base", "resources:\n- ../empty\n", 2, "no kustomization.yaml",
         files={"empty/x.txt": ""}),
    case("cycle to itself", "resources:\n- .\n", 2, "cycle"),
    case("cycle of two", "resources:\n- ../mid\n", 1, "cycle", "mid/kustomization.yaml",
         files={"mid/kustomization.yaml": "resources: [../top]\n"}),
    case("two of one name", "resources:\n- a.yaml\n- d.yaml\n- a.yaml\n", 4, "is defined twice"),
    case("two kustomizations", "resources: []\n", 0, "several", "top",
         files={"top/kustomization.yml": "resources: []\n"}),
    case("unknown field", "resources: []\nnamePrefixx: a\n", 2, "unknown field namePrefixx"),
    case("wrong type", "resources: []\nnamePrefix: 5\n", 2, "must be a string"),
    case("text for a list", "namePrefix: a\nresources: a.yaml\n", 2, "must be a list"),
    case("wrong kind", "resources: []\nkind: Thing\n", 2, "must be Kustomization"),
    case("wrong apiVersion", "apiVersion: v9\nresources: []\n", 1, "apiVersion"),
    case("empty", "", 1, "empty"),
    case("nothing but a kind", "kind: Kustomization\n", 1, "has only"),
    case("bad YAML in the kustomization", "resources:\n- a.yaml\n  - b: [\n", 3, "correct the YAML"),
    case("component as resource", "resources:\n- ../part\n", 2, "list it in components",
         files={"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
                "resources: []\n"}),
    case("resource as component", "components:\n- ../base\n", 2, "not a Component",
         files={"base/kustomization.yaml": "resources: []\n"}),
    case("patch without a target",
         "resources: [a.yaml]\npatches:\n- patch: |-\n    - op: remove\n      path: /data\n", 3,
         "needs a target"),
    case("patch that fits nothing", "resources: [a.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Secret\n"
         "    metadata: {name: none}\n", 6, "matches no resource"),
    case("wrong index", "resources: [d.yaml]\npatches:\n- target: {kind: Deployment}\n  path: p.yaml\n", 4, "patch of",
         "top/p.yaml",
         files={"top/p.yaml": "- op: add\n  path: /x\n  value: [1]\n- op: replace\n  path: /x/9\n  value: 2\n"}),
    case("bad regular expression", "resources: [a.yaml]\npatches:\n- path: p.yaml\n  target: {name: '(('}\n", 4,
         "not a valid regular expression", files={"top/p.yaml": "- {op: remove, path: /data}\n"}),
    case("bad label selector", "resources: [a.yaml]\npatches:\n- path: p.yaml\n  target: {labelSelector: 'a in'}\n", 4,
         "labelSelector", files={"top/p.yaml": "- {op: remove, path: /data}\n"}),
    case("patch and path", "resources: [a.yaml]\npatches:\n- {patch: a, path: b}\n", 3, "either"),
    case("replacement without its source", "resources: [a.yaml]\nreplacements:\n- source: {kind: None}\n  targets:\n"
         "  - select: {kind: ConfigMap}\n", 3, "no resource matches the source"),
    case("replacement of no field", "resources: [a.yaml]\nreplacements:\n- source: {kind: ConfigMap}\n  targets:\n"
         "  - select: {kind: ConfigMap}\n    fieldPaths: [data.none]\n", 6, "no field data.none"),
    case("replicas of nothing", "resources: [a.yaml]\nreplicas:\n- {name: none, count: 1}\n", 3, "replicas: no "),
    case("var of nothing", "resources: [a.yaml]\nvars:\n- name: V\n  objref: {apiVersion: v1, kind: Pod, name: p}\n", 3,
         "there is no"),
    case("literal without a value", "configMapGenerator:\n- name: g\n  literals:\n  - a=b\n  - broken\n",
         5, "key=value"),
    case("generator without a name", "configMapGenerator:\n- literals: [a=b]\n", 2, "no name"),
    case("key twice", "configMapGenerator:\n- name: g\n  literals: [a=b, a=c]\n", 2, "duplicate key"),
    case("merge of nothing", "configMapGenerator:\n- name: g\n  behavior: merge\n", 2, "does not exist"),
    case("generator file that is missing", "configMapGenerator:\n- name: g\n  files: [none.txt]\n",
         3, "does not exist"),
    case("generator file outside", "configMapGenerator:\n- name: g\n  files:\n  - ../../canary\n", 4, "leads out"),
    case("env file that is no text", "configMapGenerator:\n- name: g\n  envs: [e.env]\n", 0, "UTF-8", "",
         files={"top/e.env": "\udcff=1\n"}),
    case("resource above the repository", "resources:\n- ../../canary\n", 2, "leads out of the repository"),
    case("absolute path", "resources:\n- /etc/passwd\n", 2, "absolute path"),
    case("file of another folder", "resources:\n- ../other/b.yaml\n", 2, "outside the kustomization's folder",
         files={"other/b.yaml": MAP}),
    case("remote base", "resources:\n- https://example.com/r//p?ref=v1\n", 2, "remote"),
    case("remote base by ssh", "resources:\n- git@example.com:r.git\n", 2, "remote"),
    case("exec plugin", "resources: [a.yaml]\ntransformers: [t.yaml]\n", 1, "would run a program", "top/t.yaml",
         files={"top/t.yaml": "apiVersion: x.io/v1\nkind: Exec\nmetadata: {name: e}\n"}),
    case("validator", "resources: [a.yaml]\nvalidators: [v.yaml]\n", 2, "not allowed"),
    case("unknown openapi", "resources: [a.yaml]\nopenapi: {version: v9}\n", 2, "openapi.version"),
    case("unknown order", "resources: [a.yaml]\nsortOptions: {order: random}\n", 2, "legacy or fifo"),
    case("linked file", "resources:\n- link.yaml\n", 2, "leads out", links={"top/link.yaml": "../../canary"}),
    case("linked folder", "resources:\n- ../away\n", 2, "leads out", links={"away": "../"}),
    case("chain of links", "resources:\n- l1.yaml\n", 2, "leads out",
         links={"top/l1.yaml": "l2.yaml", "top/l2.yaml": "../l3", "l3": "../canary"}),
    case("links in a ring", "resources:\n- l1.yaml\n", 2, "too many links",
         links={"top/l1.yaml": "l2.yaml", "top/l2.yaml": "l1.yaml"}),
    case("absolute link", "resources:\n- link.yaml\n", 2, "absolute path", links={"top/link.yaml": "/etc/passwd"}),
    case("linked kustomization", "resources:\n- ../linked\n", 2, "leads out",
         links={"linked/kustomization.yaml": "../../canary"}),
    with_file("bad YAML", "b.yaml", "kind: A\nmetadata:\n  name: a\n bad: x\n", 4, "correct the YAML"),
    with_file("no kind", "b.yaml", f"{MAP}---\n# c\nmetadata: {{name: b}}\n", 7, "no kind"),
    with_file("no name", "b.yaml", f"{MAP}---\nkind: A\nmetadata: {{}}\n", 6, "no metadata.name"),
    with_file("a text", "b.yaml", "just words\n", 1, "not a Kubernetes object"),
    with_file("key twice in a manifest", "b.yaml", "kind: A\nmetadata: {name: a}\nx: 1\nx: 2\n", 4, "already defined"),
    with_file("two values of JSON", "b.json", "{}\n{}\n", 2, ""),
    with_file("number as key", "b.yaml", "kind: A\nmetadata: {name: a}\nx:\n  5: y\n", 4, "not a string"),
    with_file("laughs", "b.yaml", LAUGHS, 5, "aliases expand to", limit=True),
    with_file("merges", "b.yaml", MERGES, 0, "aliases expand to", limit=True),
    with_file("depth", "b.yaml", "a: " + "[" * 3000 + "\n", 1, "nested more than", limit=True),
    with_file("flood of documents", "b.yaml", "---\na: b\n" * 6000, 0, "documents", limit=True),
    with_file("flood of values", "b.yaml", "a:\n" + "- 1\n" * 300_000, 0, "values", limit=True),
    with_file("too large", "b.yaml", "# " + "x" * 11_000_000, 0, "bytes are more", limit=True),
    with_file("unknown alias", "b.yaml", "kind: A\nx: *none\n", 2, "unknown anchor"),
    with_file("forbidden character", "b.yaml", "kind: A\nx: \x07\n", 2, "character"),
]  # fmt: skip


def laid_out(broken: Broken, place: Path) -> FolderTree:
    root = place / "repository"
    (place / "canary").write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {SECRET}}}\n")
    for path, text in broken.files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for path, target in broken.links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    return FolderTree(root)


LARGE = {"flood of values", "flood of documents", "merges", "too large"}  # tests of the YAML reader always run these


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            broken_input, id=broken_input.name, marks=pytest.mark.tier("all") if broken_input.name in LARGE else ()
        )
        for broken_input in CASES
    ],
)
def test_broken_input_error_names_file_line_and_cause(broken: Broken, tmp_path: Path) -> None:
    tree = laid_out(broken, tmp_path)
    with pytest.raises(UserError) as caught:
        build(tree, "top")
    error = caught.value
    assert SECRET not in str(error)
    assert broken.words in error.message
    assert not broken.file or error.where == broken.file
    assert not broken.line or error.line == broken.line
    assert not broken.limit or isinstance(error, LimitError)


def test_there_are_at_least_forty_broken_inputs() -> None:
    assert len({broken_input.name for broken_input in CASES}) == len(CASES) >= 40
