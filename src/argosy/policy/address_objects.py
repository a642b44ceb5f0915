"""Repositories and clusters as objects of RBAC rules, in canonical spelling.

In: the object of a request or of a rule: an address, or PROJECT/ADDRESS. Out: one text for all spellings of the
address. Never: raises.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.model.cluster_address import parse_cluster_address
from argosy.policy.repository_patterns import read_address, read_pattern

CLUSTERS: Final = "clusters"
ADDRESS_RESOURCES: Final = frozenset({CLUSTERS, "repositories", "write-repositories"})
_OBJECT: Final = re.compile(r"(?P<project>[^/:@]*/)?(?P<address>[^/:]+:.*|/.*)", re.DOTALL)


def canonical_object(resource: str, name: str) -> str:
    project, address = _split(name)
    if not address:
        return name
    text = parse_cluster_address(address) if resource == CLUSTERS else read_address(address).text
    return f"{project}{text}"


def canonical_pattern(resource: str, pattern: str) -> str:
    """A glob of a rule, in the spelling of the objects that it is matched against."""
    project, address = _split(pattern)
    if not address:
        return pattern
    text = parse_cluster_address(address) if resource == CLUSTERS else read_pattern(address).glob
    return f"{project}{text}"


def spellings(resource: str, name: str) -> tuple[str, ...]:
    """How people write the address: a regular expression cannot be made canonical, so each of them counts."""
    canonical = canonical_object(resource, name)
    project, address = _split(canonical)
    if not address or resource == CLUSTERS:
        return (canonical,)
    known = [address, f"{address}.git"]
    if address.startswith("ssh://"):
        host, _, path = address.removeprefix("ssh://").partition("/")
        known += [f"ssh://git@{host}/{path}", f"ssh://git@{host}/{path}.git"]
        known += [f"git@{host}:{path}", f"git@{host}:{path}.git"]
    return tuple(f"{project}{spelling}" for spelling in known)


def _split(name: str) -> tuple[str, str]:
    """The project with its slash, and the address; no address where the object is something else, such as `*`."""
    found = _OBJECT.fullmatch(name)
    return (found["project"] or "", found["address"]) if found else ("", "")
