"""Accumulates a kustomization with its bases and components. In: a folder of a tree. Out: transformed resources.

Never: a file outside the kustomization's folder (unless the build allows it), a folder that is already being read, or
the network; the caller of the build provides the trees of remote bases.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import LimitError, RenderError, UserError
from argosy.gitops.render.kustomize import charts, plugins, transformation_order
from argosy.gitops.render.kustomize.build_level import Accumulated, Build, Level, missing
from argosy.gitops.render.kustomize.build_metadata import Step
from argosy.gitops.render.kustomize.build_trees import Spot
from argosy.gitops.render.kustomize.crds import crd_config, read_openapi
from argosy.gitops.render.kustomize.documents import read_resources
from argosy.gitops.render.kustomize.error_lines import Fault
from argosy.gitops.render.kustomize.field_spec_config import Config, default_config, read_config
from argosy.gitops.render.kustomize.generators import generate
from argosy.gitops.render.kustomize.kustomization_file import kustomization_file, read_kustomization
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.resources import Addresses
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.gitops.render.kustomize.vars import bound, declare
from argosy.gitops.render.lfs_check import refuse_pointer

_DEEPEST: Final = 50
_SCHEMAS: Final = "v1.21.2"
_MOST_FOLDERS: Final = 5_000
_MOST_RESOURCES: Final = 50_000


def open_folder(build: Build, spot: Spot, where: str, within: tuple[Spot, ...]) -> Accumulator:
    """Open the kustomization in a folder."""
    build.folders += 1
    if len(within) > _DEEPEST or build.folders > _MOST_FOLDERS:
        message = f"more than {_DEEPEST} nested kustomizations or {_MOST_FOLDERS} folders: flatten them"
        raise LimitError(message, where=where)
    ground, folder, _ = spot
    file = kustomization_file(ground.tree, folder)
    if file is None:
        place = spot.name if folder or ground.url else "the root folder"
        raise RenderError(f"there is no kustomization.yaml in {place}: add one or correct the path", where=where)
    file, _ = located(ground.tree, file, where)
    text = refuse_pointer(ground.tree.read(file), ground.name(file))
    return Accumulator(build, spot, read_kustomization(text, ground.name(file)), (*within, spot))


class Accumulator(Level):
    """Reads the resources of a folder and of everything it refers to, and transforms them."""

    def accumulate(self, into: Accumulated) -> Accumulated:
        try:
            return self._accumulate(into)
        except UserError as error:
            self.locate(error, self.build.grounds.read)
            raise

    def _accumulate(self, into: Accumulated) -> Accumulated:
        kustomization = self.kustomization
        self.at = ("openapi",)
        openapi = kustomization.get("openapi") or {}
        if (version := openapi.get("version")) and version != _SCHEMAS:
            raise RenderError(f"openapi.version is {version!r}: only {_SCHEMAS} is supported", where=self.file)
        if version and openapi.get("path"):
            raise RenderError("openapi has both a version and a path: keep one of them", where=self.file)
        if path := openapi.get("path"):
            self.build.openapi = read_openapi(self.read(path), self.name(path))
        self._add_resources(into)
        into.config = into.config.merge(self._config())
        for path in self.entries("crds"):
            into.config = into.config.merge(crd_config(self.read(path), self.name(path)))
        self._generate(into)
        for path in self.entries("components"):
            self._add_component(into, path)
        transformation_order.transform(self, into)
        for each in self.plugins("transformers"):
            plugins.transform(self, into, each)
            self.mark(into, each.manifest["kind"], each)
            self.trace(into, each)
            into.resources.drop_empty()
        for _ in self.entries("validators"):
            raise RenderError("validators run programs, which is not allowed: remove them", where=self.file)
        found = [bound(each, into.resources, self.file, self.at) for each in self.entries("vars")]
        into.variables = declare(into.variables, found)
        if len(into.resources.listed) > _MOST_RESOURCES:
            raise LimitError(f"more than {_MOST_RESOURCES} resources: split the kustomization", where=self.file)
        return into

    def _add_resources(self, into: Accumulated) -> None:
        known: Addresses | None = None
        for path in self.entries("resources"):
            if not path:
                raise RenderError("an entry of resources is empty: remove it", where=self.file)
            spot = self.find(path)
            if spot.kind == "file":
                known = into.resources.addresses() if known is None else known
                into.resources.add_all(self.resources_of(spot), known)
            elif spot.kind == "folder":
                self._absorb(into, spot, path)
                known = None
            else:
                raise RenderError(missing(path), where=self.file)

    def _absorb(self, into: Accumulated, spot: Spot, path: str) -> None:
        level = self.enter(spot, path)
        if level.kustomization.is_component:
            raise RenderError(f"{path} is a Component: list it in components, not in resources", where=self.file)
        into.absorb(level.accumulate(Accumulated()))

    def _add_component(self, into: Accumulated, path: str) -> None:
        spot = self.find(path)
        if spot.kind != "folder":
            what = f"{path} is not a folder" if spot.kind else missing(path)
            raise RenderError(f"components: {what}", where=self.file)
        level = self.enter(spot, path)
        if not level.kustomization.is_component:
            message = f"{path} is not a Component: set its kind to Component, or list it in resources"
            raise RenderError(message, where=self.file)
        level.accumulate(into)

    def enter(self, spot: Spot, path: str) -> Accumulator:
        if any(spot.holds(each) for each in self.within):
            place = spot.name or "the root folder"
            raise RenderError(f"{path} is a cycle: {place} is or contains its referrer", where=self.file)
        try:
            return open_folder(self.build, spot, self.file, self.within)
        except RenderError:
            self.refuse_submodule(spot)
            raise

    def _config(self) -> Config:
        config = default_config()
        for path in self.entries("configurations"):
            config = config.merge(read_config(self.read(path), self.name(path)))
        return config

    def _generate(self, into: Accumulated) -> None:
        shared = self.kustomization.get("generatorOptions") or {}
        for name, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
            for given in self.entries(name):
                made = generate(kind, given, shared, self.read, self.file)
                made.notes["made"] = Step(self.file, f"{kind}Generator")
                transformation_order.place(into.resources, made, self.file)
                self.trace(into)
        for number, chart in enumerate(charts.wanted(self.kustomization)):
            self.at = ("helmCharts", number)
            for resource in charts.inflated(self, chart, self.file):
                resource.notes["made"] = Step(self.file, charts.PLUGIN)
                transformation_order.place(into.resources, resource, self.file)
            self.trace(into)
        for each in self.plugins("generators"):
            for resource in plugins.generated(self, each):
                resource.notes["made"] = Step(each.file, each.manifest["kind"], each.name)
                transformation_order.place(into.resources, resource, self.file)
            self.trace(into, each)

    def plugins(self, field: str) -> list[Resource]:
        found: list[Resource] = []
        for text in self.entries(field):
            known = len(found)
            if "\n" in text.strip():
                try:
                    found += read_resources(text.encode(), self.file)
                except RenderError as error:
                    raise Fault(error.message, where=self.file, said_at=error.line) from error
            else:
                found += self._plugins_of(self.find(text), text)
            for each in found[known:]:
                each.notes["entry"] = self.at
        return found

    def _plugins_of(self, spot: Spot, text: str) -> list[Resource]:
        if spot.kind == "file":
            return self.resources_of(spot)
        if spot.kind == "folder":
            return self.enter(spot, text).accumulate(Accumulated()).resources.listed
        raise RenderError(missing(text), where=self.file)
