"""Finds the folder that contains all bases of a kustomization outside of a Git repository.

In: a folder on this machine, and the folder that would be its tree. Out: the folder that contains the bases, too.
Never: extends the tree for a file: Kustomize itself rejects files outside of the kustomization's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from argosy.errors import UserError
from argosy.gitops.render.kustomize.kustomization_file import KUSTOMIZATION_FILE_NAMES, read_kustomization
from argosy.gitops.render.kustomize.remote_url_parser import is_local_path
from argosy.gitops.workspace.enclosing_repository_lookup import TreePath, find_enclosing_repository, locate_folder

FOLDER_FIELDS: Final = ("resources", "components", "generators", "transformers")  # fields whose entries may be folders
MAX_FOLDERS: Final = 5_000  # as in a build, which then reports that there are too many


def find_root_with_bases(root: str, folder: str) -> str:
    """Return `root`, or the parent folder that contains every base of the kustomization in `folder`.

    In a Git repository it is always `root`: Argo CD reads nothing outside of a repository.
    """
    if find_enclosing_repository(root) is not None:
        return root
    pending, seen = [folder], {folder}
    while pending and len(seen) <= MAX_FOLDERS:
        for base in _list_bases(pending.pop()):
            if os.path.isfile(base):
                continue
            root = os.path.commonpath([root, base if os.path.isdir(base) else os.path.dirname(base)])
            real = os.path.realpath(base)
            if os.path.isdir(real) and real not in seen:
                root = os.path.commonpath([root, real])
                seen.add(real)
                pending.append(real)
    return root


def _list_bases(folder: str) -> Iterator[str]:
    """Yield the paths in a kustomization that may be folders. An unreadable kustomization has none."""
    files = [file for name in KUSTOMIZATION_FILE_NAMES if os.path.isfile(file := os.path.join(folder, name))]
    if len(files) != 1:
        return
    try:
        with open(files[0], "rb") as stream:
            kustomization = read_kustomization(stream.read(), files[0])
    except (OSError, UserError):
        return  # the build reports the error
    for field in FOLDER_FIELDS:
        for entry in kustomization.get_list(field):
            if isinstance(entry, str) and _may_be_folder(entry):
                yield os.path.normpath(os.path.join(folder, entry))


def _may_be_folder(entry: str) -> bool:
    return is_local_path(entry) and not entry.startswith("/") and not any(character in entry for character in "\n\0")


def locate_with_bases(typed: str) -> TreePath:
    """Locate a typed folder in a tree that contains its bases, too."""
    root, inner = locate_folder(typed)
    folder = os.path.join(root, inner) if inner else root
    root = find_root_with_bases(root, folder)
    inner = os.path.relpath(folder, root)
    return TreePath(root, "" if inner == os.curdir else inner)
