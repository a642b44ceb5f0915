"""Manifests that an operation carries, which replace those of Git.

In: an Application, the JSON texts of its operation. Out: manifests, or a LocalManifestsError. Never: repeats a value of
a manifest in an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from argosy.errors import UserError
from argosy.gitops.application import Application, OperationRequest, Source
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import RenderResult
from argosy.gitops.policy.projects import find_signature_keys
from argosy.gitops.render.field_origins import NoOrigins
from argosy.gitops.render.manifest_lists import (
    describe_manifest_problem,
    describe_missing_name,
    flatten_lists,
    with_metadata,
)
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_json_decoder import read_json

# k8s: an object has at most 1.5 MiB. An Application holds the manifests twice: in `operation` and in `operationState`.
MAX_LOCAL_MANIFESTS_BYTES: Final = 640 << 10
INTEGRITY_ENFORCED: Final = "Cannot use local manifests when source integrity is enforced"  # argo: the same message
LOAD_ERROR: Final = "Failed to load local manifests"  # argo: the same message


class LocalManifestsError(UserError):
    """The manifests of an operation cannot be used."""


def find_compared_manifests(app: Application) -> tuple[str, ...]:
    """Return the manifests of the last operation, if the Application is compared with them and not with Git.

    argo: they count until the next operation. There they also count after a dry run, and with automated sync, which
    then never syncs from Git again.
    """
    automated = app.policy.automated
    if app.state is None or app.state.request.sync.dry_run or (automated is not None and automated.is_on):
        return ()
    return app.state.request.sync.manifests


def find_size_problem(texts: Sequence[str]) -> str:
    """Return why the Application cannot hold these manifests; empty if it can."""
    if not texts:
        return ""
    size = len(orjson.dumps(list(texts), default=str))
    if size <= MAX_LOCAL_MANIFESTS_BYTES:
        return ""
    return (
        f"they have {size} bytes, more than the {MAX_LOCAL_MANIFESTS_BYTES} that fit into an Application; push them to "
        "Git, or sync fewer of them"
    )


def render_local_manifests(texts: Sequence[str]) -> RenderResult:
    """Parse the manifests. Raises LocalManifestsError."""
    if problem := find_size_problem(texts):
        raise LocalManifestsError(f"{LOAD_ERROR}: {problem}")
    manifests: list[Manifest] = []
    for index, text in enumerate(texts):
        try:
            manifests += _read_objects(text)
        except UserError as error:
            raise LocalManifestsError(f"{LOAD_ERROR}: manifests[{index}] {error}") from error
    return RenderResult(manifests, NoOrigins())


def _read_objects(text: str) -> list[Manifest]:
    if text in ("", "null"):  # argo: ignored
        return []
    value = read_json(text.encode("utf-8", "surrogatepass")).value
    if problem := describe_manifest_problem(value):
        raise UserError(problem)
    manifests = [with_metadata(manifest) for manifest in flatten_lists([value])]
    for manifest in manifests:
        if problem := describe_missing_name(manifest):
            raise UserError(problem)
    return manifests


def check_integrity_not_enforced(project: Project, sources: Sequence[Source]) -> None:
    """argo: manifests that are not from Git have no signature."""
    if any(find_signature_keys(project, source.repo_url) is not None for source in sources):
        raise LocalManifestsError(INTEGRITY_ENFORCED)


def without_manifests(request: OperationRequest) -> OperationRequest:
    """Return the request without manifests that are too large to be kept."""
    return replace(request, sync=replace(request.sync, manifests=()))
