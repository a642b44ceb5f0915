"""Validates the types of fields that refer to other resources. In: resources and field specs.

Out: nothing, or an error. Never: changes a field, or checks that a name exists.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.gitops.render.kustomize.field_spec_config import Config, Forms
from argosy.gitops.render.kustomize.field_specs import steps_of
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import Resource

_END: Final = ""  # as a key: a path ends here


class _Wrong(Exception):
    """A field of the wrong type; its path is filled in while the error propagates."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def check_forms(resources: list[Resource], config: Config) -> None:
    """k8s: every field that may refer to a resource is checked, even if no name changed."""
    known = config.forms
    for resource in resources:
        gvk = resource.gvk
        forms = known.get(gvk)
        if forms is None:
            forms = known[gvk] = _forms(config, gvk)
        if forms:
            try:
                _check(resource.manifest, forms)
            except _Wrong as wrong:
                path = wrong.path[::-1]
                raise resource.fault(f"{resource.id}: {'/'.join(path)} {wrong}: correct it", *path) from None


def _forms(config: Config, gvk: Gvk) -> Forms:
    found: Forms = {}
    for _, specs in config.name_references:
        for spec in specs:
            if gvk.is_selected_by(spec.gvk):
                at = found
                for name, _ in steps_of(spec.path):
                    at = at.setdefault(name, {})
                at[_END] = {}
    return found


def _check(node: Any, forms: Forms) -> None:
    if type(node) is dict:
        for name, value in node.items():
            below = forms.get(name)
            if below is None or value is None:
                continue
            try:
                if _END in below:
                    _check_end(value)
                if len(below) > 1 or _END not in below:
                    _check(value, below)
            except _Wrong as wrong:
                wrong.path.append(name)
                raise
    elif type(node) is list:
        for each in node:
            _check(each, forms)
    elif node is not None:
        raise _Wrong(f"is {str(node)[:40]!r}, not a map with {next(name for name in forms if name)}")


def _check_end(value: Any) -> None:
    for each in value if type(value) is list else (value,):
        if type(each) is dict and "name" not in each:
            raise _Wrong("has a map without a name")
        if type(each) is list:
            raise _Wrong("has a list in a list")
