"""Transformers for namespace, prefix, suffix, labels, annotations and replicas. In: resources and field specs.

Out: changed resources. Never: changes a field without a spec, except metadata.namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.field_spec_traversal import FieldSpec, check_is_scalar
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import KustomizeResource, ResourceId, scalar_to_text
from argosy.gitops.render.kustomize.resource_map import KustomizeResources

SelectSpecs = Callable[[Gvk], Iterable[FieldSpec]]
_NAME_PATH: Final = "metadata/name"
_KINDS_WITHOUT_AFFIXES: Final = (
    Gvk("", "", "CustomResourceDefinition"),
    Gvk("apiregistration.k8s.io", "", "APIService"),
    Gvk("", "", "Namespace"),
)
_BINDING_KINDS: Final = ("RoleBinding", "ClusterRoleBinding")


def build_spec_selector(specs: Iterable[FieldSpec]) -> SelectSpecs:
    spec_list = list(specs)
    return lambda gvk: [spec for spec in spec_list if gvk.is_selected_by(spec.gvk)]


def set_namespace(
    resources: KustomizeResources,
    namespace: str,
    specs: SelectSpecs,
    *,
    unset_only: bool = False,
    subjects: str = "defaultOnly",
) -> None:
    def set_field(holder: dict[str, Any], name: str) -> None:
        check_is_scalar(holder, name)
        if not unset_only or holder.get(name) in (None, ""):
            holder[name] = namespace

    for resource in resources.items:
        resource.save_current_id()
        gvk = resource.gvk
        if not gvk.is_cluster_scoped:
            set_field(resource.metadata, "namespace")
        if gvk.kind in _BINDING_KINDS:
            subject_list = resource.manifest.get("subjects")
            if subject_list is not None and not isinstance(subject_list, list):
                raise resource.build_error(f"{resource.id}: subjects must be a list: correct them", "subjects")
            _set_subject_namespaces(subject_list, set_field, subjects)
        for spec in specs(gvk):
            # k8s: only the core kind is renamed, not other kinds called Namespace.
            is_other_namespace_kind = spec.path == _NAME_PATH and gvk.kind == "Namespace" and gvk.group
            if spec.path not in ("metadata/namespace", "subjects") and not is_other_namespace_kind:
                resource.visit_field(spec.path, set_field, str if spec.create else None)
    _check_unique_ids(resources)


def _set_subject_namespaces(subjects: Any, set_field: Callable[[dict[str, Any], str], None], subject_rule: str) -> None:
    for subject in subjects if isinstance(subjects, list) else ():
        if not isinstance(subject, dict) or subject_rule == "none":
            continue
        is_service_account = subject.get("kind") == "ServiceAccount" if subject_rule == "allServiceAccounts" else False
        if is_service_account or (subject_rule == "defaultOnly" and subject.get("name") == "default"):
            set_field(subject, "namespace")


def _check_unique_ids(resources: KustomizeResources) -> None:
    seen_keys: set[tuple[Gvk, str, str]] = set()
    for resource in resources.items:
        id = resource.id
        id_key = (id.gvk, id.name, id.effective_namespace)
        if id_key in seen_keys:
            raise resource.build_error(f"the namespace gives two resources the same id {id}; rename one of them")
        seen_keys.add(id_key)


def add_affixes(resources: KustomizeResources, prefix: str, suffix: str, specs: SelectSpecs) -> None:
    def set_name(holder: dict[str, Any], name: str) -> None:
        check_is_scalar(holder, name)
        holder[name] = f"{prefix}{scalar_to_text(holder[name])}{suffix}"

    for resource in resources.items:
        original_gvk = resource.original_id.gvk
        if any(original_gvk.is_selected_by(excluded) for excluded in _KINDS_WITHOUT_AFFIXES):
            continue
        for spec in specs(original_gvk):
            if spec.path == _NAME_PATH:
                if prefix:
                    resource.prefixes.append(prefix)
                if suffix:
                    resource.suffixes.append(suffix)
                resource.save_current_id()
            resource.visit_field(spec.path, set_name, str if spec.create else None)


def set_metadata_entries(resources: KustomizeResources, entries: Mapping[str, str], specs: SelectSpecs) -> None:
    """Set labels or annotations at every field of the specs."""
    for resource in resources.items:
        selected_specs = list(specs(resource.gvk))
        for key in sorted(entries):
            new_holders: list[dict[str, Any]] = []
            set_entry = _build_entry_setter(resource, key, entries[key], new_holders)
            for spec in selected_specs:
                resource.visit_field(spec.path, set_entry, dict if spec.create else None)
            resource.link_new_entries(key, new_holders)


def _build_entry_setter(
    resource: KustomizeResource, key: str, value: str, new_holders: list[dict[str, Any]]
) -> Callable[[dict[str, Any], str], None]:
    def set_entry(holder: dict[str, Any], name: str) -> None:
        field = holder[name]
        for entry_holder in field if isinstance(field, list) else (field,):
            if entry_holder is None:
                continue
            if not isinstance(entry_holder, dict):
                raise resource.build_error(f"{name} of {resource.id} is not a map: cannot set {key}", "metadata", name)
            resource.set_entry(entry_holder, key, value, new_holders)

    return set_entry


def set_replicas(resources: KustomizeResources, name: str, count: int, specs: Iterable[FieldSpec], where: str) -> None:
    has_match = False
    spec_list = list(specs)
    for spec in spec_list:
        for resource in resources.list_matching(_build_name_filter(name, spec.gvk)):
            has_match = True

            def set_count(holder: dict[str, Any], field: str) -> None:
                check_is_scalar(holder, field)
                holder[field] = count

            resource.visit_field(spec.path, set_count, int if spec.create else None)
    if not has_match:
        kinds = ", ".join(spec.gvk.kind or "any kind" for spec in spec_list)
        raise RenderError(f"replicas: no {kinds} is named {name}: correct the name", where=where)


def _build_name_filter(name: str, gvk: Gvk) -> Callable[[ResourceId], bool]:
    return lambda id: id.name == name and id.gvk.is_selected_by(gvk)
