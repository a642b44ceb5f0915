"""The repository as rules see it: its Applications and their rendered manifests.

In, out: values; callers read files and render. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from argosy.gitops.analysis.fixes import value_at
from argosy.gitops.analysis.violation import Mend, Place, Sight
from argosy.gitops.application import Application
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.kube.objects.yaml_edits import Edit

Step = str | int
Locate = Callable[[str], Place]  # a JSON pointer -> the line to edit


def pointer(path: tuple[Step, ...]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


@dataclass(frozen=True)
class Item:
    """A manifest and where its fields are written."""

    manifest: Manifest
    key: ResourceKey
    locate: Locate

    def at(self, *path: Step) -> Place:
        """Return the line of a field, or of its closest parent that is written."""
        return self.locate(pointer(path))

    def value(self, *path: Step) -> Any:
        """Return the value at the path; None if a step is missing."""
        return value_at(self.manifest, path)

    def fields(self, *path: Step) -> Mapping[str, Any]:
        found = self.value(*path)
        return found if isinstance(found, dict) else {}

    def all(self, *path: Step) -> list[Any]:
        found = self.value(*path)
        return found if isinstance(found, list) else []

    def text(self, *path: Step) -> str:
        found = self.value(*path)
        return found if isinstance(found, str) else ""

    def mended(self, edits: Callable[[Manifest], Sequence[Edit]], *path: Step) -> Mend:
        """Build a fix that edits the object in the file that has the field or its closest written parent."""
        return Mend(self.at(*path), self.key, edits)

    @property
    def name(self) -> str:
        """The readable name: `InferenceService/fraud`."""
        return f"{self.key.kind}/{self.key.name}"

    @property
    def kind(self) -> tuple[str, str]:
        return self.key.group, self.key.kind


@dataclass(frozen=True)
class Written:
    """An Application as declared in Git."""

    app: Application
    item: Item

    @property
    def name(self) -> str:
        return self.app.name

    def at(self, *path: Step) -> Place:
        return self.item.at(*path)


class Trouble:
    """Why a source was not rendered."""

    RENDER = "render"  # its author must act
    PATH = "path"  # the source's folder does not exist


@dataclass(frozen=True)
class Fault:
    kind: str  # a constant of RenderFailureKind
    message: str
    fix: str
    place: Place


@dataclass(frozen=True)
class Rendering:
    """The manifests of an Application's source, or of a folder that no Application uses."""

    written: Written | None
    folder: str  # relative to the working directory
    items: tuple[Item, ...] = ()
    fault: Fault | None = None
    is_part: bool = False  # a base that something outside of this repository may complete

    @property
    def is_whole(self) -> bool:
        return not self.is_part

    @cached_property
    def by_key(self) -> Mapping[ResourceKey, Item]:
        return {item.key: item for item in self.items}

    def of(self, group: str, kind: str) -> Iterator[Item]:
        return (item for item in self.items if item.kind == (group, kind))

    @property
    def namespace(self) -> str:
        return self.written.app.destination.namespace if self.written else ""

    def place_of(self, item: Item) -> str:
        """Return the namespace that the manifest is applied to."""
        return item.key.namespace or self.namespace


@dataclass(frozen=True)
class Planned:
    """An environment of argosy.yaml."""

    name: str
    application: str
    namespace: str
    is_automated: bool
    ref: str


Has = Callable[[str, str, str], bool | None]  # URL, ref, path -> True if it exists; None: another repository


Absent = Callable[[str, str], str]  # URL, ref -> why the ref does not exist; empty: it exists, or was not checked


def _nobody_knows(url: str, ref: str, path: str) -> bool | None:
    return None


def _is_assumed_tracked(path: str) -> bool:
    return True


def _nobody_was_asked(url: str, ref: str) -> str:
    return ""


@dataclass(frozen=True)
class Repository:
    renderings: tuple[Rendering, ...] = ()
    planned: tuple[Planned, ...] = ()
    definitions: tuple[Manifest, ...] = ()  # CustomResourceDefinitions in the repository
    loose: tuple[Item, ...] = ()  # manifests in files that no source renders
    kustomizations: tuple[Item, ...] = ()  # named by their folders
    patches: tuple[Item, ...] = ()  # files with JSON patch operations, below `steps`; named by their paths
    values_files: tuple[Item, ...] = ()  # of Helm charts; named by their paths
    kubeconfigs: tuple[Item, ...] = ()  # files that are kubeconfigs by content and not manifests by name
    is_tracked: Callable[[str], bool] = _is_assumed_tracked  # True if Git tracks the file at this path
    told: Mapping[str, tuple[Sight, ...]] = field(default_factory=dict)  # by rule: reported by callers
    has: Has = _nobody_knows
    absent: Absent = _nobody_was_asked
    profile: str = ""  # profile that applies to all Applications, in addition to those they name
    notes: tuple[str, ...] = field(default=())  # what could not be checked, and why

    @property
    def applications(self) -> list[Written]:
        return [each.written for each in self.renderings if each.written]

    def objects(self) -> Iterator[tuple[Rendering, Item]]:
        """Yield every rendered manifest; one that two sources render is yielded twice."""
        for rendering in self.renderings:
            for item in rendering.items:
                yield rendering, item
