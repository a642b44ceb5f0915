"""Resolves `$(NAME)` variables (`vars`). In: vars bound to resources. Out: resources with values.

Never: resolves a variable in a variable's value.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize.error_lines import KustomizationPath, LocatedError
from argosy.gitops.render.kustomize.gvk import Gvk, parse_gvk
from argosy.gitops.render.kustomize.resource import KustomizeResource, ResourceId
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.transformer_config import TransformerConfig
from argosy.kube.objects.go_format import format_value

_VAR_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_PATH_STEP = re.compile(r"(?:\\\.|[^.\[])+|\[[^\]]*\]")
_MAX_EXPANDED_BYTES: Final = 10 * 1024 * 1024


class KustomizeVar(NamedTuple):
    name: str
    target_id: ResourceId
    path: str
    where: str
    resource: KustomizeResource | None
    declared_at: KustomizationPath = ()


def bind_var(
    fields: dict[str, Any], resources: KustomizeResources, where: str, declared_at: KustomizationPath = ()
) -> KustomizeVar:
    """Bind a var to the resource it refers to, among the resources where it is declared."""
    name, reference = fields.get("name") or "", fields.get("objref") or {}
    field = fields.get("fieldref") or {}
    gvk = Gvk(reference.get("group") or "", reference.get("version") or "", reference.get("kind") or "")
    if reference.get("apiVersion"):
        gvk = parse_gvk(reference["apiVersion"], gvk.kind)
    target_id = ResourceId(gvk, reference.get("name") or "", reference.get("namespace") or "")
    matching = resources.list_matching(lambda id: _matches_id(id, target_id))
    if len(matching) > 1:
        raise RenderError(
            f"the var {name} matches {len(matching)} resources: add a namespace to its objref", where=where
        )
    path = field.get("fieldPath") or field.get("fieldpath") or "metadata.name"
    return KustomizeVar(name, target_id, path, where, matching[0] if matching else None, declared_at)


def _matches_id(id: ResourceId, target_id: ResourceId) -> bool:
    if id.name != target_id.name or id.gvk != target_id.gvk:
        return False
    return (
        not (target_id.namespace or target_id.gvk.is_cluster_scoped)
        or id.effective_namespace == target_id.effective_namespace
    )


def _build_duplicate_error(var: KustomizeVar) -> LocatedError:
    return LocatedError(
        f"the var {var.name} is declared twice: rename one of them", where=var.where, path=var.declared_at
    )


def declare_vars(old: list[KustomizeVar], new: list[KustomizeVar]) -> list[KustomizeVar]:
    """Add a kustomization's own vars; a name that is already declared is an error."""
    names = {var.name for var in old}
    for var in new:
        if var.name in names:
            raise _build_duplicate_error(var)
        names.add(var.name)
    return [*old, *new]


def merge_vars(old: list[KustomizeVar], new: list[KustomizeVar]) -> list[KustomizeVar]:
    var_by_name = {var.name: var for var in old}
    for var in new:
        existing = var_by_name.get(var.name)
        if existing is not None and (existing.target_id, existing.path) != (var.target_id, var.path):
            raise _build_duplicate_error(var)
        if existing is not None and existing.resource is None:
            var_by_name[var.name] = var
        var_by_name.setdefault(var.name, var)
    return list(var_by_name.values())


def resolve_vars(resources: KustomizeResources, variables: list[KustomizeVar], config: TransformerConfig) -> None:
    if not variables:
        return
    all_values = {var.name: _read_var_value(var) for var in variables}
    # k8s: a map or a list cannot be put into a string, and its reference is left unchanged.
    values = {
        name: "null" if value is None else value for name, value in all_values.items() if not _is_map_or_list(value)
    }

    def expand_field(holder: dict[str, Any], name: str) -> None:
        holder[name] = _expand_value(holder[name], values)

    for resource in resources.items:
        for spec in config.select_specs("varReference", resource.gvk):
            resource.visit_field(spec.path, expand_field)


def _is_map_or_list(value: Any) -> bool:
    return isinstance(value, dict | list)


def _read_var_value(var: KustomizeVar) -> Any:
    resource = var.resource
    if resource is None:  # k8s: a var only sees the resources that exist where it is declared
        message = f"the var {var.name}: there is no {var.target_id} where it is declared; correct its objref"
        raise LocatedError(message, where=var.where, path=var.declared_at)
    value: Any = resource.manifest
    for step in _PATH_STEP.findall(var.path):
        step = step.strip("[]").replace("\\.", ".")
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            message = f"the var {var.name}: {resource.id} has no field {var.path}; correct its fieldref"
            raise LocatedError(message, where=var.where, path=var.declared_at)
    return value


def _expand_value(value: Any, values: dict[str, Any]) -> Any:
    if type(value) is str:
        return _expand_string(value, values) if "$" in value else value
    if type(value) is list:
        if any(type(item) is not str for item in value):  # k8s: even if it has no var
            raise RenderError("a list with vars has an element that is not a string: put it in quotes")
        return [_expand_value(item, values) for item in value]
    if type(value) is dict:
        return {key: _expand_value(item, values) if type(item) is str else item for key, item in value.items()}
    return value


def _expand_string(text: str, values: dict[str, Any]) -> Any:
    whole_match = re.fullmatch(r"\$\(([^)]*)\)", text)
    if whole_match and whole_match[1] in values:
        return values[whole_match[1]]

    longest_value = max((len(format_value(value_item)) for value_item in values.values()), default=0)
    if text.count("$(") * longest_value > _MAX_EXPANDED_BYTES:
        raise LimitError(f"vars expand a string beyond {_MAX_EXPANDED_BYTES} bytes: use fewer of them")

    def expand_match(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        value = values.get(name)
        return match[0] if name not in values else format_value(value)

    return _VAR_REFERENCE.sub(expand_match, text)
