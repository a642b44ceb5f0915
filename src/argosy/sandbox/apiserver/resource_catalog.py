"""Catalog of all served resources, built-in and custom, by URL or by kind.

In: CustomResourceDefinitions, from the store. Out: served kinds. `version` grows with every change of the catalog, so
that documents built from it (discovery, OpenAPI) can be cached. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.crd import CustomKind, build_custom_kinds
from argosy.kube.schema.crd.version_priority import version_sort_key
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, BuiltInApiKind, CustomApiKind, get_bucket
from argosy.sandbox.store import DELETED, Store, StoreEntry, StoreEvent

ALWAYS_STALE_REVISION = 1 << 63  # later than any revision: every entry counts as stale
CRD_BUCKET = get_bucket("apiextensions.k8s.io", "customresourcedefinitions")


@lru_cache(maxsize=1)
def load_built_in_kinds() -> Mapping[tuple[str, str, str], ApiKind]:
    """Built-in kinds by group, version and plural; one table for all servers of a process."""
    return MappingProxyType(
        {(r.group, r.version, r.plural): BuiltInApiKind.from_resource(r) for r in BUILTIN_RESOURCES}
    )


class ResourceCatalog:
    def __init__(self) -> None:
        self.version = 1
        self._custom_kinds: dict[str, tuple[CustomApiKind, ...]] = {}  # by the definition's name
        self._crd_specs: dict[str, Manifest] = {}  # the specs that `_custom_kinds` was built from, by name
        self._terminating_crds: set[str] = set()
        self._rebuild()

    def _rebuild(self) -> None:
        self._by_path: dict[tuple[str, str, str], ApiKind] = dict(load_built_in_kinds())
        for custom in self.list_custom_kinds():
            resource = custom.resource
            self._by_path.setdefault((resource.group, resource.version, resource.plural), custom)
        self._preferred: dict[GroupKind, ApiKind] = {}
        self._versions: dict[GroupKind, list[str]] = {}
        self._group_versions: dict[str, list[str]] = {}
        for served in self._by_path.values():
            resource = served.resource
            self._preferred.setdefault(resource.group_kind, served)
            self._versions.setdefault(resource.group_kind, []).append(resource.version)
            versions = self._group_versions.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        for group in {custom.resource.group for custom in self.list_custom_kinds()}:
            # k8s: several definitions may share a group; the best version is preferred, not the first one
            self._group_versions[group].sort(key=version_sort_key)
        self.version += 1

    def list_custom_kinds(self) -> Iterator[CustomApiKind]:
        for kinds in self._custom_kinds.values():
            yield from kinds

    def __iter__(self) -> Iterator[ApiKind]:
        return iter(self._by_path.values())

    def find_resource(self, group: str, version: str, plural: str) -> ApiKind | None:
        return self._by_path.get((group, version, plural))

    def find_kind(self, kind: GroupKind, version: str = "") -> ApiKind | None:
        """The kind in the given version, or in the preferred one."""
        served = self._preferred.get(kind)
        if served is None or not version or served.resource.version == version:
            return served
        return self._by_path.get((kind.group, version, served.resource.plural))

    def list_versions(self, kind: GroupKind) -> list[str]:
        return self._versions.get(kind, [])

    def list_group_versions(self) -> Mapping[str, list[str]]:
        """Every group with its versions, in order of preference."""
        return self._group_versions

    def has_group_version(self, group: str, version: str) -> bool:
        return version in self._group_versions.get(group, ())

    def is_custom_group(self, group: str) -> bool:
        return all(group != built_in_group for built_in_group, _, _ in load_built_in_kinds())

    def list_resources(self, group: str, version: str) -> list[ApiResource]:
        return [s.resource for s in self if (s.resource.group, s.resource.version) == (group, version)]

    def list_stored_kinds(self) -> Iterable[ApiKind]:
        """One served kind for every bucket that can hold objects."""
        seen_buckets: set[str] = set()
        for served in self:
            if served.bucket not in seen_buckets and "list" in served.resource.verbs:
                seen_buckets.add(served.bucket)
                yield served

    def is_terminating(self, served: ApiKind) -> bool:
        return f"{served.resource.plural}.{served.resource.group}" in self._terminating_crds

    def load_definitions(self, store: Store) -> None:
        """Serve every definition in the store, and subscribe to their changes.

        It follows commits, not calls: a definition is served even if its writer did not wait for the response.
        """
        definitions = [_read_definition(entry) for entry in store.list(CRD_BUCKET)]
        for crd in sorted(definitions, key=_is_established, reverse=True):  # established definitions keep their names
            self.add_definition(crd)

        def on_events(events: Sequence[StoreEvent]) -> None:
            for event in events:
                if event.bucket == CRD_BUCKET:
                    self._on_definition_event(event, store)

        store.subscribe(on_events)

    def _on_definition_event(self, event: StoreEvent, store: Store) -> None:
        crd = _read_definition(StoreEntry(event.namespace, event.name, event.revision, event.body))
        if event.type != DELETED:
            self.add_definition(crd)
            return
        self.remove_definition(event.name)
        store.close_watches(get_bucket(crd["spec"]["group"], crd["spec"]["names"]["plural"]))

    def find_name_conflict(self, crd: Manifest) -> tuple[str, str] | None:
        """The first name of a definition that is already used in its group, as (type of name, name)."""
        group, names = crd["spec"]["group"], crd["spec"]["names"]
        other_resources = [
            served.resource
            for (built_in_group, _, _), served in load_built_in_kinds().items()
            if built_in_group == group
        ]
        for definition, versions in self._custom_kinds.items():
            if definition != crd["metadata"]["name"] and versions and versions[0].resource.group == group:
                other_resources.append(versions[0].resource)
        taken_names: set[str] = set()
        for resource in other_resources:
            kind_list = resource.list_kind or f"{resource.kind}List"
            taken_names |= {resource.plural, resource.singular, *resource.short_names, resource.kind, kind_list}
        requested_names = [("Plural", names["plural"]), ("Singular", names.get("singular", ""))]
        requested_names += [("ShortNames", short_name) for short_name in names.get("shortNames") or []]
        requested_names += [("Kind", names["kind"]), ("ListKind", names.get("listKind", ""))]
        return next(((name_type, name) for name_type, name in requested_names if name in taken_names), None)

    def is_definition_served(self, crd_name: str) -> bool:
        return crd_name in self._custom_kinds

    def add_definition(self, crd: Manifest) -> None:
        """Serve a new or changed definition, unless its names are already used."""
        metadata = crd["metadata"]
        name, revision = metadata["name"], int(metadata["resourceVersion"])
        if "deletionTimestamp" in metadata:
            self._terminating_crds.add(name)
        if self.find_name_conflict(crd):
            return  # k8s: the previously accepted kinds stay served
        if self._crd_specs.get(name) == crd["spec"]:
            return  # only its status or metadata changed
        previous_kinds = {served.resource.version: served for served in self._custom_kinds.get(name, ())}
        kinds = build_custom_kinds(crd)
        storage_kind = next(kind for kind in kinds if kind.is_storage_version)
        schemas = [_get_schema(crd, version["name"]) for version in crd["spec"]["versions"]]
        if any(schema != schemas[0] for schema in schemas):  # a stored object may have another version's schema
            revision, previous_kinds = ALWAYS_STALE_REVISION, {}
        self._custom_kinds[name] = tuple(
            _build_custom_kind(crd, kind, storage_kind, revision, previous_kinds)
            for kind in sorted(kinds, key=_version_preference)
            if kind.is_served
        )
        self._crd_specs[name] = crd["spec"]
        self._rebuild()

    def remove_definition(self, name: str) -> None:
        self._terminating_crds.discard(name)
        self._crd_specs.pop(name, None)
        if self._custom_kinds.pop(name, None) is not None:
            self._rebuild()


def _version_preference(kind: CustomKind) -> Any:
    return version_sort_key(kind.resource.version)


def _build_custom_kind(
    crd: Manifest,
    kind: CustomKind,
    storage_kind: CustomKind,
    revision: int,
    previous_kinds: Mapping[str, CustomApiKind],
) -> CustomApiKind:
    """Keep the revision of an unchanged schema, so that its objects are not converted on every read."""
    resource = kind.resource
    previous = previous_kinds.get(resource.version)
    schema = _get_schema(crd, resource.version)
    if previous is not None and previous.schema == schema and previous.schema_revision != ALWAYS_STALE_REVISION:
        revision = previous.schema_revision
    return CustomApiKind(resource, kind, get_bucket(resource.group, resource.plural), revision, schema, storage_kind)


def _is_established(crd: Manifest) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def _read_definition(entry: StoreEntry) -> Manifest:
    return load_built_in_kinds()["apiextensions.k8s.io", "v1", "customresourcedefinitions"].read_entry(entry)


def _get_schema(crd: Manifest, version: str) -> Manifest:
    version_spec = next(candidate for candidate in crd["spec"]["versions"] if candidate["name"] == version)
    return (version_spec.get("schema") or {}).get("openAPIV3Schema") or {}
