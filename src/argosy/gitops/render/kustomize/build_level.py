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
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.build_metadata import CHANGES, Step
from argosy.gitops.render.kustomize.build_trees import Grounds, Spot
from argosy.gitops.render.kustomize.documents import read_resources
from argosy.gitops.render.kustomize.entry_cursor import Cursor
from argosy.gitops.render.kustomize.field_spec_config import EMPTY, Config
from argosy.gitops.render.kustomize.kustomization_file import Kustomization
from argosy.gitops.render.kustomize.merge_keys import Definitions, builtin_node
from argosy.gitops.render.kustomize.patches import SchemaOf
from argosy.gitops.render.kustomize.permissions import NOTHING, Permits
from argosy.gitops.render.kustomize.remote_bases import is_plain_path, looks_remote
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.resources import Resources
from argosy.gitops.render.kustomize.vars import Var, merge_vars
from argosy.gitops.render.submodules import find_submodule, submodule_text
from argosy.kube.objects import Manifest


class Inflate(Protocol):
    """Renders the chart in a folder of a tree with Helm; `values` are paths in that tree or mappings, the last wins."""

    def __call__(
        self,
        tree: Tree,
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


class Tracer(Protocol):
    """Follows each field through a build, to find the file that wrote it."""

    def read(self, text: bytes, file: str, resources: Sequence[Resource]) -> None: ...

    def step(self, level: Level, listed: Sequence[Resource], plugin: Resource | None = None) -> None: ...

    def finish(self, resources: Sequence[Resource]) -> None: ...


@dataclass
class Accumulated:
    """The resources and configuration that a kustomization passes to its parent."""

    resources: Resources = field(default_factory=Resources)
    config: Config = EMPTY
    variables: list[Var] = field(default_factory=list)

    def absorb(self, other: Accumulated) -> None:
        self.resources.extend(other.resources)
        self.config = self.config.merge(other.config)
        self.variables = merge_vars(self.variables, other.variables)


class Build:
    """One build: its trees, its permissions, and counters for its limits."""

    def __init__(self, grounds: Grounds, permits: Permits = NOTHING, inflate: Inflate | None = None) -> None:
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


class Level(Cursor):
    """The kustomization in one folder."""

    def __init__(self, build: Build, spot: Spot, kustomization: Kustomization, within: tuple[Spot, ...]) -> None:
        self.build = build
        self.spot = spot
        super().__init__(kustomization)
        self.within = within

    def mark(self, into: Accumulated, kind: str, plugin: Resource | None = None) -> None:
        """Record a transformer with every current resource, if transformerAnnotations are requested, and trace it."""
        if CHANGES in self.build.metadata:
            step = Step(plugin.file, kind, plugin.name, plugin.namespace) if plugin else Step(self.file, kind)
            for each in into.resources.listed:
                each.notes.setdefault("changes", []).append(step)
        if plugin is None:
            self.trace(into)

    def trace(self, into: Accumulated, plugin: Resource | None = None) -> None:
        """Tell the tracer that the current entry, or a transformer plug-in, has been applied."""
        if self.build.tracer is not None:
            self.at = plugin.notes.get("entry", self.at) if plugin else self.at
            self.build.tracer.step(self, into.resources.listed, plugin)

    def find(self, path: str) -> Spot:
        """Locate a path of this kustomization, in this tree or in a remote base."""
        if "://" in path and (remote := self.build.grounds.find(path, self.file)):
            return remote
        here = self.spot.ground.find(self.spot.path, path, self.file)
        if not here.kind:
            self.refuse_submodule(here)
        # k8s: an existing file wins, even if its name looks like a URL.
        if here.kind == "file" or is_plain_path(path):
            return here
        return self.build.grounds.find(path, self.file) or here

    def refuse_submodule(self, spot: Spot) -> None:
        if submodule := find_submodule(spot.ground.tree, spot.path):
            raise RenderError(submodule_text(submodule), where=self.file) from None

    def name(self, path: str) -> str:
        if looks_remote(path):
            return path
        return self.spot.ground.name(posixpath.normpath(f"{self.spot.path}/{path}".lstrip("/")))

    def read(self, path: str) -> bytes:
        """Read a file in the kustomization's folder or below."""
        return self.file_at(path).read()

    def file_at(self, path: str) -> Spot:
        spot = self.find(path)
        if spot.kind != "file":
            raise RenderError(f"{path} is not a file: use a file" if spot.kind else missing(path), where=self.file)
        return self.permitted(spot, path)

    def resources_of(self, spot: Spot) -> list[Resource]:
        entry = self.permitted(spot).ground.tree.entry(spot.path)
        found = read_resources(spot.read(), spot.name, entry.id if entry else "")
        if self.build.tracer is not None:
            self.build.tracer.read(spot.read(), spot.name, found)
        return found

    def permitted(self, spot: Spot, path: str = "") -> Spot:
        # k8s: a remote base never reads outside its folders, whatever is permitted here.
        is_free = self.build.permits.reads_anywhere and not spot.ground.url
        if spot.ground is self.spot.ground and not is_free and not self.spot.holds(spot):
            message = f"{path or spot.path} is outside the kustomization's folder: move it there, or make it a base"
            raise RenderError(message, where=self.file)
        return spot


def missing(path: str) -> str:
    return f"{path} does not exist: add it or correct the path"
