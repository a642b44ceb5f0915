"""One resource during a build, with its earlier ids. In: a manifest of a file. Out: the manifest, changed step by step.

Never: shares data with another resource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import Fault
from argosy.gitops.render.kustomize.field_specs import Visit, steps_of, visit
from argosy.gitops.render.kustomize.gvk import Gvk, gvk_of
from argosy.kube.objects import Manifest

_INTERNAL: Final = "internal.config.kubernetes.io/"
_CLUSTER: Final = "\0cluster"


Nulls = dict[int, tuple[Manifest, frozenset[str]]]
"""Keys whose value is an explicit null, by the id of their map; the map is kept so that the id stays unique."""


def text_of(value: Any) -> str:
    """Return the JSON text of a scalar."""
    if type(value) is str:
        return value
    if value is None or type(value) is bool:
        return "null" if value is None else "true" if value else "false"
    return str(value)


def plain_text(value: Any) -> str:
    """Return the text of a scalar; empty for null, maps and lists."""
    if type(value) is str:
        return value
    return "" if value is None or type(value) in (dict, list) else text_of(value)


class Id(NamedTuple):
    gvk: Gvk
    name: str
    namespace: str

    @property
    def place(self) -> str:
        """The namespace used for comparison: none equals `default`, and all cluster-scoped kinds share one."""
        return _CLUSTER if self.gvk.is_cluster_scoped else self.namespace or "default"

    def equals(self, other: Id) -> bool:
        return self.name == other.name and self.gvk == other.gvk and self.place == other.place

    def __str__(self) -> str:
        space = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.gvk.kind} {self.name}{space} ({self.gvk.api_version})"


class Resource:
    __slots__ = (
        "aliases", "behavior", "file", "history", "manifest", "notes", "nulls", "prefixes", "suffixes", "wants_hash",
        "written",
    )  # fmt: skip

    def __init__(self, manifest: Manifest, file: str = "") -> None:
        self.manifest = manifest
        self.file = file
        self.nulls: Nulls | None = {}
        self.written: dict[str, str] = {}
        self.history: list[Id] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.wants_hash = False
        self.behavior = ""
        self.aliases: dict[str, list[list[Manifest]]] = {}
        self.notes: dict[str, Any] = {}

    @property
    def gvk(self) -> Gvk:
        manifest = self.manifest
        return gvk_of(str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or ""))

    @property
    def metadata(self) -> dict[str, Any]:
        found = self.manifest.get("metadata")
        if not isinstance(found, dict):
            found = self.manifest["metadata"] = {}
        return found

    @property
    def name(self) -> str:
        metadata = self.manifest.get("metadata")
        return plain_text(metadata.get("name")) if isinstance(metadata, dict) else ""

    @property
    def namespace(self) -> str:
        metadata = self.manifest.get("metadata")
        return plain_text(metadata.get("namespace")) if isinstance(metadata, dict) else ""

    @property
    def id(self) -> Id:
        return Id(self.gvk, self.name, self.namespace)

    @property
    def first_id(self) -> Id:
        return self.history[0] if self.history else self.id

    def ids(self) -> list[Id]:
        """Return all earlier ids, then the current one."""
        return [*self.history, self.id]

    def remember(self) -> None:
        """Save the current id before it changes."""
        self.history.append(self.id)

    def fault(self, message: str, *inside: str) -> Fault:
        """Build an error at this resource; the message must name it."""
        first = self.first_id
        return Fault(message, where=self.file, about=(first.gvk.kind, first.name), inside=inside)

    def visit(self, path: str, found: Visit, create: Callable[[], Any] | None = None) -> None:
        try:
            visit(self.manifest, path, found, create)
        except RenderError as error:
            if error.where or error.line:
                raise
            raise self.fault(f"{self.id}: {error.message}", *(name for name, _ in steps_of(path))) from None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return the labels or annotations; empty if there are none."""
        metadata = self.manifest.get("metadata")
        found = metadata.get(name) if isinstance(metadata, dict) else None
        return found if isinstance(found, dict) else {}

    def texts(self, name: str) -> dict[str, str]:
        """Return the labels or annotations as strings."""
        found = self.mapping(name)
        if all(type(each) is str for each in found.values()):
            return found
        return {key: each if type(each) is str else self._text(key, each) for key, each in found.items()}

    def _text(self, key: str, value: Any) -> str:
        return self.written.get(key) or plain_text(value)

    def set_entry(self, holder: Manifest, key: str, value: str, fresh: list[Manifest]) -> None:
        """Set a label or an annotation; append the holder to `new_holders` if the key is new."""
        if key not in holder:
            fresh.append(holder)
        else:
            # k8s: entries that one pass created are one YAML node; changing one copy changes them all.
            for group in self.aliases.get(key, ()):
                if any(each is holder for each in group):
                    for each in group:
                        each[key] = value
        holder[key] = value

    def share(self, key: str, fresh: list[Manifest]) -> None:
        if len(fresh) > 1:
            self.aliases.setdefault(key, []).append(fresh)

    def shared(self) -> list[tuple[str, list[Manifest], list[Any]]]:
        """List entries that are one YAML node in several places, with their current values."""
        return [
            (key, group, [each.get(key) for each in group]) for key, groups in self.aliases.items() for group in groups
        ]

    def spread(self, shared: list[tuple[str, list[Manifest], list[Any]]]) -> None:
        """Copy a patched value to the other places of the same YAML node."""
        own = [self.mapping("annotations"), self.mapping("labels")]  # a merge goes by name: metadata, then spec
        for key, group, before in shared:
            same = [(each, old) for each, old in zip(group, before) if key in each]
            same.sort(key=lambda pair: not any(pair[0] is each for each in own))
            changed = [each[key] for each, old in same if each[key] != old]
            for each, _ in same if changed else ():
                each[key] = changed[-1]

    def adopt_notes(self) -> None:
        """Move the history that an earlier build left in annotations into this resource."""
        annotations = self.mapping("annotations")
        if not any(key.startswith(_INTERNAL) for key in annotations):
            return
        found = {key: str(annotations.pop(key)) for key in list(annotations) if key.startswith(_INTERNAL)}
        names, spaces, kinds = (
            found.get(f"{_INTERNAL}{part}", "").split(",") if found.get(f"{_INTERNAL}{part}") is not None else []
            for part in ("previousNames", "previousNamespaces", "previousKinds")
        )
        gvk = self.gvk
        for name, space, kind in zip(names, spaces, kinds):
            if name or kind:
                self.history.append(Id(gvk._replace(kind=kind or gvk.kind), name, space))
        self.prefixes = [each for each in found.get(f"{_INTERNAL}prefixes", "").split(",") if each]
        self.suffixes = [each for each in found.get(f"{_INTERNAL}suffixes", "").split(",") if each]
