"""The folders of a repository that the page proposes as sources."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.errors import UnnamedSubmodule
from argosy.features.repositories.app_details import AppFolder, list_app_folders
from argosy.gitops.application.file_tree_protocol import TreeEntry
from support.file_trees import TextTree


class TreeWithUnnamedSubmodule(TextTree):
    """A tree whose folder `lib` is a submodule that .gitmodules does not name."""

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        if path == "lib":
            raise UnnamedSubmodule("no url found for submodule path 'lib' in .gitmodules")
        return super().list_folder(path)


def test_submodule_that_gitmodules_does_not_name_hides_no_other_folder() -> None:
    tree = TreeWithUnnamedSubmodule({"app/Chart.yaml": "", "lib/Chart.yaml": "", "web/kustomization.yaml": ""})
    assert list_app_folders(tree) == [AppFolder("app", "Helm"), AppFolder("web", "Kustomize")]
