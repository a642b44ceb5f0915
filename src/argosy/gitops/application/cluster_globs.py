"""Globs of clusters, as projects, sync windows and exclusions hold them.

In: a pattern, the address of a cluster. Out: whether they match. Never: another answer for another spelling of the same
address.
"""

from __future__ import annotations

from argosy.gitops.application.cluster_address import ClusterAddress, cluster_spellings
from argosy.languages.globs import escape_ipv6, glob_pattern, is_glob, matches


def matches_cluster(pattern: str, address: ClusterAddress) -> bool:
    """Letter case does not matter."""
    glob = escape_ipv6(pattern.strip().lower())
    return any(matches(glob, text.lower()) for text in cluster_spellings(address))


def denies_cluster(pattern: str, address: ClusterAddress) -> bool:
    """The same for a denial, with or without its `!`. A pattern that is no glob denies every cluster."""
    glob = pattern.removeprefix("!")
    return not is_glob(escape_ipv6(glob)) or matches_cluster(glob, address)


def require_glob(pattern: str, where: str) -> None:
    """Raises UserError if the pattern is no glob."""
    glob_pattern(escape_ipv6(pattern), where)
