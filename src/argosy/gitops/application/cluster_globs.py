"""Matches cluster globs of projects, sync windows and exclusions.

In: a pattern, the address of a cluster. Out: True if they match. Never: depends on the spelling of the address.
"""

from __future__ import annotations

from argosy.gitops.application.cluster_address import ClusterAddress, cluster_spellings
from argosy.languages.globs import escape_ipv6, glob_pattern, is_glob, matches


def matches_cluster(pattern: str, address: ClusterAddress) -> bool:
    """True if the glob matches; letter case does not matter."""
    glob = escape_ipv6(pattern.strip().lower())
    return any(matches(glob, text.lower()) for text in cluster_spellings(address))


def denies_cluster(pattern: str, address: ClusterAddress) -> bool:
    """True if a denial matches, with or without its `!`. An invalid glob denies every cluster."""
    glob = pattern.removeprefix("!")
    return not is_glob(escape_ipv6(glob)) or matches_cluster(glob, address)


def require_glob(pattern: str, where: str) -> None:
    """Raise UserError if the pattern is not a valid glob."""
    glob_pattern(escape_ipv6(pattern), where)
