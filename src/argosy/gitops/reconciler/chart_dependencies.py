"""Fetches the dependencies of a chart that are not in its repository.

In: the repositories and versions that Chart.yaml or Chart.lock names, a project. Out: checkouts, or a UserError.
Never: asks a repository that the project does not permit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.errors import PolicyError, RenderError
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.policy.projects import find_signature_keys, permits_source
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.render import ChartRequest

_NAME_PREFIXES: Final = ("@", "alias:")
_OCI_PREFIX: Final = "oci://"


async def fetch_dependencies(
    requests: Sequence[ChartRequest],
    project: Project,
    settings: ReconcilerSettings,
    *,
    max_age: float = 0.0,
    passes_credentials: bool = False,
    ignores_cache: bool = False,
) -> list[Checkout]:
    """Return the charts in the order of the requests. Raises PolicyError before anything is fetched."""
    urls = [_find_url(request, project, settings) for request in requests]
    refused = [url for url in dict.fromkeys(urls) if not permits_source(project, url)]
    if refused:  # argo: its words
        raise PolicyError(f"helm repos {', '.join(refused)} are not permitted in project '{project.name}'")
    for url in urls:
        check_no_signature_required(project, url)
    return [
        await settings.repositories.checkout_chart(
            url,
            request.name,
            request.version,
            project=project.name,
            max_age=max_age,
            passes_credentials=passes_credentials,
            ignores_cache=ignores_cache,
        )
        for url, request in zip(urls, requests, strict=True)
    ]


def check_no_signature_required(project: Project, url: str) -> None:
    """Raise PolicyError if the project requires signatures for a Helm repository: its charts have none."""
    if find_signature_keys(project, url) is not None:
        raise PolicyError(
            f"project '{project.name}' requires signatures for this repository, and charts of Helm repositories "
            "have none: use a chart in Git, or a policy of sourceIntegrity with the mode none",
            where=url,
        )


def _find_url(request: ChartRequest, project: Project, settings: ReconcilerSettings) -> str:
    """Return the URL of a repository. argo: a name is that of a declared Helm repository."""
    repository = request.repository
    prefix = next((prefix for prefix in _NAME_PREFIXES if repository.startswith(prefix)), "")
    if not prefix:
        return repository.removeprefix(_OCI_PREFIX)  # argo: OCI registries have no protocol
    name = repository.removeprefix(prefix)
    url = settings.repositories.find_chart_repository_url(name, project=project.name)
    if not url:
        message = (
            f"dependency {request.name} names the Helm repository {name!r}, and no repository Secret has that name"
        )
        raise RenderError(f"{message}; add it, or use its URL", where="Chart.yaml")
    return url
