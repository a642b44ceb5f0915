"""A local folder as the source of an Application, for --local: unpushed changes are compared with the live objects.

In: an Application, a folder. Out: the Application with that source; repositories that contain only the folder. Never:
fetches a repository.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.gitops.application import Application, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.enclosing_repository_lookup import locate_folder

LOCAL_REVISION: Final = "local"  # revision of a local folder


class LocalRepositories(Repositories):
    """Returns the local folder for every repository."""

    tree: FolderTree

    async def checkout(self, url: str, ref: str, **_: object) -> Checkout:
        return Checkout(self.tree, LOCAL_REVISION)


def use_local_folder(app: Application, path: str, root: str = "") -> tuple[Application, Path]:
    """Replace the source's path by a local folder; also return the root of its tree."""
    if len(app.sources) != 1:
        message = "has several sources, but --local replaces only one; push a branch and use --revision"
        raise UserError(f"{app.name} {message}")
    location = locate_folder(path)
    top = Path(root).resolve() if root else Path(location.root)
    source_folder = (Path(location.root) / location.path).resolve()
    if not source_folder.is_relative_to(top):
        raise UserError(f"{path} is not below {root}; name one of its parent folders", where="--local-repo-root")
    source = read_source({**app.sources[0].wire, "path": str(source_folder.relative_to(top)) or "."})
    return replace(app, sources=(source,)), top
