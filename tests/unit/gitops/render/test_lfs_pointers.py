"""A Git LFS pointer is reported as such, because Git has only the pointer and not the file."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import Application, DirectoryOptions, Source, read_source
from argosy.gitops.application.lfs_pointers import is_lfs_pointer
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import render
from argosy.gitops.render.tree_export import export_tree
from support.file_trees import TextTree

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
SAID = "is a Git LFS pointer, and not the file itself"


def rendered(files: dict[str, str], source: Source | None = None) -> list[dict[str, Any]]:
    result = render(Checkout(TextTree(files), "r"), Application(name="app"), source or Source(path="app"))
    return list(result.manifests)


@pytest.mark.parametrize("name", ["model.yaml", "model.yml", "model.json", "model.jsonnet"])
def test_manifest_in_git_lfs_is_an_error(name: str) -> None:
    files = {"app/config.yaml": CONFIG, f"app/{name}": POINTER}
    with pytest.raises(RenderError, match=rf"app/{name}: {SAID}"):
        rendered(files)


def test_files_without_manifests_may_be_in_git_lfs() -> None:
    files = {"app/config.yaml": CONFIG, "app/model.onnx": POINTER, "app/skipped.yaml": POINTER}
    source = Source(path="app", directory=DirectoryOptions(exclude="skipped.yaml"))
    assert [manifest["metadata"]["name"] for manifest in rendered(files, source)] == ["a"]


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [big.yaml]",
        "patches: [{path: big.yaml}]",
        "configMapGenerator: [{name: model, files: [big.yaml]}]",
        "resources: [base]",
    ],
)
def test_lfs_pointer_that_a_kustomization_reads_is_an_error(kustomization: str) -> None:
    files = {"app/kustomization.yaml": kustomization, "app/big.yaml": POINTER, "app/base/kustomization.yaml": POINTER}
    with pytest.raises(RenderError, match=SAID):
        rendered(files)


@pytest.mark.parametrize("file", ["Chart.yaml", "prod.yaml"])
def test_lfs_pointer_in_a_chart_is_an_error(file: str) -> None:
    files = {"app/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n", "app/prod.yaml": "a: 1\n"}
    source = read_source({"path": "app", "helm": {"valueFiles": ["prod.yaml"]}})
    with pytest.raises(RenderError, match=rf"app/{file}: {SAID}"):
        rendered({**files, f"app/{file}": POINTER}, source)


@pytest.mark.parametrize("file", ["app/templates/a.yaml", "app/charts/redis-1.0.0.tgz", "app/templates/_helpers.tpl"])
def test_lfs_pointer_that_helm_reads_is_not_exported(file: str) -> None:
    with pytest.raises(RenderError, match=f"{file}: {SAID}"), export_tree(TextTree({file: POINTER}), ["app"]):
        raise AssertionError("nothing must be exported")
    with export_tree(TextTree({"app/logo.png": POINTER}), ["app"]) as folder:
        assert (folder / "app/logo.png").read_text() == POINTER


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (POINTER, True),
        (POINTER.replace("\n", "\r\n"), True),
        (POINTER.replace("git-lfs.github.com", "hawser.github.com"), True),
        (CONFIG, False),
        ("version https://git-lfs.github.com/spec/v1\n", False),
        (POINTER + "x" * 2000, False),
        ("", False),
    ],
)
def test_lfs_pointer_is_recognized_by_its_first_lines_and_size(text: str, is_one: bool) -> None:
    assert is_lfs_pointer(text.encode()) is is_one
