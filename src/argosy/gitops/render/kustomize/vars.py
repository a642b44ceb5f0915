"""Resolves `$(NAME)` variables (`vars`). In: vars bound to resources. Out: resources with values.

Never: resolves a variable in a variable's value.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize.error_lines import Fault, Path
from argosy.gitops.render.kustomize.field_spec_config import Config
from argosy.gitops.render.kustomize.gvk import Gvk, gvk_of
from argosy.gitops.render.kustomize.resource import Id, Resource
from argosy.gitops.render.kustomize.resources import Resources

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_STEP = re.compile(r"(?:\\\.|[^.\[])+|\[[^\]]*\]")
_LARGEST: Final = 10 * 1024 * 1024


class Var(NamedTuple):
    name: str
    wanted: Id
    path: str
    where: str
    resource: Resource | None
    at: Path = ()


def bound(given: dict[str, Any], resources: Resources, where: str, at: Path = ()) -> Var:
    """Bind a var to the resource it refers to, among the resources where it is declared."""
    name, reference = given.get("name") or "", given.get("objref") or {}
    field = given.get("fieldref") or {}
    gvk = Gvk(reference.get("group") or "", reference.get("version") or "", reference.get("kind") or "")
    if reference.get("apiVersion"):
        gvk = gvk_of(reference["apiVersion"], gvk.kind)
    wanted = Id(gvk, reference.get("name") or "", reference.get("namespace") or "")
    found = resources.matching(lambda id: _fits(id, wanted))
    if len(found) > 1:
        raise RenderError(f"the var {name} matches {len(found)} resources: add a namespace to its objref", where=where)
    path = field.get("fieldPath") or field.get("fieldpath") or "metadata.name"
    return Var(name, wanted, path, where, found[0] if found else None, at)


def _fits(id: Id, wanted: Id) -> bool:
    if id.name != wanted.name or id.gvk != wanted.gvk:
        return False
    return not (wanted.namespace or wanted.gvk.is_cluster_scoped) or id.place == wanted.place


def _twice(var: Var) -> Fault:
    return Fault(f"the var {var.name} is declared twice: rename one of them", where=var.where, inside=var.at)


def declare(old: list[Var], new: list[Var]) -> list[Var]:
    """Add a kustomization's own vars; a name that is already declared is an error."""
    names = {each.name for each in old}
    for each in new:
        if each.name in names:
            raise _twice(each)
        names.add(each.name)
    return [*old, *new]


def merge_vars(old: list[Var], new: list[Var]) -> list[Var]:
    names = {each.name: each for each in old}
    for each in new:
        known = names.get(each.name)
        if known is not None and (known.wanted, known.path) != (each.wanted, each.path):
            raise _twice(each)
        if known is not None and known.resource is None:
            names[each.name] = each
        names.setdefault(each.name, each)
    return list(names.values())


def resolve(resources: Resources, variables: list[Var], config: Config) -> None:
    if not variables:
        return
    found = {var.name: _value(var) for var in variables}
    # k8s: a map or a list cannot be put into a string, and its reference is left unchanged.
    values = {name: "null" if value is None else value for name, value in found.items() if not _is_deep(value)}

    def put(holder: dict[str, Any], name: str) -> None:
        holder[name] = _filled(holder[name], values)

    for resource in resources.listed:
        for spec in config.selected("varReference", resource.gvk):
            resource.visit(spec.path, put)


def _is_deep(value: Any) -> bool:
    return isinstance(value, dict | list)


def _value(var: Var) -> Any:
    resource = var.resource
    if resource is None:  # k8s: a var only sees the resources that exist where it is declared
        message = f"the var {var.name}: there is no {var.wanted} where it is declared; correct its objref"
        raise Fault(message, where=var.where, inside=var.at)
    value: Any = resource.manifest
    for step in _STEP.findall(var.path):
        step = step.strip("[]").replace("\\.", ".")
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            message = f"the var {var.name}: {resource.id} has no field {var.path}; correct its fieldref"
            raise Fault(message, where=var.where, inside=var.at)
    return value


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if type(value) is str:
        return _expanded(value, values) if "$" in value else value
    if type(value) is list:
        if any(type(each) is not str for each in value):  # k8s: even if it has no var
            raise RenderError("a list with vars has an element that is not a string: put it in quotes")
        return [_filled(each, values) for each in value]
    if type(value) is dict:
        return {key: _filled(each, values) if type(each) is str else each for key, each in value.items()}
    return value


def _expanded(text: str, values: dict[str, Any]) -> Any:
    whole = re.fullmatch(r"\$\(([^)]*)\)", text)
    if whole and whole[1] in values:
        return values[whole[1]]

    longest = max((len(_text(each)) for each in values.values()), default=0)
    if text.count("$(") * longest > _LARGEST:
        raise LimitError(f"vars expand a string beyond {_LARGEST} bytes: use fewer of them")

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        value = values.get(name)
        return match[0] if name not in values else _text(value)

    return _REFERENCE.sub(one, text)


def _text(value: Any) -> str:
    if isinstance(value, float) and abs(value) >= 1e6:
        # k8s: within a string, a float is formatted like Go's %g.
        digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
        return f"{digits}e{int(exponent):+03d}"
    return str(value).lower() if isinstance(value, bool) else str(value)
