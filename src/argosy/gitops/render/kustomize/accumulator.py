"""Accumulates a kustomization with its bases and components. In: a folder of a tree. Out: transformed resources.

Never: a file outside the kustomization's folder (unless the build allows it), a folder that is already being read, or
the network; the caller of the build provides the trees of remote bases.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import LimitError, RenderError, UserError
from argosy.gitops.render.kustomize import builtin_plugins, charts, transformer_pipeline
from argosy.gitops.render.kustomize.build_metadata import TransformationRecord
from argosy.gitops.render.kustomize.crds import read_crd_config, read_openapi
from argosy.gitops.render.kustomize.error_lines import LocatedError
from argosy.gitops.render.kustomize.generators import generate_resource
from argosy.gitops.render.kustomize.kustomization_build_state import (
    AccumulatedResources,
    KustomizationLevel,
    KustomizeBuild,
    format_missing_path,
)
from argosy.gitops.render.kustomize.kustomization_file import find_kustomization_file, read_kustomization
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.resource_file_parser import read_resources
from argosy.gitops.render.kustomize.resource_map import ResourcesById
from argosy.gitops.render.kustomize.source_and_remote_trees import TreeLocation
from argosy.gitops.render.kustomize.transformer_config import TransformerConfig, load_default_config, read_config
from argosy.gitops.render.kustomize.tree_paths import resolve_path
from argosy.gitops.render.kustomize.vars import bind_var, declare_vars
from argosy.gitops.render.lfs_check import reject_lfs_pointer

_MAX_DEPTH: Final = 50
_OPENAPI_VERSION: Final = "v1.21.2"
_MAX_FOLDERS: Final = 5_000
_MAX_RESOURCES: Final = 50_000


def open_kustomization(
    build: KustomizeBuild, location: TreeLocation, where: str, ancestors: tuple[TreeLocation, ...]
) -> Accumulator:
    """Open the kustomization in a folder."""
    build.folder_count += 1
    if len(ancestors) > _MAX_DEPTH or build.folder_count > _MAX_FOLDERS:
        message = f"more than {_MAX_DEPTH} nested kustomizations or {_MAX_FOLDERS} folders: flatten them"
        raise LimitError(message, where=where)
    build_tree, folder, _ = location
    file = find_kustomization_file(build_tree.tree, folder)
    if file is None:
        folder_text = location.display_path if folder or build_tree.url else "the root folder"
        raise RenderError(f"there is no kustomization.yaml in {folder_text}: add one or correct the path", where=where)
    file, _ = resolve_path(build_tree.tree, file, where)
    text = reject_lfs_pointer(build_tree.tree.read_file(file), build_tree.format_path(file))
    return Accumulator(build, location, read_kustomization(text, build_tree.format_path(file)), (*ancestors, location))


class Accumulator(KustomizationLevel):
    """Reads the resources of a folder and of everything it refers to, and transforms them."""

    def accumulate(self, accumulated: AccumulatedResources) -> AccumulatedResources:
        try:
            return self._accumulate(accumulated)
        except UserError as error:
            self.set_error_location(error, self.build.trees.read_file)
            raise

    def _accumulate(self, accumulated: AccumulatedResources) -> AccumulatedResources:
        kustomization = self.kustomization
        self.current_path = ("openapi",)
        openapi = kustomization.get("openapi") or {}
        if (version := openapi.get("version")) and version != _OPENAPI_VERSION:
            raise RenderError(f"openapi.version is {version!r}: only {_OPENAPI_VERSION} is supported", where=self.file)
        if version and openapi.get("path"):
            raise RenderError("openapi has both a version and a path: keep one of them", where=self.file)
        if path := openapi.get("path"):
            self.build.openapi = read_openapi(self.read(path), self.format_path(path))
        self._add_resources(accumulated)
        accumulated.config = accumulated.config.merge(self._read_config())
        for path in self.iterate_entries("crds"):
            accumulated.config = accumulated.config.merge(read_crd_config(self.read(path), self.format_path(path)))
        self._generate(accumulated)
        for path in self.iterate_entries("components"):
            self._add_component(accumulated, path)
        transformer_pipeline.run_transformers(self, accumulated)
        for plugin in self.list_plugins("transformers"):
            builtin_plugins.run_transformer(self, accumulated, plugin)
            self.record_transformer(accumulated, plugin.manifest["kind"], plugin)
            self.trace_step(accumulated, plugin)
            accumulated.resources.drop_empty()
        for _ in self.iterate_entries("validators"):
            raise RenderError("validators run programs, which is not allowed: remove them", where=self.file)
        variables = [
            bind_var(plugin, accumulated.resources, self.file, self.current_path)
            for plugin in self.iterate_entries("vars")
        ]
        accumulated.variables = declare_vars(accumulated.variables, variables)
        if len(accumulated.resources.items) > _MAX_RESOURCES:
            raise LimitError(f"more than {_MAX_RESOURCES} resources: split the kustomization", where=self.file)
        return accumulated

    def _add_resources(self, accumulated: AccumulatedResources) -> None:
        by_id: ResourcesById | None = None
        for path in self.iterate_entries("resources"):
            if not path:
                raise RenderError("an entry of resources is empty: remove it", where=self.file)
            location = self.locate(path)
            if location.kind == "file":
                by_id = accumulated.resources.index_by_id() if by_id is None else by_id
                accumulated.resources.add_all(self.load_resources(location), by_id)
            elif location.kind == "folder":
                self._add_base(accumulated, location, path)
                by_id = None
            else:
                raise RenderError(format_missing_path(path, location), where=self.file)

    def _add_base(self, accumulated: AccumulatedResources, location: TreeLocation, path: str) -> None:
        level = self.open_base(location, path)
        if level.kustomization.is_component:
            raise RenderError(f"{path} is a Component: list it in components, not in resources", where=self.file)
        accumulated.absorb(level.accumulate(AccumulatedResources()))

    def _add_component(self, accumulated: AccumulatedResources, path: str) -> None:
        location = self.locate(path)
        if location.kind != "folder":
            reason = f"{path} is not a folder" if location.kind else format_missing_path(path, location)
            raise RenderError(f"components: {reason}", where=self.file)
        level = self.open_base(location, path)
        if not level.kustomization.is_component:
            message = f"{path} is not a Component: set its kind to Component, or list it in resources"
            raise RenderError(message, where=self.file)
        level.accumulate(accumulated)

    def open_base(self, location: TreeLocation, path: str) -> Accumulator:
        if any(location.contains(ancestor) for ancestor in self.ancestors):
            folder_text = location.display_path or "the root folder"
            raise RenderError(f"{path} is a cycle: {folder_text} is or contains its referrer", where=self.file)
        try:
            return open_kustomization(self.build, location, self.file, self.ancestors)
        except RenderError:
            self.reject_submodule(location)
            raise

    def _read_config(self) -> TransformerConfig:
        config = load_default_config()
        for path in self.iterate_entries("configurations"):
            config = config.merge(read_config(self.read(path), self.format_path(path)))
        return config

    def _generate(self, accumulated: AccumulatedResources) -> None:
        shared_options = self.kustomization.get("generatorOptions") or {}
        for name, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
            for arguments in self.iterate_entries(name):
                generated = generate_resource(kind, arguments, shared_options, self.read, self.file)
                generated.notes["made"] = TransformationRecord(self.file, f"{kind}Generator")
                transformer_pipeline.add_generated(accumulated.resources, generated, self.file)
                self.trace_step(accumulated)
        for i, chart in enumerate(charts.list_charts(self.kustomization)):
            self.current_path = ("helmCharts", i)
            for resource in charts.inflate_chart(self, chart, self.file):
                resource.notes["made"] = TransformationRecord(self.file, charts.PLUGIN_KIND)
                transformer_pipeline.add_generated(accumulated.resources, resource, self.file)
            self.trace_step(accumulated)
        for plugin in self.list_plugins("generators"):
            for resource in builtin_plugins.run_generator(self, plugin):
                resource.notes["made"] = TransformationRecord(plugin.file, plugin.manifest["kind"], plugin.name)
                transformer_pipeline.add_generated(accumulated.resources, resource, self.file)
            self.trace_step(accumulated, plugin)

    def list_plugins(self, field: str) -> list[KustomizeResource]:
        plugin_resources: list[KustomizeResource] = []
        for text in self.iterate_entries(field):
            previous_count = len(plugin_resources)
            if "\n" in text.strip():
                try:
                    plugin_resources += read_resources(text.encode(), self.file)
                except RenderError as error:
                    raise LocatedError(error.message, where=self.file, text_line=error.line) from error
            else:
                plugin_resources += self._load_plugins(self.locate(text), text)
            for plugin in plugin_resources[previous_count:]:
                plugin.notes["entry"] = self.current_path
        return plugin_resources

    def _load_plugins(self, location: TreeLocation, text: str) -> list[KustomizeResource]:
        if location.kind == "file":
            return self.load_resources(location)
        if location.kind == "folder":
            return self.open_base(location, text).accumulate(AccumulatedResources()).resources.items
        raise RenderError(format_missing_path(text, location), where=self.file)
