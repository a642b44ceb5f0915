"""One Application as a row of a list.

In: a manifest. Out: AppRow. Never: keeps more of an Application than a list shows; raises for an invalid manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.analysis.environment_names import detect_environment
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.status_summary import (
    count_deployments,
    describe_problem,
    describe_sync_policy,
    has_error,
    is_busy,
    list_rows,
    read_health_message,
    read_health_status,
    read_sync_status,
    read_synced_revisions,
    shorten_revision,
)
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import SyncHold, read_hold
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

NO_OPERATION: Final = "None"
ENVIRONMENT_LABELS: Final = ("environment", "env", "app.kubernetes.io/environment")
_EMPTY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class AppRow:
    key: ResourceKey
    namespace: str
    name: str
    version: str = ""  # resourceVersion that the row was built from
    project: str = "default"
    environment: str = ""  # guessed from labels and names; empty if unknown
    sync: str = "Unknown"
    health: str = "Unknown"
    health_message: str = ""
    operation: str = NO_OPERATION  # phase of the last or running operation
    is_busy: bool = False
    has_error: bool = False  # an error condition, or a failed last sync
    is_deleting: bool = False
    why: str = ""
    revisions: tuple[str, ...] = ()
    synced: str = ""  # time of the last deployment
    deployments: int = 0  # history entries
    policy: str = "Manual"
    hold: SyncHold | None = None
    cluster: str = ""  # destination name or URL
    destination_namespace: str = ""
    repo: str = ""
    path: str = ""  # path of the first source, or its chart name
    ref: str = ""
    sources: int = 1
    owner: str = ""  # the ApplicationSet or Application that created it
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    differing: int = 0  # OutOfSync objects
    objects: int = 0
    search_text: str = ""  # lower-case text that a search matches

    @property
    def revision(self) -> str:
        return self.revisions[0] if self.revisions else ""

    @property
    def short(self) -> str:
        return ", ".join(shorten_revision(revision) for revision in self.revisions)

    @property
    def is_auto(self) -> bool:
        return self.policy != "Manual"

    def rbac_object(self, control: str) -> str:
        """argo: RBAC object of the Application; includes the namespace outside the control namespace."""
        namespace_prefix = "" if self.namespace == control else f"{self.namespace}/"
        return f"{self.project}/{namespace_prefix}{self.name}"


def build_row(manifest: Manifest) -> AppRow:
    """Build a row; an unreadable manifest gives a row with the error in `why`."""
    metadata = manifest["metadata"]
    key = ResourceKey(*APPLICATION, metadata.get("namespace") or "", metadata["name"])
    version = str(metadata.get("resourceVersion") or "")
    try:
        return _build_readable_row(read_application(manifest, f"Application {key.namespace}/{key.name}"), key, version)
    except UserError as error:
        spec = manifest.get("spec")
        project = spec.get("project") if isinstance(spec, Mapping) else None
        return AppRow(
            key, key.namespace, key.name, version, str(project or "default"),
            has_error=True, why=str(error), search_text=key.name.lower(),
        )  # fmt: skip


def _build_readable_row(app: Application, key: ResourceKey, version: str) -> AppRow:
    metadata = as_mapping(app.wire.get("metadata"))
    source = app.sources[0] if app.sources else None
    path = (source.path or source.chart) if source else ""
    destination = app.destination.with_in_cluster_alias
    labels = _read_text_map(metadata.get("labels"))
    resource_rows = list_rows(app)
    reason = describe_problem(app)
    repo = source.repo_url if source else ""
    cluster = destination.name or destination.server
    return AppRow(
        key=key,
        namespace=key.namespace,
        name=key.name,
        version=version,
        project=app.project,
        environment=_guess_environment(labels, path, key.name, destination.namespace),
        sync=read_sync_status(app),
        health=read_health_status(app),
        health_message=read_health_message(app),
        operation=app.state.phase.value if app.state else NO_OPERATION,
        is_busy=is_busy(app),
        has_error=has_error(app),
        is_deleting=bool(app.deletion_timestamp),
        why=reason,
        revisions=tuple(read_synced_revisions(app)),
        synced=_read_last_sync_time(app),
        deployments=count_deployments(app),
        policy=describe_sync_policy(app),
        hold=read_hold(app.annotations),
        cluster=cluster,
        destination_namespace=destination.namespace,
        repo=repo,
        path=path,
        ref=(source.ref or "HEAD") if source else "",
        sources=len(app.sources),
        owner=_describe_owner(app, metadata),
        labels=labels,
        annotations=_read_text_map(metadata.get("annotations")),
        created=str(metadata.get("creationTimestamp") or ""),
        differing=sum(row.status == "OutOfSync" for row in resource_rows),
        objects=len(resource_rows),
        search_text="\n".join(
            [key.name, key.namespace, app.project, destination.namespace, repo, path, reason]
        ).lower(),
    )


def _guess_environment(labels: Mapping[str, str], path: str, name: str, namespace: str) -> str:
    label = next((labels[label_name] for label_name in ENVIRONMENT_LABELS if labels.get(label_name)), "")
    return detect_environment(label, path, name, namespace) or label


def _read_last_sync_time(app: Application) -> str:
    """Return the time of the last deployment, else of the last finished operation."""
    history: Iterable[Mapping[str, Any]] = as_mappings(app.status.get("history"))
    deployed = max((str(entry.get("deployedAt") or "") for entry in history), default="")
    return deployed or (app.state.finished if app.state else "")


def _describe_owner(app: Application, metadata: Mapping[str, Any]) -> str:
    for reference in as_mappings(metadata.get("ownerReferences")):
        return f"{reference.get('kind')}/{reference.get('name')}"
    return f"Application/{app.parent}" if app.parent else ""


def _read_text_map(value: object) -> Mapping[str, str]:
    """Return the manifest's own map if all values are strings: thousands of rows must not copy it."""
    if not isinstance(value, Mapping) or not value:
        return _EMPTY
    if all(isinstance(item, str) for item in value.values()):
        return value
    return {str(name): str(item) for name, item in value.items()}
