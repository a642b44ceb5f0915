"""Permission check of triggers: RBAC of the job's ServiceAccount, and the namespaces that the installation allows.

In: a job, a verb on a resource. Out: nothing, or a UserError that says what is missing. Never: lends a job the
controller's own permissions: a user who can create a job may not restart everything that the controller can.
"""

from __future__ import annotations

import fnmatch
from typing import Final, NamedTuple

from argosy.errors import Forbidden, UserError
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.local_runs.settings import ARGOSY_CM, data_of
from argosy.kube.client import Cluster

NAMESPACES: Final = "triggers.namespaces"  # in argosy-cm: globs; if set, only these namespaces and the job's own
REVIEW: Final = "authorization.k8s.io/v1"


class Wish(NamedTuple):
    """Resource attributes of an RBAC check."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{part}{group} in namespace {self.namespace}"


async def check(job: Job, wish: Wish, cluster: Cluster) -> None:
    if wish.namespace != job.namespace:
        await _check_namespace(wish.namespace, cluster)
    who = f"system:serviceaccount:{job.namespace}:{job.account}"
    attributes = {name: value for name, value in wish._asdict().items() if value}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{job.namespace}", "system:authenticated"]
    review = {
        "apiVersion": REVIEW, "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": who, "groups": groups, "resourceAttributes": attributes},
    }  # fmt: skip
    try:
        answer = await cluster.create(review)
    except Forbidden as error:
        said = "the controller may not check permissions of ServiceAccounts; grant it create subjectaccessreviews"
        raise UserError(said) from error
    if not (answer.get("status") or {}).get("allowed"):
        raise UserError(f"{who} cannot {wish}; bind a Role that allows it, or set another ServiceAccount for the job")


async def _check_namespace(namespace: str, cluster: Cluster) -> None:
    allowed = (await data_of(ARGOSY_CM, cluster)).get(NAMESPACES)
    if allowed is None:
        return
    if not any(fnmatch.fnmatchcase(namespace, each) for each in allowed.replace(",", " ").split()):
        said = f"namespace {namespace} is not among {NAMESPACES} of {ARGOSY_CM}"
        raise UserError(f"{said}; ask the administrator to add it, or use the job's own namespace")
