"""Catalog of all served resources, built-in and custom, by URL or by kind.

In: CustomResourceDefinitions, from the store. Out: served kinds. `version` grows with every change of the catalog, so
that documents built from it (discovery, OpenAPI) can be cached. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema.builtin_kinds import BUILT_IN
from argosy.kube.schema.crd import CustomKind, custom_kinds
from argosy.kube.schema.crd.versions import preference
from argosy.kube.schema.resources import Resource
from argosy.sandbox.apiserver.served_kind import BuiltIn, Custom, Served, bucket_of
from argosy.sandbox.store import DELETED, Entry, Event, Store

ALWAYS_ANEW = 1 << 63  # later than any revision: every entry counts as stale
DEFINITIONS = bucket_of("apiextensions.k8s.io", "customresourcedefinitions")


@lru_cache(maxsize=1)
def built_in() -> Mapping[tuple[str, str, str], Served]:
    """Built-in kinds by group, version and plural; one table for all servers of a process."""
    return MappingProxyType({(r.group, r.version, r.plural): BuiltIn.of(r) for r in BUILT_IN})


class Catalog:
    def __init__(self) -> None:
        self.version = 1
        self._custom: dict[str, tuple[Custom, ...]] = {}  # by the definition's name
        self._specs: dict[str, Manifest] = {}  # the specs that `_custom_kinds` was built from, by name
        self._terminating: set[str] = set()
        self._rebuild()

    def _rebuild(self) -> None:
        self._by_path: dict[tuple[str, str, str], Served] = dict(built_in())
        for custom in self.custom():
            resource = custom.resource
            self._by_path.setdefault((resource.group, resource.version, resource.plural), custom)
        self._preferred: dict[GroupKind, Served] = {}
        self._versions: dict[GroupKind, list[str]] = {}
        self._group_versions: dict[str, list[str]] = {}
        for served in self._by_path.values():
            resource = served.resource
            self._preferred.setdefault(resource.group_kind, served)
            self._versions.setdefault(resource.group_kind, []).append(resource.version)
            versions = self._group_versions.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        for group in {custom.resource.group for custom in self.custom()}:
            # k8s: several definitions may share a group; the best version is preferred, not the first one
            self._group_versions[group].sort(key=preference)
        self.version += 1

    def custom(self) -> Iterator[Custom]:
        for each in self._custom.values():
            yield from each

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_path.values())

    def at(self, group: str, version: str, plural: str) -> Served | None:
        return self._by_path.get((group, version, plural))

    def of_kind(self, kind: GroupKind, version: str = "") -> Served | None:
        """The kind in the given version, or in the preferred one."""
        served = self._preferred.get(kind)
        if served is None or not version or served.resource.version == version:
            return served
        return self._by_path.get((kind.group, version, served.resource.plural))

    def versions_of(self, kind: GroupKind) -> list[str]:
        return self._versions.get(kind, [])

    def groups(self) -> Mapping[str, list[str]]:
        """Every group with its versions, in order of preference."""
        return self._group_versions

    def has_group_version(self, group: str, version: str) -> bool:
        return version in self._group_versions.get(group, ())

    def is_custom_group(self, group: str) -> bool:
        return all(group != known for known, _, _ in built_in())

    def resources(self, group: str, version: str) -> list[Resource]:
        return [s.resource for s in self if (s.resource.group, s.resource.version) == (group, version)]

    def stored(self) -> Iterable[Served]:
        """One served kind for every bucket that can hold objects."""
        seen: set[str] = set()
        for served in self:
            if served.bucket not in seen and "list" in served.resource.verbs:
                seen.add(served.bucket)
                yield served

    def is_terminating(self, served: Served) -> bool:
        return f"{served.resource.plural}.{served.resource.group}" in self._terminating

    def load(self, store: Store) -> None:
        """Serve every definition in the store, and subscribe to their changes.

        It follows commits, not calls: a definition is served even if its writer did not wait for the response.
        """
        definitions = [_definition(entry) for entry in store.list(DEFINITIONS)]
        for crd in sorted(definitions, key=_is_established, reverse=True):  # established definitions keep their names
            self.define(crd)

        def follow(events: Sequence[Event]) -> None:
            for event in events:
                if event.bucket == DEFINITIONS:
                    self._follow(event, store)

        store.subscribe(follow)

    def _follow(self, event: Event, store: Store) -> None:
        crd = _definition(Entry(event.namespace, event.name, event.revision, event.body))
        if event.type != DELETED:
            self.define(crd)
            return
        self.forget(event.name)
        store.end_watches(bucket_of(crd["spec"]["group"], crd["spec"]["names"]["plural"]))

    def conflict(self, crd: Manifest) -> tuple[str, str] | None:
        """The first name of a definition that is already used in its group, as (type of name, name)."""
        group, names = crd["spec"]["group"], crd["spec"]["names"]
        others = [served.resource for (known, _, _), served in built_in().items() if known == group]
        for definition, versions in self._custom.items():
            if definition != crd["metadata"]["name"] and versions and versions[0].resource.group == group:
                others.append(versions[0].resource)
        taken: set[str] = set()
        for other in others:
            kind_list = other.list_kind or f"{other.kind}List"
            taken |= {other.plural, other.singular, *other.short_names, other.kind, kind_list}
        asked = [("Plural", names["plural"]), ("Singular", names.get("singular", ""))]
        asked += [("ShortNames", each) for each in names.get("shortNames") or []]
        asked += [("Kind", names["kind"]), ("ListKind", names.get("listKind", ""))]
        return next(((what, name) for what, name in asked if name in taken), None)

    def serves(self, definition: str) -> bool:
        return definition in self._custom

    def define(self, crd: Manifest) -> None:
        """Serve a new or changed definition, unless its names are already used."""
        metadata = crd["metadata"]
        name, revision = metadata["name"], int(metadata["resourceVersion"])
        if "deletionTimestamp" in metadata:
            self._terminating.add(name)
        if self.conflict(crd):
            return  # k8s: the previously accepted kinds stay served
        if self._specs.get(name) == crd["spec"]:
            return  # only its status or metadata changed
        before = {served.resource.version: served for served in self._custom.get(name, ())}
        kinds = custom_kinds(crd)
        stored = next(kind for kind in kinds if kind.storage)
        schemas = [_schema(crd, each["name"]) for each in crd["spec"]["versions"]]
        if any(schema != schemas[0] for schema in schemas):  # a stored object may have another version's schema
            revision, before = ALWAYS_ANEW, {}
        self._custom[name] = tuple(
            _served(crd, kind, stored, revision, before) for kind in sorted(kinds, key=_preference) if kind.served
        )
        self._specs[name] = crd["spec"]
        self._rebuild()

    def forget(self, name: str) -> None:
        self._terminating.discard(name)
        self._specs.pop(name, None)
        if self._custom.pop(name, None) is not None:
            self._rebuild()


def _preference(kind: CustomKind) -> Any:
    return preference(kind.resource.version)


def _served(crd: Manifest, kind: CustomKind, stored: CustomKind, revision: int, before: Mapping[str, Custom]) -> Custom:
    """Keep the revision of an unchanged schema, so that its objects are not converted on every read."""
    resource = kind.resource
    old = before.get(resource.version)
    schema = _schema(crd, resource.version)
    if old is not None and old.schema == schema and old.schema_revision != ALWAYS_ANEW:
        revision = old.schema_revision
    return Custom(resource, kind, bucket_of(resource.group, resource.plural), revision, schema, stored)


def _is_established(crd: Manifest) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _definition(entry: Entry) -> Manifest:
    return built_in()["apiextensions.k8s.io", "v1", "customresourcedefinitions"].read(entry)


def _schema(crd: Manifest, version: str) -> Manifest:
    found = next(each for each in crd["spec"]["versions"] if each["name"] == version)
    return (found.get("schema") or {}).get("openAPIV3Schema") or {}
