"""Builds with an external `kustomize` program, for sources that request another version.

In: a tree, a path, the program. Out: the manifests that it prints. Never: used unless a setting names the program;
reaches the network, so remote bases are not available.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.external_program import Command, read_manifests, run_program
from argosy.gitops.render.kustomize.application_overrides import apply_kustomize_options
from argosy.gitops.render.kustomize.kustomization_file import find_kustomization_file, read_kustomization
from argosy.gitops.render.kustomize.source_and_remote_trees import BuildTrees
from argosy.gitops.render.kustomize.tree_paths import resolve_path
from argosy.gitops.render.tree_export import export_tree
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.kube.objects import Manifest, dump_yaml

KUSTOMIZE_PROGRAM_LIMITS = ProgramLimits(wall=60, cpu=60, memory=1 << 30, output=64 << 20, scratch=64 << 20)
DEFAULT_VERSION = "default"
_SETTING_PREFIX = "kustomize.binary."


def choose_binary(version: str, binaries: Mapping[str, str]) -> str:
    """Return the program for the requested version; empty if the native build is used."""
    if version and version not in binaries:
        message = f"kustomize {version} is not configured; set {_SETTING_PREFIX}{version} in argosy-cm to its path"
        raise RenderError(message, where="source.kustomize.version")
    return binaries.get(version or DEFAULT_VERSION, "")


def build_with_binary(
    binary: str,
    tree: FileTree,
    path: str,
    *,
    options: KustomizeOptions | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    limits: ProgramLimits = KUSTOMIZE_PROGRAM_LIMITS,
) -> list[Manifest]:
    """Run `BINARY build PATH`; `arguments` are kustomize.buildOptions that were checked before.

    A setting of several words, such as `kubectl kustomize`, is the whole command except the path.
    """
    words = _split_command(binary)
    extra = _build_edited_file(tree, path, options, environment or {}) if options is not None else {}
    with export_tree(tree, extra=extra) as root:
        argv = (*words, *arguments, str(root / path))
        command = Command(argv, words[0].rpartition("/")[2], root, path, limits, {})
        return read_manifests(run_program(command), command)


def _split_command(binary: str) -> list[str]:
    try:
        words = shlex.split(binary)
    except ValueError as problem:
        raise RenderError(
            f"invalid command {binary!r} ({problem}); correct the quotes", where=_SETTING_PREFIX + "…"
        ) from None
    if not words:
        raise RenderError("is empty; set the path of a program", where=_SETTING_PREFIX + "…")
    return words if len(words) > 1 else [*words, "build"]


def _build_edited_file(
    tree: FileTree, path: str, options: KustomizeOptions, environment: Mapping[str, str]
) -> dict[str, bytes]:
    """Return the kustomization file with the Application's overrides; empty if they change nothing."""
    location = BuildTrees(tree).source_tree.locate("", path, path)
    kustomization_path = find_kustomization_file(tree, location.path)
    if kustomization_path is None:
        return {}  # the program reports it
    file = resolve_path(tree, kustomization_path, path or ".")[0]
    original = read_kustomization(tree.read_file(file), file)
    edited = apply_kustomize_options(original, options, location, lambda text: substitute(text, environment))
    return {} if edited.fields == original.fields else {file: dump_yaml(edited.fields).encode()}
