"""Sets missing fields in copies of structs.

In: a part of a manifest. Out: a copy with defaults. Never: changes a field that is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.kube.schema.quantity import canonical

Part = dict[str, Any]
Pairs = Iterable[tuple[str, Any]]


def part(parent: Part, name: str) -> Part:
    """Return a copy of a struct, empty if it is missing or null."""
    found = parent.get(name)
    return dict(found) if isinstance(found, dict) else {}


def fill(target: Part, pairs: Pairs) -> Part:
    """Set fields that are absent, null or the empty string, in place: the target must be a copy."""
    for name, value in pairs:
        if target.get(name) in (None, ""):
            target[name] = value
    return target


def filled(given: Part, *pairs: tuple[str, Any]) -> Part:
    return fill(dict(given), pairs)


def each(target: Part, name: str, change: Callable[[Part], Part]) -> None:
    """Replace every struct of a list by the result of `change`."""
    found = target.get(name)
    if isinstance(found, list) and found:
        target[name] = [change(item) if isinstance(item, dict) else item for item in found]


def within(target: Part, name: str, change: Callable[[Part], Part]) -> None:
    """Replace a struct by the result of `change`, if it exists."""
    found = target.get(name)
    if isinstance(found, dict):
        target[name] = change(found)


def quantities(amounts: Part) -> Part:
    return {name: canonical(amount) if amount is not None else "0" for name, amount in amounts.items()}


def resources(given: Part) -> Part:
    """Canonicalize the limits and requests of a container or claim."""
    made = dict(given)
    for name in ("limits", "requests"):
        within(made, name, quantities)
    return made
