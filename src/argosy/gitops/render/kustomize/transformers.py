"""Transformers for namespace, prefix, suffix, labels, annotations and replicas. In: resources and field specs.

Out: changed resources. Never: changes a field without a spec, except metadata.namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.field_specs import FieldSpec, check_single
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import Id, Resource, plain_text
from argosy.gitops.render.kustomize.resources import Resources

SpecsOf = Callable[[Gvk], Iterable[FieldSpec]]
_NAME: Final = "metadata/name"
_UNTOUCHED: Final = (
    Gvk("", "", "CustomResourceDefinition"),
    Gvk("apiregistration.k8s.io", "", "APIService"),
    Gvk("", "", "Namespace"),
)
_BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")


def specs_of(specs: Iterable[FieldSpec]) -> SpecsOf:
    listed = list(specs)
    return lambda gvk: [spec for spec in listed if gvk.is_selected_by(spec.gvk)]


def set_namespace(
    resources: Resources, namespace: str, specs: SpecsOf, *, unset_only: bool = False, subjects: str = "defaultOnly"
) -> None:
    def put(holder: dict[str, Any], name: str) -> None:
        check_single(holder, name)
        if not unset_only or holder.get(name) in (None, ""):
            holder[name] = namespace

    for resource in resources.listed:
        resource.remember()
        gvk = resource.gvk
        if not gvk.is_cluster_scoped:
            put(resource.metadata, "namespace")
        if gvk.kind in _BINDINGS:
            given = resource.manifest.get("subjects")
            if given is not None and not isinstance(given, list):
                raise resource.fault(f"{resource.id}: subjects must be a list: correct them", "subjects")
            _bind(given, put, subjects)
        for spec in specs(gvk):
            # k8s: only the core kind is renamed, not other kinds called Namespace.
            foreign = spec.path == _NAME and gvk.kind == "Namespace" and gvk.group
            if spec.path not in ("metadata/namespace", "subjects") and not foreign:
                resource.visit(spec.path, put, str if spec.create else None)
    _check_unique(resources)


def _bind(subjects: Any, put: Callable[[dict[str, Any], str], None], which: str) -> None:
    for subject in subjects if isinstance(subjects, list) else ():
        if not isinstance(subject, dict) or which == "none":
            continue
        named = subject.get("kind") == "ServiceAccount" if which == "allServiceAccounts" else False
        if named or (which == "defaultOnly" and subject.get("name") == "default"):
            put(subject, "namespace")


def _check_unique(resources: Resources) -> None:
    seen: set[tuple[Gvk, str, str]] = set()
    for each in resources.listed:
        id = each.id
        address = (id.gvk, id.name, id.place)
        if address in seen:
            raise each.fault(f"the namespace gives two resources the same id {id}; rename one of them")
        seen.add(address)


def add_affixes(resources: Resources, prefix: str, suffix: str, specs: SpecsOf) -> None:
    def put(holder: dict[str, Any], name: str) -> None:
        check_single(holder, name)
        holder[name] = f"{prefix}{plain_text(holder[name])}{suffix}"

    for resource in resources.listed:
        first = resource.first_id.gvk
        if any(first.is_selected_by(each) for each in _UNTOUCHED):
            continue
        for spec in specs(first):
            if spec.path == _NAME:
                if prefix:
                    resource.prefixes.append(prefix)
                if suffix:
                    resource.suffixes.append(suffix)
                resource.remember()
            resource.visit(spec.path, put, str if spec.create else None)


def set_entries(resources: Resources, entries: Mapping[str, str], specs: SpecsOf) -> None:
    """Set labels or annotations at every field of the specs."""
    for resource in resources.listed:
        chosen = list(specs(resource.gvk))
        for key in sorted(entries):
            fresh: list[dict[str, Any]] = []
            put = _entry(resource, key, entries[key], fresh)
            for spec in chosen:
                resource.visit(spec.path, put, dict if spec.create else None)
            resource.share(key, fresh)


def _entry(
    resource: Resource, key: str, value: str, fresh: list[dict[str, Any]]
) -> Callable[[dict[str, Any], str], None]:
    def put(holder: dict[str, Any], name: str) -> None:
        field = holder[name]
        for each in field if isinstance(field, list) else (field,):
            if each is None:
                continue
            if not isinstance(each, dict):
                raise resource.fault(f"{name} of {resource.id} is not a map: cannot set {key}", "metadata", name)
            resource.set_entry(each, key, value, fresh)

    return put


def set_replicas(resources: Resources, name: str, count: int, specs: Iterable[FieldSpec], where: str) -> None:
    found = False
    listed = list(specs)
    for spec in listed:
        for resource in resources.matching(_named(name, spec.gvk)):
            found = True

            def put(holder: dict[str, Any], field: str) -> None:
                check_single(holder, field)
                holder[field] = count

            resource.visit(spec.path, put, int if spec.create else None)
    if not found:
        kinds = ", ".join(spec.gvk.kind or "any kind" for spec in listed)
        raise RenderError(f"replicas: no {kinds} is named {name}: correct the name", where=where)


def _named(name: str, gvk: Gvk) -> Callable[[Id], bool]:
    return lambda id: id.name == name and id.gvk.is_selected_by(gvk)
