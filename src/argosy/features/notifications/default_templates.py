"""Triggers and templates that ship.

In: nothing. Out: entries as argocd-notifications-cm has them. Never: a service or a recipient: those are the user's.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from argosy.kube.objects import load


@lru_cache(maxsize=1)
def _read() -> dict[str, str]:
    found: dict[str, str] = load(files(__package__).joinpath("catalogue.yaml").read_bytes())
    return found


def shipped() -> dict[str, str]:
    return dict(_read())
