"""A `kustomize` of another version, where settings name one: the program builds, confined, instead of us.

In: a tree, a path, the program. Out: the manifests that it prints. Never: is used unless a setting names the program;
reaches the network, so remote bases are out of its reach.
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
    """The program for the version that a source asks for; nothing where we build ourselves."""
    if version and version not in binaries:
        message = f"no setting names a kustomize {version}; set {_SETTING}{version} in argosy-cm to its path"
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
    """What `BINARY build PATH` prints; `arguments` are kustomize.buildOptions that were checked before.

    A setting of several words, such as `kubectl kustomize`, is all of the command but the path.
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
        raise RenderError(f"{binary!r} is no command ({problem}); correct the quotes", where=_SETTING + "…") from None
    if not words:
        raise RenderError("names no program; set the path of one", where=_SETTING + "…")
    return words if len(words) > 1 else [*words, "build"]


def _edited(tree: Tree, path: str, options: KustomizeOptions, environment: Mapping[str, str]) -> dict[str, bytes]:
    """The kustomization with what the Application sets; nothing if that is nothing: the program then reads the file."""
    spot = Grounds(tree).own.find("", path, path)
    found = kustomization_file(tree, spot.path)
    if found is None:
        return {}  # the program says it in its own words
    file = located(tree, found, path or ".")[0]
    read = read_kustomization(tree.read(file), file)
    made = overridden(read, options, spot, lambda text: substitute(text, environment))
    return {} if made.fields == read.fields else {file: dump(made.fields).encode()}
