"""Repositories and clusters as objects of RBAC rules.

In: the object of a request: an address, or PROJECT/ADDRESS. Out: its usual spellings, for matching rules. Never:
different spellings for the same address; raises.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from argosy.gitops.application.cluster_address import cluster_spellings, parse_cluster_address
from argosy.gitops.policy.repository_patterns import read_address

CLUSTERS: Final = "clusters"
ADDRESS_RESOURCES: Final = frozenset({CLUSTERS, "repositories", "write-repositories"})
_OBJECT: Final = re.compile(r"(?P<project>[^/:@]*/)?(?P<address>[^/:]+:.*|/.*)", re.DOTALL)


class Spellings(NamedTuple):
    allowed_as: tuple[str, ...]
    denied_as: tuple[str, ...]


def spell_object(resource: str, name: str) -> Spellings:
    """Return the spellings in lower case. An object that is not an address has one."""
    found = _OBJECT.fullmatch(name)
    if found is None:
        return Spellings((name.lower(),), (name.lower(),))
    project = (found["project"] or "").lower()
    if resource == CLUSTERS:
        texts = tuple(project + text.lower() for text in cluster_spellings(parse_cluster_address(found["address"])))
        return Spellings(texts, texts)
    address = read_address(found["address"])
    return Spellings(*(tuple(project + text for text in texts) for texts in (address.allowed_as, address.denied_as)))
