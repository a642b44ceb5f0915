"""Bundled triggers and templates.

In: nothing. Out: entries in the format of argocd-notifications-cm. Never: contains a service or a recipient.
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
