"""A kustomization with all it stands on. In: a folder of a tree. Out: its resources, transformed, and what flows up.

Never: a file outside of the kustomization that names it (unless the build allows that), a folder that is already
being read, or the network; trees of remote bases come from whoever started the build.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from argosy.errors import LimitError, RenderError, UserError
from argosy.gitops.render.kustomize import charts, plugins, transformation_order
from argosy.gitops.render.kustomize.build_metadata import CHANGES, Step
from argosy.gitops.render.kustomize.build_trees import Grounds, Spot
from argosy.gitops.render.kustomize.crds import crd_config, read_openapi
from argosy.gitops.render.kustomize.documents import read_resources
from argosy.gitops.render.kustomize.entry_cursor import Cursor
from argosy.gitops.render.kustomize.error_lines import Fault
from argosy.gitops.render.kustomize.field_spec_config import EMPTY, Config, default_config, read_config
from argosy.gitops.render.kustomize.generators import generate
from argosy.gitops.render.kustomize.kustomization_file import Kustomization, kustomization_file, read_kustomization
from argosy.gitops.render.kustomize.merge_keys import Definitions, builtin_node
from argosy.gitops.render.kustomize.patches import SchemaOf
from argosy.gitops.render.kustomize.permissions import NOTHING, Permits
from argosy.gitops.render.kustomize.remote_bases import is_plain_path, looks_remote
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.resources import Addresses, Resources
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.gitops.render.kustomize.vars import Var, bound, declare, merge_vars
from argosy.gitops.render.lfs_check import refuse_pointer
from argosy.gitops.render.submodules import find_submodule, submodule_text

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.field_tracing import Tracer

_DEEPEST: Final = 50
_SCHEMAS: Final = "v1.21.2"
_MOST_FOLDERS: Final = 5_000
_MOST_RESOURCES: Final = 50_000


@dataclass
class Accumulated:
    """What a kustomization hands to the one that uses it."""

    resources: Resources = field(default_factory=Resources)
    config: Config = EMPTY
    variables: list[Var] = field(default_factory=list)

    def absorb(self, other: Accumulated) -> None:
        self.resources.extend(other.resources)
        self.config = self.config.merge(other.config)
        self.variables = merge_vars(self.variables, other.variables)


class Build:
    """One run: where its files are, what it may do, and the limits over all of it."""

    def __init__(self, grounds: Grounds, permits: Permits = NOTHING, inflate: charts.Inflate | None = None) -> None:
        self.grounds = grounds
        self.permits = permits
        self.inflate = inflate
        self.folders = 0
        self.openapi: Definitions | None = None
        self.metadata: frozenset[str] = frozenset()
        self.tracer: Tracer | None = None

    @property
    def schemas(self) -> SchemaOf:
        return self.openapi.node if self.openapi else builtin_node

    def open(self, spot: Spot, where: str, within: tuple[Spot, ...]) -> Level:
        self.folders += 1
        if len(within) > _DEEPEST or self.folders > _MOST_FOLDERS:
            message = (
                f"kustomizations stand on more than {_DEEPEST} others or read {_MOST_FOLDERS} folders: flatten them"
            )
            raise LimitError(message, where=where)
        ground, folder, _ = spot
        file = kustomization_file(ground.tree, folder)
        if file is None:
            place = spot.name if folder or ground.url else "the root folder"
            raise RenderError(f"there is no kustomization.yaml in {place}: add one or correct the path", where=where)
        file, _ = located(ground.tree, file, where)
        text = refuse_pointer(ground.tree.read(file), ground.name(file))
        return Level(self, spot, read_kustomization(text, ground.name(file)), (*within, spot))


class Level(Cursor):
    """One kustomization's folder."""

    def __init__(self, build: Build, spot: Spot, kustomization: Kustomization, within: tuple[Spot, ...]) -> None:
        self.build = build
        self.spot = spot
        super().__init__(kustomization)
        self.within = within

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
            raise RenderError(f"openapi.version is {version!r}: there is only {_SCHEMAS}", where=self.file)
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
            raise RenderError("validators run programs, which is refused: remove them", where=self.file)
        found = [bound(each, into.resources, self.file, self.at) for each in self.entries("vars")]
        into.variables = declare(into.variables, found)
        if len(into.resources.listed) > _MOST_RESOURCES:
            raise LimitError(f"more than {_MOST_RESOURCES} resources: split the kustomization", where=self.file)
        return into

    def mark(self, into: Accumulated, kind: str, plugin: Resource | None = None) -> None:
        """Notes a transformer with every resource that there is, where someone wants to know."""
        if CHANGES in self.build.metadata:
            step = Step(plugin.file, kind, plugin.name, plugin.namespace) if plugin else Step(self.file, kind)
            for each in into.resources.listed:
                each.notes.setdefault("changes", []).append(step)
        if plugin is None:
            self.trace(into)

    def trace(self, into: Accumulated, plugin: Resource | None = None) -> None:
        """Lets whoever follows fields see what the entry at hand, or a transformer, has done."""
        if self.build.tracer is not None:
            self.at = plugin.notes.get("entry", self.at) if plugin else self.at
            self.build.tracer.step(self, into.resources.listed, plugin)

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
                raise RenderError(_missing(path), where=self.file)

    def _absorb(self, into: Accumulated, spot: Spot, path: str) -> None:
        level = self.enter(spot, path)
        if level.kustomization.is_component:
            raise RenderError(f"{path} is a Component: list it in components, not in resources", where=self.file)
        into.absorb(level.accumulate(Accumulated()))

    def _add_component(self, into: Accumulated, path: str) -> None:
        spot = self.find(path)
        if spot.kind != "folder":
            what = f"{path} is no folder" if spot.kind else _missing(path)
            raise RenderError(f"components: {what}", where=self.file)
        level = self.enter(spot, path)
        if not level.kustomization.is_component:
            message = f"{path} is no Component: set its kind to Component, or list it in resources"
            raise RenderError(message, where=self.file)
        level.accumulate(into)

    def enter(self, spot: Spot, path: str) -> Level:
        if any(spot.holds(each) for each in self.within):
            place = spot.name or "the root folder"
            raise RenderError(f"{path} is a cycle: {place} holds or is what uses it", where=self.file)
        try:
            return self.build.open(spot, self.file, self.within)
        except RenderError:
            self._refuse_submodule(spot)
            raise

    def _refuse_submodule(self, spot: Spot) -> None:
        if submodule := find_submodule(spot.ground.tree, spot.path):
            raise RenderError(submodule_text(submodule), where=self.file) from None

    def find(self, path: str) -> Spot:
        """What a path of this kustomization names, here or in a remote base."""
        if "://" in path and (remote := self.build.grounds.find(path, self.file)):
            return remote
        here = self.spot.ground.find(self.spot.path, path, self.file)
        if not here.kind:
            self._refuse_submodule(here)
        # k8s: a file is a file, whatever its name looks like.
        if here.kind == "file" or is_plain_path(path):
            return here
        return self.build.grounds.find(path, self.file) or here

    def name(self, path: str) -> str:
        if looks_remote(path):
            return path
        return self.spot.ground.name(posixpath.normpath(f"{self.spot.path}/{path}".lstrip("/")))

    def read(self, path: str) -> bytes:
        """A file beside the kustomization or below it."""
        return self.file_at(path).read()

    def file_at(self, path: str) -> Spot:
        spot = self.find(path)
        if spot.kind != "file":
            raise RenderError(f"{path} is no file: name one" if spot.kind else _missing(path), where=self.file)
        return self.permitted(spot, path)

    def resources_of(self, spot: Spot) -> list[Resource]:
        entry = self.permitted(spot).ground.tree.entry(spot.path)
        found = read_resources(spot.read(), spot.name, entry.id if entry else "")
        if self.build.tracer is not None:
            self.build.tracer.read(spot.read(), spot.name, found)
        return found

    def permitted(self, spot: Spot, path: str = "") -> Spot:
        # k8s: what a remote base holds never leaves its folders, whatever is permitted here.
        is_free = self.build.permits.reads_anywhere and not spot.ground.url
        if spot.ground is self.spot.ground and not is_free and not self.spot.holds(spot):
            message = f"{path or spot.path} is outside of the kustomization's folder: move it there, or make it a base"
            raise RenderError(message, where=self.file)
        return spot

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
        raise RenderError(_missing(text), where=self.file)


def _missing(path: str) -> str:
    return f"{path} does not exist: add it or correct the path"
