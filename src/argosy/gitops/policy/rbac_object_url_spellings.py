"""Repositories and clusters as objects of RBAC rules.

In: the object of a request: an address, or PROJECT/ADDRESS. Out: its usual spellings, for matching rules. Never:
different spellings for the same address; raises.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from argosy.gitops.application.canonical_cluster_address import list_spellings, parse_cluster_address
from argosy.gitops.policy.repository_patterns import read_repository_spellings

CLUSTERS_RESOURCE: Final = "clusters"
ADDRESS_RESOURCES: Final = frozenset({CLUSTERS_RESOURCE, "repositories", "write-repositories"})
_ADDRESS_OBJECT: Final = re.compile(r"(?P<project>[^/:@]*/)?(?P<address>[^/:]+:.*|/.*)", re.DOTALL)


class ObjectSpellings(NamedTuple):
    allowed_as: tuple[str, ...]
    denied_as: tuple[str, ...]


def list_object_spellings(resource: str, name: str) -> ObjectSpellings:
    """Return the spellings in lower case. An object that is not an address has one."""
    match = _ADDRESS_OBJECT.fullmatch(name)
    if match is None:
        return ObjectSpellings((name.lower(),), (name.lower(),))
    project = (match["project"] or "").lower()
    if resource == CLUSTERS_RESOURCE:
        texts = tuple(project + text.lower() for text in list_spellings(parse_cluster_address(match["address"])))
        return ObjectSpellings(texts, texts)
    address = read_repository_spellings(match["address"])
    return ObjectSpellings(
        *(tuple(project + text for text in texts) for texts in (address.allowed_as, address.denied_as))
    )
