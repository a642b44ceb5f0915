"""The reach of a source covers every file that its render reads."""

from __future__ import annotations

from random import Random

import pytest

from argosy.errors import ArgosyError
from argosy.features.preview.source_input_files import SourceReach, add_parent_folders, may_be_affected
from argosy.gitops.application import Application, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import render
from support.file_trees import TextTree

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '1'}\n"


def reach(files: dict[str, str], path: str, **wire: object) -> frozenset[str] | None:
    return SourceReach(TextTree(files)).find_reach(path, read_source({"path": path, **wire}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources: [../../base]", {"o/dev", "base"}),
        ('resources: ["../../base/"]', {"o/dev", "base"}),
        ("resources:\n- ../../base\n- ..", {"o/dev", "base", "o"}),
        ("resources: [x/../../../base]", {"o/dev", "base"}),
        ('{"resources": ["..\\/..\\/base"]}', {"o/dev", "base"}),
        ("# see ... and more\nresources: [a.yaml]", {"o/dev"}),
        ("resources: [../../../../outside]", {"o/dev"}),
        ("resources: [../../base, '../../$(x)']", None),
    ],
)
def test_references_out_of_a_folder_are_followed(text: str, expected: set[str] | None) -> None:
    files = {"o/dev/kustomization.yaml": text, "base/kustomization.yaml": "resources: [a.yaml]", "base/a.yaml": CONFIG}
    reached = reach(files, "o/dev")
    assert reached == (None if expected is None else frozenset(expected))


def test_references_are_followed_transitively_and_cycles_end() -> None:
    files = {
        "a/kustomization.yaml": "resources: [../b]",
        "b/kustomization.yaml": "components: [../c]",
        "c/kustomization.yaml": "resources: [../a]",
    }
    assert reach(files, "a") == {"a", "b", "c"}


@pytest.mark.parametrize(
    "wire", [{"helm": {"valueFiles": ["/x.yaml"]}}, {"plugin": {}}, {"directory": {"jsonnet": {"libs": ["vendor"]}}}]
)
def test_reach_is_unknown_for_sources_that_may_read_any_file(wire: dict[str, object]) -> None:
    assert reach({"a/x.yaml": CONFIG}, "a", **wire) is None


def test_kustomize_components_of_the_application_are_reached() -> None:
    files = {"a/kustomization.yaml": "resources: []", "extra/kustomization.yaml": "kind: Component"}
    assert reach(files, "a", kustomize={"components": ["../extra"]}) == {"a", "extra"}


@pytest.mark.parametrize("seed", range(40))
def test_render_reads_no_file_outside_the_reach(seed: int) -> None:
    chance = Random(seed)
    folders = [f"{above}/{name}" for above in ("x", "y") for name in ("a", "b", "c")]
    files: dict[str, str] = {}
    for index, folder in enumerate(folders):
        others = [f"../../{other}" for other in folders[index + 1 :] if chance.random() < 0.4]
        patch = chance.choice(["", f"patches: [{{path: ../../{chance.choice(folders)}/p.yaml}}]\n"])
        files[f"{folder}/kustomization.yaml"] = f"resources: {['m.yaml', *others]}\nnamePrefix: p{index}-\n{patch}"
        files[f"{folder}/m.yaml"] = CONFIG
        files[f"{folder}/p.yaml"] = CONFIG
    tree, source = TextTree(files), read_source({"path": folders[0]})
    reached = SourceReach(tree).find_reach(folders[0], source)
    try:
        read = render(Checkout(tree, ""), Application(name="a"), source).inputs
    except ArgosyError:
        return
    for source_input in read:
        path = source_input.path.strip("/")
        if path in files:
            assert may_be_affected(reached, add_parent_folders([path])), f"{path} is read, and not reached"
