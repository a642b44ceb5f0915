"""Finds the name of the current user in a cluster.

In: a cluster. Out: the user name. Never: returns a token.
"""

from __future__ import annotations

from argosy.errors import ClusterError, PolicyError
from argosy.kube.client import Cluster
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION


class NotLoggedIn(PolicyError):
    """The API server answered 401 Unauthorized."""


async def whoami(cluster: Cluster) -> str:
    """Return the user name; empty if the cluster does not serve SelfSubjectReview or forbids it."""
    review = {"apiVersion": AUTHENTICATION_API_VERSION, "kind": "SelfSubjectReview"}
    try:
        answer = await cluster.create(review)
    except ClusterError as error:
        if error.code == 401:
            raise NotLoggedIn("you are not logged in; log in with: oc login, then run the command again") from error
        if error.code in (403, 404):
            return ""
        raise
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
