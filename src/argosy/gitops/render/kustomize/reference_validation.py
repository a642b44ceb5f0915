"""The form of fields that name others. In: resources and field specs. Out: nothing, or what is wrong with one of them.

Never: changes a field; whether a name is known is not asked here.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.gitops.render.kustomize.field_spec_config import Config, Forms
from argosy.gitops.render.kustomize.field_specs import steps_of
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import Resource

_END: Final = ""  # in the place of a name: a path ends here


class _Wrong(Exception):
    """What is wrong; the names on the way are added on the way back."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def check_forms(resources: list[Resource], config: Config) -> None:
    """k8s: every field that may name another is looked at, even if nothing has a new name."""
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
        raise _Wrong(f"holds {str(node)[:40]!r}, not a map with {next(name for name in forms if name)}")


def _check_end(value: Any) -> None:
    for each in value if type(value) is list else (value,):
        if type(each) is dict and "name" not in each:
            raise _Wrong("holds a map that has no name")
        if type(each) is list:
            raise _Wrong("holds a list within a list")
