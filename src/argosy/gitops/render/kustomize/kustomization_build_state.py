"""One kustomization of a build: its fields, the files it refers to, and the resources it passes to its parent.

In: a build and a folder. Out: files and resources of that folder.
Never: reads a file outside the kustomization's folder unless the build allows it; applies a transformer.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.build_metadata import TRANSFORMER_ANNOTATIONS, TransformationRecord
from argosy.gitops.render.kustomize.build_restrictions_and_cluster_versions import (
    RESTRICTED_SETTINGS,
    KustomizeSettings,
)
from argosy.gitops.render.kustomize.kustomization_entry_cursor import EntryCursor
from argosy.gitops.render.kustomize.kustomization_file import KustomizationFile
from argosy.gitops.render.kustomize.merge_keys import OpenApiSchemas, find_builtin_schema
from argosy.gitops.render.kustomize.patches import FindSchema
from argosy.gitops.render.kustomize.remote_url_parser import is_local_path, looks_remote
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.resource_file_parser import read_resources
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.source_and_remote_trees import BuildTrees, TreeLocation
from argosy.gitops.render.kustomize.transformer_config import EMPTY_CONFIG, TransformerConfig
from argosy.gitops.render.kustomize.vars import KustomizeVar, merge_vars
from argosy.gitops.render.submodule_detection import find_submodule, format_submodule_error
from argosy.kube.objects import Manifest


class InflateChart(Protocol):
    """Renders the chart in a folder of a tree with Helm; `values` are paths in that tree or mappings, the last wins."""

    def __call__(
        self,
        tree: FileTree,
        chart: str,
        *,
        release_name: str = "",
        namespace: str = "",
        values: Sequence[str | Mapping[str, Any]] = (),
        include_crds: bool = False,
        skip_hooks: bool = False,
        skip_tests: bool = False,
        kube_version: str = "",
        api_versions: Sequence[str] = (),
    ) -> list[Manifest]: ...


class BuildTracer(Protocol):
    """Follows each field through a build, to find the file that wrote it."""

    def trace_file(self, text: bytes, file: str, resources: Sequence[KustomizeResource]) -> None: ...

    def trace_step(
        self, level: KustomizationLevel, resources: Sequence[KustomizeResource], plugin: KustomizeResource | None = None
    ) -> None: ...

    def finish(self, resources: Sequence[KustomizeResource]) -> None: ...


@dataclass
class AccumulatedResources:
    """The resources and configuration that a kustomization passes to its parent."""

    resources: KustomizeResources = field(default_factory=KustomizeResources)
    config: TransformerConfig = EMPTY_CONFIG
    variables: list[KustomizeVar] = field(default_factory=list)

    def absorb(self, other: AccumulatedResources) -> None:
        self.resources.extend(other.resources)
        self.config = self.config.merge(other.config)
        self.variables = merge_vars(self.variables, other.variables)


class KustomizeBuild:
    """One build: its trees, its settings, and counters for its limits."""

    def __init__(
        self, trees: BuildTrees, settings: KustomizeSettings = RESTRICTED_SETTINGS, inflate: InflateChart | None = None
    ) -> None:
        self.trees = trees
        self.settings = settings
        self.inflate = inflate
        self.folder_count = 0
        self.openapi: OpenApiSchemas | None = None
        self.metadata: frozenset[str] = frozenset()
        self.tracer: BuildTracer | None = None

    @property
    def find_schema(self) -> FindSchema:
        return self.openapi.find_schema if self.openapi else find_builtin_schema


class KustomizationLevel(EntryCursor):
    """The kustomization in one folder."""

    def __init__(
        self,
        build: KustomizeBuild,
        location: TreeLocation,
        kustomization: KustomizationFile,
        ancestors: tuple[TreeLocation, ...],
    ) -> None:
        self.build = build
        self.location = location
        super().__init__(kustomization)
        self.ancestors = ancestors

    def record_transformer(
        self, accumulated: AccumulatedResources, kind: str, plugin: KustomizeResource | None = None
    ) -> None:
        """Record a transformer with every current resource, if transformerAnnotations are requested, and trace it."""
        if TRANSFORMER_ANNOTATIONS in self.build.metadata:
            record = (
                TransformationRecord(plugin.file, kind, plugin.name, plugin.namespace)
                if plugin
                else TransformationRecord(self.file, kind)
            )
            for resource in accumulated.resources.items:
                resource.notes.setdefault("changes", []).append(record)
        if plugin is None:
            self.trace_step(accumulated)

    def trace_step(self, accumulated: AccumulatedResources, plugin: KustomizeResource | None = None) -> None:
        """Tell the tracer that the current entry, or a transformer plug-in, has been applied."""
        if self.build.tracer is not None:
            self.current_path = plugin.notes.get("entry", self.current_path) if plugin else self.current_path
            self.build.tracer.trace_step(self, accumulated.resources.items, plugin)

    def locate(self, path: str) -> TreeLocation:
        """Locate a path of this kustomization, in this tree or in a remote base."""
        if "://" in path and (remote := self.build.trees.locate_remote(path, self.file)):
            return remote
        local = self.location.build_tree.locate(self.location.path, path, self.file)
        if not local.kind:
            self.reject_submodule(local)
        # k8s: an existing file wins, even if its name looks like a URL.
        if local.kind == "file" or is_local_path(path):
            return local
        return self.build.trees.locate_remote(path, self.file) or local

    def reject_submodule(self, location: TreeLocation) -> None:
        if submodule := find_submodule(location.build_tree.tree, location.path):
            raise RenderError(format_submodule_error(submodule), where=self.file) from None

    def format_path(self, path: str) -> str:
        if looks_remote(path):
            return path
        return self.location.build_tree.format_path(posixpath.normpath(f"{self.location.path}/{path}".lstrip("/")))

    def read(self, path: str) -> bytes:
        """Read a file in the kustomization's folder or below."""
        return self.locate_file(path).read()

    def locate_file(self, path: str) -> TreeLocation:
        location = self.locate(path)
        if location.kind != "file":
            raise RenderError(
                f"{path} is not a file: use a file" if location.kind else format_missing_path(path, location),
                where=self.file,
            )
        return self.check_readable(location, path)

    def load_resources(self, location: TreeLocation) -> list[KustomizeResource]:
        entry = self.check_readable(location).build_tree.tree.find_entry(location.path)
        resources = read_resources(location.read(), location.display_path, entry.id if entry else "")
        if self.build.tracer is not None:
            self.build.tracer.trace_file(location.read(), location.display_path, resources)
        return resources

    def check_readable(self, location: TreeLocation, path: str = "") -> TreeLocation:
        # k8s: a remote base never reads outside its folders, whatever is permitted here.
        can_read_anywhere = self.build.settings.can_read_outside_folder and not location.build_tree.url
        if (
            location.build_tree is self.location.build_tree
            and not can_read_anywhere
            and not self.location.contains(location)
        ):
            message = f"{path or location.path} is outside the kustomization's folder: move it there, or make it a base"
            raise RenderError(message, where=self.file)
        return location


def format_missing_path(path: str, location: TreeLocation) -> str:
    """Say what is missing, also in kustomize's words, which users search for."""
    problem = f"open {location.path}: no such file or directory"
    return f"{path} does not exist ({problem}): add it or correct the path"
