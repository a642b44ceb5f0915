"""One resource during a build, with its earlier ids. In: a manifest of a file. Out: the manifest, changed step by step.

Never: shares data with another resource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import LocatedError
from argosy.gitops.render.kustomize.field_spec_traversal import FieldVisitor, split_field_path, visit_fields
from argosy.gitops.render.kustomize.gvk import Gvk, parse_gvk
from argosy.kube.objects import Manifest

_INTERNAL_ANNOTATION_PREFIX: Final = "internal.config.kubernetes.io/"
_CLUSTER_SCOPE: Final = "\0cluster"


ExplicitNulls = dict[int, tuple[Manifest, frozenset[str]]]
"""Keys whose value is an explicit null, by the id of their map; the map is kept so that the id stays unique."""


def scalar_to_json_text(value: Any) -> str:
    """Return the JSON text of a scalar."""
    if type(value) is str:
        return value
    if value is None or type(value) is bool:
        return "null" if value is None else "true" if value else "false"
    return str(value)


def scalar_to_text(value: Any) -> str:
    """Return the text of a scalar; empty for null, maps and lists."""
    if type(value) is str:
        return value
    return "" if value is None or type(value) in (dict, list) else scalar_to_json_text(value)


class ResourceId(NamedTuple):
    gvk: Gvk
    name: str
    namespace: str

    @property
    def effective_namespace(self) -> str:
        """The namespace used for comparison: none equals `default`, and all cluster-scoped kinds share one."""
        return _CLUSTER_SCOPE if self.gvk.is_cluster_scoped else self.namespace or "default"

    def equals(self, other: ResourceId) -> bool:
        return (
            self.name == other.name and self.gvk == other.gvk and self.effective_namespace == other.effective_namespace
        )

    def __str__(self) -> str:
        namespace_text = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.gvk.kind} {self.name}{namespace_text} ({self.gvk.api_version})"


class KustomizeResource:
    __slots__ = (
        "aliases",
        "behavior",
        "file",
        "history",
        "manifest",
        "needs_hash",
        "notes",
        "nulls",
        "prefixes",
        "suffixes",
        "written_annotations",
    )  # fmt: skip

    def __init__(self, manifest: Manifest, file: str = "") -> None:
        self.manifest = manifest
        self.file = file
        self.nulls: ExplicitNulls | None = {}
        self.written_annotations: dict[str, str] = {}
        self.history: list[ResourceId] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.needs_hash = False
        self.behavior = ""
        self.aliases: dict[str, list[list[Manifest]]] = {}
        self.notes: dict[str, Any] = {}

    @property
    def gvk(self) -> Gvk:
        manifest = self.manifest
        return parse_gvk(str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or ""))

    @property
    def metadata(self) -> dict[str, Any]:
        metadata = self.manifest.get("metadata")
        if not isinstance(metadata, dict):
            metadata = self.manifest["metadata"] = {}
        return metadata

    @property
    def name(self) -> str:
        metadata = self.manifest.get("metadata")
        return scalar_to_text(metadata.get("name")) if isinstance(metadata, dict) else ""

    @property
    def namespace(self) -> str:
        metadata = self.manifest.get("metadata")
        return scalar_to_text(metadata.get("namespace")) if isinstance(metadata, dict) else ""

    @property
    def id(self) -> ResourceId:
        return ResourceId(self.gvk, self.name, self.namespace)

    @property
    def original_id(self) -> ResourceId:
        return self.history[0] if self.history else self.id

    def list_ids(self) -> list[ResourceId]:
        """Return all earlier ids, then the current one."""
        return [*self.history, self.id]

    def save_current_id(self) -> None:
        """Save the current id before it changes."""
        self.history.append(self.id)

    def build_error(self, message: str, *inside: str) -> LocatedError:
        """Build an error at this resource; the message must name it."""
        first = self.original_id
        return LocatedError(message, where=self.file, resource=(first.gvk.kind, first.name), path=inside)

    def visit_field(self, path: str, visitor: FieldVisitor, create: Callable[[], Any] | None = None) -> None:
        try:
            visit_fields(self.manifest, path, visitor, create)
        except RenderError as error:
            if error.where or error.line:
                raise
            raise self.build_error(
                f"{self.id}: {error.message}", *(name for name, _ in split_field_path(path))
            ) from None

    def get_metadata_map(self, name: str) -> dict[str, Any]:
        """Return the labels or annotations; empty if there are none."""
        metadata = self.manifest.get("metadata")
        mapping = metadata.get(name) if isinstance(metadata, dict) else None
        return mapping if isinstance(mapping, dict) else {}

    def get_metadata_strings(self, name: str) -> dict[str, str]:
        """Return the labels or annotations as strings."""
        mapping = self.get_metadata_map(name)
        if all(type(value) is str for value in mapping.values()):
            return mapping
        return {
            key: value if type(value) is str else self._value_to_string(key, value) for key, value in mapping.items()
        }

    def _value_to_string(self, key: str, value: Any) -> str:
        return self.written_annotations.get(key) or scalar_to_text(value)

    def set_entry(self, holder: Manifest, key: str, value: str, new_holders: list[Manifest]) -> None:
        """Set a label or an annotation; append the holder to `new_holders` if the key is new."""
        if key not in holder:
            new_holders.append(holder)
        else:
            # k8s: entries that one pass created are one YAML node; changing one copy changes them all.
            for group in self.aliases.get(key, ()):
                if any(other_holder is holder for other_holder in group):
                    for other_holder in group:
                        other_holder[key] = value
        holder[key] = value

    def link_new_entries(self, key: str, new_holders: list[Manifest]) -> None:
        if len(new_holders) > 1:
            self.aliases.setdefault(key, []).append(new_holders)

    def list_shared_entries(self) -> list[tuple[str, list[Manifest], list[Any]]]:
        """List entries that are one YAML node in several places, with their current values."""
        return [
            (key, group, [holder.get(key) for holder in group])
            for key, groups in self.aliases.items()
            for group in groups
        ]

    def propagate_shared_entries(self, shared_entries: list[tuple[str, list[Manifest], list[Any]]]) -> None:
        """Copy a patched value to the other places of the same YAML node."""
        metadata_maps = [
            self.get_metadata_map("annotations"),
            self.get_metadata_map("labels"),
        ]  # a merge goes by name: metadata, then spec
        for key, group, before in shared_entries:
            holders_before = [(holder, old) for holder, old in zip(group, before) if key in holder]
            holders_before.sort(key=lambda pair: not any(pair[0] is holder for holder in metadata_maps))
            changed_values = [holder[key] for holder, old in holders_before if holder[key] != old]
            for holder, _ in holders_before if changed_values else ():
                holder[key] = changed_values[-1]

    def adopt_internal_annotations(self) -> None:
        """Move the history that an earlier build left in annotations into this resource."""
        annotations = self.get_metadata_map("annotations")
        if not any(key.startswith(_INTERNAL_ANNOTATION_PREFIX) for key in annotations):
            return
        internal = {
            key: str(annotations.pop(key)) for key in list(annotations) if key.startswith(_INTERNAL_ANNOTATION_PREFIX)
        }
        names, namespaces, kinds = (
            internal.get(f"{_INTERNAL_ANNOTATION_PREFIX}{part}", "").split(",")
            if internal.get(f"{_INTERNAL_ANNOTATION_PREFIX}{part}") is not None
            else []
            for part in ("previousNames", "previousNamespaces", "previousKinds")
        )
        gvk = self.gvk
        for name, namespace, kind in zip(names, namespaces, kinds):
            if name or kind:
                self.history.append(ResourceId(gvk._replace(kind=kind or gvk.kind), name, namespace))
        self.prefixes = [
            affix for affix in internal.get(f"{_INTERNAL_ANNOTATION_PREFIX}prefixes", "").split(",") if affix
        ]
        self.suffixes = [
            affix for affix in internal.get(f"{_INTERNAL_ANNOTATION_PREFIX}suffixes", "").split(",") if affix
        ]
