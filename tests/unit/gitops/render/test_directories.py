"""Directory sources: which files are read, and how files that are not manifests are handled."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.application import DirectoryOptions
from argosy.gitops.render.directory import read_directory
from argosy.gitops.render.settings import RenderLimits
from argosy.kube.objects import Manifest, read_yaml
from support.file_trees import TextTree

PLAIN = DirectoryOptions()


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def read(tree: TextTree, folder: str = "app", options: DirectoryOptions = PLAIN, **limits: int) -> list[Manifest]:
    return [manifest for _, manifest in read_directory(tree, folder, options, RenderLimits(**limits))]


def names(*args: object, **options: object) -> list[str]:
    tree, *rest = args
    directory_options = dataclasses.replace(PLAIN, **options)  # type: ignore[arg-type]
    return [manifest["metadata"]["name"] for manifest in read(tree, *rest, options=directory_options)]  # type: ignore[arg-type]


def tree_of(*paths: str) -> TextTree:
    return TextTree({f"app/{path}": config_map(path) for path in paths} | {"other/x.yaml": config_map("other")})


def test_manifest_files_are_read_in_name_order() -> None:
    tree = tree_of("b.yml", "a.yaml", "README.md", "sub/c.yaml", "B.yaml", "z.yaml.bak")
    assert names(tree) == ["B.yaml", "a.yaml", "b.yml"]


def test_recursion_sorts_folders_among_files_by_name() -> None:
    tree = tree_of("b.yaml", "a/z.yaml", "a/b/y.yaml", "c/x.yaml")
    assert names(tree, recurse=True) == ["a/b/y.yaml", "a/z.yaml", "b.yaml", "c/x.yaml"]


def test_include_and_exclude_match_relative_paths_and_exclude_wins() -> None:
    tree = tree_of("a.yaml", "b.yaml", "env/a.yaml", "env/c.yml")
    assert names(tree, recurse=True, include="*.yml") == ["env/c.yml"]
    assert names(tree, recurse=True, include="{a,b}.yaml") == ["a.yaml", "b.yaml"]
    assert names(tree, recurse=True, exclude="env/*") == ["a.yaml", "b.yaml"]
    assert names(tree, recurse=True, include="*.yaml", exclude="{b.yaml,env/*}") == ["a.yaml"]
    assert names(tree, recurse=True, include="app/*") == []


def test_extension_filter_can_be_disabled() -> None:
    assert names(tree_of("a.yaml", "b.manifest"), disable_extension_filter=True) == ["a.yaml", "b.manifest"]


def test_file_with_the_skip_marker_is_skipped() -> None:
    tree = TextTree({"app/a.yaml": "# +argocd:skip-file-rendering\n" + config_map("a"), "app/b.yaml": config_map("b")})
    assert names(tree) == ["b"]


def test_symlinks_are_followed_within_the_repository_only() -> None:
    tree = TextTree(
        {"shared/real.yaml": config_map("real"), "app/z.txt": ""},
        {"app/a.yaml": "../shared/real.yaml", "app/gone.yaml": "nowhere.yaml", "app/folder.yaml": "../shared"},
    )
    assert names(tree) == ["real"]
    for target in ("../../etc/passwd", "/etc/passwd"):
        with pytest.raises(RenderError, match=r"app/a\.yaml"):
            read(TextTree({"app/z.txt": ""}, {"app/a.yaml": target}))


def test_file_may_have_many_documents_and_empty_ones_are_ignored() -> None:
    text = "---\n" + config_map("a") + "---\n# nothing\n---\n" + config_map("b") + "---\n"
    assert names(TextTree({"app/a.yaml": text})) == ["a", "b"]


def test_yaml_is_parsed_like_kubernetes() -> None:
    text = config_map("a") + "data: {x: yes}\n"
    assert read(TextTree({"app/a.yaml": text}))[0]["data"] == {"x": True}


@pytest.mark.parametrize(
    "text", ["a: [", "replicas: 3\nimage: x\n", "- a\n- b\n", "text", "", "metadata: {}\n", "kind: 3\n"]
)
def test_file_that_does_not_look_like_manifests_is_ignored(text: str) -> None:
    assert read(TextTree({"app/values.yaml": text})) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (config_map("a") + "data: [\n", r"^app/a\.yaml:\d: "),
        ("apiVersion: v1\nkind: List\nitems: [{metadata: {}}]\n", r"^app/a\.yaml:1: .* items\[0\] has no kind"),
        ("kind: Pod\nmetadata: [\n", r"app/a\.yaml"),
        (config_map("a") + "---\nreplicas: 3\n", r"^app/a\.yaml:6: document 2 has no kind"),
        ("replicas: 3\n---\n" + config_map("a"), r"^app/a\.yaml:1: document 1 has no kind"),
        ("# a\n---\nkind: ConfigMap\nmetadata: {name: a}\n", r"^app/a\.yaml:3: document 1 has no apiVersion"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 3}\n", r"metadata\.name"),
        ("kind: 3\napiVersion: v1\nmetadata: {name: a}\n", "has no kind"),
    ],
)
def test_file_that_looks_like_manifests_must_be_valid(text: str, said: str) -> None:
    with pytest.raises(RenderError, match=said) as caught:
        read(TextTree({"app/a.yaml": text}))
    assert caught.value.where == "app/a.yaml"


def test_manifests_without_a_name_are_kept_with_a_note_unless_they_are_hooks() -> None:
    nameless, kustomization = "apiVersion: v1\nkind: Pod\n", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: K\n"
    hook = nameless + "metadata: {annotations: {argocd.argoproj.io/hook: Sync}}\n"
    tree = TextTree(
        {
            "app/a.yaml": f"{hook}---\n{nameless}",
            "app/b.yaml": kustomization,
            "app/c.json": json.dumps(read_yaml(nameless)),
        }
    )
    notes: list[str] = []
    manifests = read_directory(tree, "app", PLAIN, RenderLimits(), None, notes)
    assert [manifest["kind"] for _, manifest in manifests] == ["Pod", "Pod", "K", "Pod"]
    assert notes == [
        "app/a.yaml:5: document 2 is a Pod without metadata.name: add it, or set directory.exclude for this file",
        "app/b.yaml:1: document 1 is a kustomization, not a manifest: set the source's path to its folder, or set "
        "directory.exclude for this file",
        "app/c.json:1: document 1 is a Pod without metadata.name: add it, or set directory.exclude for this file",
    ]


def test_json_file_has_one_object() -> None:
    one = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    assert names(TextTree({"app/a.json": one})) == ["a"]
    assert names(TextTree({"app/a.json": b"\xef\xbb\xbf" + one.encode()})) == ["a"]
    assert names(TextTree({"app/a.json": one, "app/dashboard.json": '{"title": "somebody else\'s"}'})) == ["a"]
    for text, error in (
        (one + one, "several objects"),
        ('{"kind": "Pod"}', "has no apiVersion"),
        ("[]", "not a Kubernetes object"),
        ("{", "a.json"),
    ):
        with pytest.raises(RenderError, match=error):
            read(TextTree({"app/a.json": text}))


def test_jsonnet_files_are_passed_to_the_evaluator() -> None:
    tree = TextTree({"app/a.jsonnet": "{}", "app/b.yaml": config_map("b"), "app/c.jsonnet": "{}"})

    def evaluate(paths: Sequence[str]) -> dict[str, list[Manifest]]:
        listing = {"apiVersion": "v1", "kind": "List", "items": [read_yaml(config_map("made"))]}
        return {path: [listing] for path in paths}

    manifests = read_directory(tree, "app", PLAIN, RenderLimits(), evaluate)
    assert [(path, manifest["metadata"]["name"]) for path, manifest in manifests] == [
        ("app/a.jsonnet", "made"),
        ("app/b.yaml", "b"),
        ("app/c.jsonnet", "made"),
    ]
    assert names(tree) == ["b"]


@pytest.mark.parametrize("manifest", [{"kind": "Pod"}, {"apiVersion": "v1", "kind": "List", "items": [{}]}])
def test_jsonnet_output_must_be_manifests(manifest: Manifest) -> None:
    tree = TextTree({"app/a.jsonnet": "{}"})
    with pytest.raises(RenderError, match=r"^app/a\.jsonnet: "):
        read_directory(tree, "app", PLAIN, RenderLimits(), lambda paths: {path: [manifest] for path in paths})


def test_directory_over_a_limit_is_refused() -> None:
    with pytest.raises(LimitError, match="exceed 100 bytes in total"):
        read(tree_of("a.yaml", "b.yaml", "c.yaml"), manifest_bytes=100)
    with pytest.raises(LimitError, match="more than 2 files"):
        read(tree_of("a.yaml", "b.yaml", "c.yaml"), files=2)
    deep = TextTree({"app" + "/d" * 200 + "/a.yaml": ""})
    with pytest.raises(LimitError, match="100 folders deep"):
        read(deep, options=DirectoryOptions(recurse=True))


def test_yaml_bomb_is_refused() -> None:
    bomb = "kind: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"b{i}: &b{i} [{','.join(['*a'] * 9)}]\n" for i in range(9))
    bomb += "".join(f"c{i}: [{','.join(['*b0'] * 999)}]\n" for i in range(99))
    with pytest.raises((LimitError, RenderError), match=r"app/a\.yaml"):
        read(TextTree({"app/a.yaml": bomb}))
