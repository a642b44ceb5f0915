"""Who asks. In: a cluster. Out: the user's name there. Never: a token."""

from __future__ import annotations

from argosy.errors import ClusterError, PolicyError
from argosy.kube.client import Cluster


class NotLoggedIn(PolicyError):
    """The cluster does not know who asks."""


async def whoami(cluster: Cluster) -> str:
    """Empty where the cluster cannot tell: old ones do not serve the question."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await cluster.create(review)
    except ClusterError as error:
        if error.code == 401:
            raise NotLoggedIn("you are not logged in; log in with: oc login, then run the command again") from error
        if error.code in (403, 404):
            return ""
        raise
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
