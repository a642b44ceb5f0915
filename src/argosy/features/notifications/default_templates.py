"""Bundled triggers and templates.

In: nothing. Out: entries in the format of argocd-notifications-cm. Never: contains a service or a recipient.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from argosy.kube.objects import read_yaml


@lru_cache(maxsize=1)
def _load_catalogue() -> dict[str, str]:
    entries: dict[str, str] = read_yaml(files(__package__).joinpath("catalogue.yaml").read_bytes())
    return entries


def load_bundled_entries() -> dict[str, str]:
    return dict(_load_catalogue())
