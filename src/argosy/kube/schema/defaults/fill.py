"""Filling in what is missing, without touching what was given.

In: a part of a manifest. Out: a copy of it with defaults. Never: changes its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.kube.schema.quantity import canonical

Part = dict[str, Any]
Pairs = Iterable[tuple[str, Any]]


def part(parent: Part, name: str) -> Part:
    """A copy of a struct, empty if it is missing or null."""
    found = parent.get(name)
    return dict(found) if isinstance(found, dict) else {}


def fill(target: Part, pairs: Pairs) -> Part:
    """Set what is absent, null or the empty string. The target is the caller's own copy."""
    for name, value in pairs:
        if target.get(name) in (None, ""):
            target[name] = value
    return target


def filled(given: Part, *pairs: tuple[str, Any]) -> Part:
    return fill(dict(given), pairs)


def each(target: Part, name: str, change: Callable[[Part], Part]) -> None:
    """Replace every struct of a list by what `change` makes of it."""
    found = target.get(name)
    if isinstance(found, list) and found:
        target[name] = [change(item) if isinstance(item, dict) else item for item in found]


def within(target: Part, name: str, change: Callable[[Part], Part]) -> None:
    """Replace a struct, if it is there."""
    found = target.get(name)
    if isinstance(found, dict):
        target[name] = change(found)


def quantities(amounts: Part) -> Part:
    return {name: canonical(amount) if amount is not None else "0" for name, amount in amounts.items()}


def resources(given: Part) -> Part:
    """The limits and requests of a container or claim, in canonical form."""
    made = dict(given)
    for name in ("limits", "requests"):
        within(made, name, quantities)
    return made
