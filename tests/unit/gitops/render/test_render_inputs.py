"""Recorded inputs of a render decide whether the next commit must be rendered."""

from __future__ import annotations

import pickle

import pytest

from argosy.gitops.application import Application, DirectoryOptions, Source
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.application.step_results import Checkout, RenderInput
from argosy.gitops.render import are_inputs_unchanged, build_environment, render
from argosy.gitops.render.input_fingerprints import RecordingEnvironment, SerializedRenderInputs
from argosy.gitops.render.settings import BuildSettings
from support.file_trees import TextTree

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
FILES = {
    "over/kustomization.yaml": "resources: [../base, extra.yaml]\npatches: [{path: patch.yaml}]\n"
    "configMapGenerator: [{name: g, files: [settings.txt]}]\n",
    "over/extra.yaml": MAP.replace("name: a", "name: b"),
    "over/patch.yaml": MAP + "data: {x: y}\n",
    "over/settings.txt": "x",
    "base/kustomization.yaml": "resources: [map.yaml]\n",
    "base/map.yaml": MAP,
    "plain/a.yaml": MAP,
    "plain/sub/b.yaml": MAP,
    "plain/notes.txt": "",
    "other/kustomization.yaml": "resources: []\n",
}
SHOP = Application("shop")
SOURCES = {
    "kustomize": Source(path="over"),
    "directory": Source(path="plain"),
    "recursive": Source(path="plain", directory=DirectoryOptions(recurse=True)),
}


class CommitTree(TextTree):
    """A tree with ids of folders, which counts lookups."""

    id = "commit"
    lookup_count = 0

    def find_entry(self, path: str) -> TreeEntry | None:
        self.lookup_count += 1
        return super().find_entry(path)


def is_current(source: Source, after: dict[str, str | None], app: Application = SHOP) -> bool:
    """Return whether a render of FILES is still current after files were changed, added or removed."""
    files = {path: text for path, text in {**FILES, **after}.items() if text is not None}
    environment = build_environment(app, source, "2" * 40, BuildSettings())
    answers = set()
    # Without ids of folders, the annotation saves nothing.
    for kind in (CommitTree,) if app.annotations else (TextTree, CommitTree):
        inputs = render(Checkout(kind(FILES), "1" * 40), app, source).inputs
        answers.add(are_inputs_unchanged(inputs, {"": kind(files)}, environment))
    assert len(answers) == 1, "ids of whole folders must change nothing"
    return answers.pop()


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    "after",
    [{}, {"README.md": "new"}, {"other/kustomization.yaml": "x"}, {"other/new.yaml": "x"}, {"base2/a.yaml": MAP}],
)
def test_commit_that_changes_other_files_keeps_the_render(name: str, after: dict[str, str | None]) -> None:
    assert is_current(SOURCES[name], after)


@pytest.mark.parametrize(
    ("name", "after"),
    [
        *(("kustomize", {path: f"{FILES[path]}# new\n"}) for path in FILES if path.startswith(("over", "base"))),
        *(("kustomize", {path: None}) for path in FILES if path.startswith(("over", "base"))),
        ("kustomize", {"over/kustomization.yml": "resources: []\n"}),
        ("kustomize", {"base/Kustomization": "resources: []\n"}),
        ("kustomize", {"over/.argocd-source.yaml": "kustomize: {namePrefix: x-}\n"}),
        ("kustomize", {"over/.argocd-source-shop.yaml": "kustomize: {namePrefix: x-}\n"}),
        ("directory", {"plain/a.yaml": MAP + "# new\n"}),
        ("directory", {"plain/c.yaml": MAP}),
        ("directory", {"plain/kustomization.yaml": "resources: []\n"}),
        ("directory", {"plain/Chart.yaml": "name: x\n"}),
        ("directory", {"plain/.argocd-source.yaml": "directory: {recurse: true}\n"}),
        ("directory", {"plain/a.yaml": None}),
        ("recursive", {"plain/sub/b.yaml": MAP + "# new\n"}),
        ("recursive", {"plain/sub/new/c.yaml": MAP}),
    ],
)
def test_commit_that_changes_read_or_looked_up_files_needs_a_render(name: str, after: dict[str, str | None]) -> None:
    assert not is_current(SOURCES[name], after)


