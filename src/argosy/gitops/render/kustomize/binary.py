"""Builds with an external `kustomize` program, for sources that request another version.

In: a tree, a path, the program. Out: the manifests that it prints. Never: used unless a setting names the program;
reaches the network, so remote bases are not available.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.external_program import Command, manifests_in, output_of
from argosy.gitops.render.kustomize.build_trees import Grounds
from argosy.gitops.render.kustomize.kustomization_file import kustomization_file, read_kustomization
from argosy.gitops.render.kustomize.options import overridden
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.gitops.render.tree_export import exported
from argosy.isolation.limits import ProgramLimits
from argosy.kube.objects import Manifest, dump

LIMITS = ProgramLimits(wall=60, cpu=60, memory=1 << 30, output=64 << 20, scratch=64 << 20)
DEFAULT = "default"
_SETTING = "kustomize.binary."


def chosen(version: str, binaries: Mapping[str, str]) -> str:
    """Return the program for the requested version; empty if the native build is used."""
    if version and version not in binaries:
        message = f"kustomize {version} is not configured; set {_SETTING}{version} in argosy-cm to its path"
        raise RenderError(message, where="source.kustomize.version")
    return binaries.get(version or DEFAULT, "")


def build_with(
    binary: str,
    tree: Tree,
    path: str,
    *,
    options: KustomizeOptions | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    limits: ProgramLimits = LIMITS,
) -> list[Manifest]:
    """Run `BINARY build PATH`; `arguments` are kustomize.buildOptions that were checked before.

    A setting of several words, such as `kubectl kustomize`, is the whole command except the path.
    """
    words = _words(binary)
    extra = _edited(tree, path, options, environment or {}) if options is not None else {}
    with exported(tree, extra=extra) as root:
        argv = (*words, *arguments, str(root / path))
        command = Command(argv, words[0].rpartition("/")[2], root, path, limits, {})
        return manifests_in(output_of(command), command)


def _words(binary: str) -> list[str]:
    try:
        words = shlex.split(binary)
    except ValueError as problem:
        raise RenderError(f"invalid command {binary!r} ({problem}); correct the quotes", where=_SETTING + "…") from None
    if not words:
        raise RenderError("is empty; set the path of a program", where=_SETTING + "…")
    return words if len(words) > 1 else [*words, "build"]


def _edited(tree: Tree, path: str, options: KustomizeOptions, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Return the kustomization file with the Application's overrides; empty if they change nothing."""
    spot = Grounds(tree).own.find("", path, path)
    found = kustomization_file(tree, spot.path)
    if found is None:
        return {}  # the program reports it
    file = located(tree, found, path or ".")[0]
    read = read_kustomization(tree.read(file), file)
    made = overridden(read, options, spot, lambda text: substitute(text, environment))
    return {} if made.fields == read.fields else {file: dump(made.fields).encode()}
