"""The repository as rules see it: its Applications and their rendered manifests.

In, out: values; callers read files and render. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from argosy.gitops.analysis.fix_edit_builders import get_value
from argosy.gitops.analysis.rule_violation import FileFix, FileLocation, Violation
from argosy.gitops.application import Application
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

if TYPE_CHECKING:
    from argosy.kube.objects.yaml_edits import YamlEdit

PathStep = str | int
LocateField = Callable[[str], FileLocation]  # a JSON pointer -> the line to edit


def format_pointer(path: tuple[PathStep, ...]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


@dataclass(frozen=True)
class ManifestWithLocations:
    """A manifest and where its fields are written."""

    manifest: Manifest
    key: ResourceKey
    locate: LocateField

    def find_location(self, *path: PathStep) -> FileLocation:
        """Return the line of a field, or of its closest parent that is written."""
        return self.locate(format_pointer(path))

    def get_value(self, *path: PathStep) -> Any:
        """Return the value at the path; None if a step is missing."""
        return get_value(self.manifest, path)

    def get_map(self, *path: PathStep) -> Mapping[str, Any]:
        value = self.get_value(*path)
        return value if isinstance(value, dict) else {}

    def get_list(self, *path: PathStep) -> list[Any]:
        value = self.get_value(*path)
        return value if isinstance(value, list) else []

    def get_string(self, *path: PathStep) -> str:
        value = self.get_value(*path)
        return value if isinstance(value, str) else ""

    def build_fix(self, edits: Callable[[Manifest], Sequence[YamlEdit]], *path: PathStep) -> FileFix:
        """Build a fix that edits the object in the file that has the field or its closest written parent."""
        return FileFix(self.find_location(*path), self.key, edits)

    @property
    def name(self) -> str:
        """The readable name: `InferenceService/fraud`."""
        return f"{self.key.kind}/{self.key.name}"

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.key.group, self.key.kind


@dataclass(frozen=True)
class ApplicationDeclaration:
    """An Application as declared in Git."""

    app: Application
    item: ManifestWithLocations

    @property
    def name(self) -> str:
        return self.app.name

    def find_location(self, *path: PathStep) -> FileLocation:
        return self.item.find_location(*path)


class RenderFailureKind:
    """Why a source was not rendered."""

    RENDER = "render"  # its author must act
    PATH = "path"  # the source's folder does not exist


@dataclass(frozen=True)
class RenderFailure:
    kind: str  # a constant of RenderFailureKind
    message: str
    fix: str
    location: FileLocation


@dataclass(frozen=True)
class RenderedSource:
    """The manifests of an Application's source, or of a folder that no Application uses."""

    declaration: ApplicationDeclaration | None
    folder: str  # relative to the working directory
    items: tuple[ManifestWithLocations, ...] = ()
    failure: RenderFailure | None = None
    is_partial: bool = False  # a base that something outside of this repository may complete

    @property
    def is_complete(self) -> bool:
        return not self.is_partial

    @cached_property
    def by_key(self) -> Mapping[ResourceKey, ManifestWithLocations]:
        return {item.key: item for item in self.items}

    def list_of_kind(self, group: str, kind: str) -> Iterator[ManifestWithLocations]:
        return (item for item in self.items if item.group_kind == (group, kind))

    @property
    def namespace(self) -> str:
        return self.declaration.app.destination.namespace if self.declaration else ""

    def resolve_namespace(self, item: ManifestWithLocations) -> str:
        """Return the namespace that the manifest is applied to."""
        return item.key.namespace or self.namespace


@dataclass(frozen=True)
class DeclaredEnvironment:
    """An environment of argosy.yaml."""

    name: str
    application: str
    namespace: str
    is_automated: bool
    ref: str


PathLookup = Callable[[str, str, str], bool | None]  # URL, ref, path -> True if it exists; None: another repository


MissingRefLookup = Callable[
    [str, str], str
]  # URL, ref -> why the ref does not exist; empty: it exists, or was not checked


def _assume_path_unknown(url: str, ref: str, path: str) -> bool | None:
    return None


def _assume_tracked(path: str) -> bool:
    return True


def _assume_ref_exists(url: str, ref: str) -> str:
    return ""


@dataclass(frozen=True)
class RepositoryView:
    renderings: tuple[RenderedSource, ...] = ()
    environments: tuple[DeclaredEnvironment, ...] = ()
    definitions: tuple[Manifest, ...] = ()  # CustomResourceDefinitions in the repository
    unrendered_manifests: tuple[ManifestWithLocations, ...] = ()  # manifests in files that no source renders
    kustomizations: tuple[ManifestWithLocations, ...] = ()  # named by their folders
    patches: tuple[
        ManifestWithLocations, ...
    ] = ()  # files with JSON patch operations, below `steps`; named by their paths
    values_files: tuple[ManifestWithLocations, ...] = ()  # of Helm charts; named by their paths
    kubeconfigs: tuple[
        ManifestWithLocations, ...
    ] = ()  # files that are kubeconfigs by content and not manifests by name
    is_tracked: Callable[[str], bool] = _assume_tracked  # True if Git tracks the file at this path
    external_violations: Mapping[str, tuple[Violation, ...]] = field(
        default_factory=dict
    )  # by rule: reported by callers
    has_path: PathLookup = _assume_path_unknown
    find_missing_ref_reason: MissingRefLookup = _assume_ref_exists
    profile: str = ""  # profile that applies to all Applications, in addition to those they name
    notes: tuple[str, ...] = field(default=())  # what could not be checked, and why

    @property
    def applications(self) -> list[ApplicationDeclaration]:
        return [rendering.declaration for rendering in self.renderings if rendering.declaration]

    def list_objects(self) -> Iterator[tuple[RenderedSource, ManifestWithLocations]]:
        """Yield every rendered manifest; one that two sources render is yielded twice."""
        for rendering in self.renderings:
            for item in rendering.items:
                yield rendering, item