def test_files_that_were_not_read_may_change() -> None:
    assert is_current(SOURCES["kustomize"], {"over/README.md": "new", "base/README.md": "new"})
    assert is_current(SOURCES["directory"], {"plain/notes.txt": "changed", "plain/sub/b.yaml": "changed"})


def test_file_replaced_by_a_symlink_with_the_same_content_is_a_change() -> None:
    inputs = render(Checkout(TextTree({"p/a.yaml": ""}), ""), Application(), Source(path="p")).inputs
    assert not are_inputs_unchanged(inputs, {"": TextTree({"p/x": ""}, {"p/a.yaml": ""})}, {})


def test_only_variables_that_were_read_are_inputs() -> None:
    record: dict[RenderInput, str] = {}
    environment = RecordingEnvironment({"A": "1", "B": "2"}, record)
    assert (environment.get("A"), environment.get("C")) == ("1", None)
    assert record == {RenderInput("env", "A"): "1", RenderInput("env", "C"): ""}
    assert are_inputs_unchanged(record, {}, {"A": "1", "B": "3"})
    assert not are_inputs_unchanged(record, {}, {"A": "2"})
    assert not are_inputs_unchanged(record, {}, {"A": "1", "C": "1"})
    assert dict(environment) == {"A": "1", "B": "2"}
    assert RenderInput("env", "B") in record


def test_input_of_an_unavailable_tree_counts_as_changed() -> None:
    assert not are_inputs_unchanged({RenderInput("https://git.example/base@main", "a"): "x"}, {"": TextTree({})}, {})


def test_unchanged_folders_are_not_searched() -> None:
    inputs = render(Checkout(CommitTree(FILES), ""), SHOP, SOURCES["kustomize"]).inputs
    assert {path for _, path in inputs if path.endswith("//")} == {"over//", "base//"}
    tree = CommitTree({**FILES, "README.md": "new"})
    assert are_inputs_unchanged(inputs, {"": tree}, {})
    assert tree.lookup_count <= 4 < len(inputs)


PATHS = "argocd.argoproj.io/manifest-generate-paths"


@pytest.mark.parametrize(
    ("annotation", "after", "current"),
    [
        (".", {"base/map.yaml": MAP + "# new\n"}, True),
        (".", {"over/patch.yaml": FILES["over/patch.yaml"] + "# new\n"}, False),
        (".;../base", {"base/map.yaml": MAP + "# new\n"}, False),
        (".;/base", {"base/map.yaml": MAP + "# new\n"}, False),
        ("/other", {"base/map.yaml": MAP + "# new\n"}, True),
        ("/base/*.yml", {"base/map.yaml": MAP + "# new\n"}, True),
        ("/base/*.yaml", {"base/map.yaml": MAP + "# new\n"}, False),
        ("/b*", {"base/map.yaml": MAP + "# new\n"}, False),
        ("/*.yaml", {"base/map.yaml": MAP + "# new\n"}, True),
        ("/base/map.yaml", {"base/map.yaml": None}, False),
        ("; ;", {"base/map.yaml": MAP + "# new\n"}, False),
        ("/other", {"README.md": "x"}, True),
    ],
)
def test_manifest_generate_paths_are_honored(annotation: str, after: dict[str, str | None], current: bool) -> None:
    app = Application("shop", annotations={PATHS: annotation})
    assert is_current(SOURCES["kustomize"], after, app) is current


def test_unchanged_inputs_stay_current_if_annotated_paths_change() -> None:
    app = Application("shop", annotations={PATHS: "/"})
    assert is_current(SOURCES["kustomize"], {"README.md": "x"}, app)


def test_serialized_inputs_are_the_same_mapping_in_the_same_order() -> None:
    inputs = {
        RenderInput("", "over//"): "1",
        RenderInput("$values", "a\0b"): "",
        RenderInput("env", "caf\udce9"): "x\ny",  # a path that is not UTF-8
    }
    serialized = SerializedRenderInputs(inputs)
    assert serialized == inputs and list(serialized.items()) == list(inputs.items()) and len(serialized) == 3
    assert serialized[RenderInput("$values", "a\0b")] == "" and RenderInput("", "other") not in serialized
    assert pickle.loads(pickle.dumps(serialized)) == inputs
