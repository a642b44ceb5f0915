"""Matches cluster globs of projects, sync windows and exclusions.

In: a pattern, the address of a cluster. Out: True if they match. Never: depends on the spelling of the address.
"""

from __future__ import annotations

from argosy.gitops.application.canonical_cluster_address import ClusterAddress, list_spellings
from argosy.languages.globs import compile_glob, escape_ipv6, is_glob, matches_glob


def matches_cluster(pattern: str, address: ClusterAddress) -> bool:
    """True if the glob matches; letter case does not matter."""
    glob = escape_ipv6(pattern.strip().lower())
    return any(matches_glob(glob, text.lower()) for text in list_spellings(address))


def denies_cluster(pattern: str, address: ClusterAddress) -> bool:
    """True if a denial matches, with or without its `!`. An invalid glob denies every cluster."""
    glob = pattern.removeprefix("!")
    return not is_glob(escape_ipv6(glob)) or matches_cluster(glob, address)


def require_glob(pattern: str, where: str) -> None:
    """Raise UserError if the pattern is not a valid glob."""
    compile_glob(escape_ipv6(pattern), where)
