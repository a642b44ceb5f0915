"""Permission check of triggers: RBAC of the job's ServiceAccount, and the namespaces that the installation allows.

In: a job, a verb on a resource. Out: nothing, or a UserError that says what is missing. Never: lends a job the
controller's own permissions: a user who can create a job may not restart everything that the controller can.
"""

from __future__ import annotations

import fnmatch
from typing import Final, NamedTuple

from argosy.errors import Forbidden, UserError
from argosy.features.notebooks.local_runs.run_limits_config_map import ARGOSY_CM, load_config_map_data
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.kube.client import Cluster
from argosy.kube.well_known_kinds import AUTHORIZATION_API_VERSION

# In argosy-cm: globs; if set, only these namespaces and the job's own.
NAMESPACES_SETTING: Final = "triggers.namespaces"


class ResourceAccess(NamedTuple):
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


async def check_permission(job: NotebookJob, access: ResourceAccess, cluster: Cluster) -> None:
    if access.namespace != job.namespace:
        await _check_namespace_is_allowed(access.namespace, cluster)
    username = f"system:serviceaccount:{job.namespace}:{job.service_account}"
    attributes = {name: value for name, value in access._asdict().items() if value}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{job.namespace}", "system:authenticated"]
    review = {
        "apiVersion": AUTHORIZATION_API_VERSION, "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": username, "groups": groups, "resourceAttributes": attributes},
    }  # fmt: skip
    try:
        response = await cluster.create(review)
    except Forbidden as error:
        message = "the controller may not check permissions of ServiceAccounts; grant it create subjectaccessreviews"
        raise UserError(message) from error
    if not (response.get("status") or {}).get("allowed"):
        raise UserError(
            f"{username} cannot {access}; bind a Role that allows it, or set another ServiceAccount for the job"
        )


async def _check_namespace_is_allowed(namespace: str, cluster: Cluster) -> None:
    allowed_globs = (await load_config_map_data(ARGOSY_CM, cluster)).get(NAMESPACES_SETTING)
    if allowed_globs is None:
        return
    if not any(fnmatch.fnmatchcase(namespace, glob) for glob in allowed_globs.replace(",", " ").split()):
        message = f"namespace {namespace} is not among {NAMESPACES_SETTING} of {ARGOSY_CM}"
        raise UserError(f"{message}; ask the administrator to add it, or use the job's own namespace")
