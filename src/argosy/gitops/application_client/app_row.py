"""One Application as a row of a list.

In: a manifest. Out: AppRow. Never: keeps more of an Application than a list shows; raises for an invalid manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.analysis.environment_names import environment_of
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.summary import (
    deployment_count,
    has_error,
    health_message,
    health_word,
    is_busy,
    policy_word,
    revisions,
    rows,
    short,
    sync_word,
    why,
)
from argosy.gitops.status.hold import Hold, read_hold
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

NO_OPERATION: Final = "None"
ENVIRONMENT_LABELS: Final = ("environment", "env", "app.kubernetes.io/environment")
_NOTHING: Final[Mapping[str, str]] = {}


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
    hold: Hold | None = None
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
    searched: str = ""  # lower-case text that a search matches

    @property
    def revision(self) -> str:
        return self.revisions[0] if self.revisions else ""

    @property
    def short(self) -> str:
        return ", ".join(short(each) for each in self.revisions)

    @property
    def is_auto(self) -> bool:
        return self.policy != "Manual"

    def permitted_as(self, control: str) -> str:
        """argo: RBAC object of the Application; includes the namespace outside the control namespace."""
        place = "" if self.namespace == control else f"{self.namespace}/"
        return f"{self.project}/{place}{self.name}"


def row_of(manifest: Manifest) -> AppRow:
    """Build a row; an unreadable manifest gives a row with the error in `why`."""
    metadata = manifest["metadata"]
    key = ResourceKey("argoproj.io", "Application", metadata.get("namespace") or "", metadata["name"])
    version = str(metadata.get("resourceVersion") or "")
    try:
        return _row(read_application(manifest, f"Application {key.namespace}/{key.name}"), key, version)
    except UserError as error:
        spec = manifest.get("spec")
        project = spec.get("project") if isinstance(spec, Mapping) else None
        return AppRow(
            key, key.namespace, key.name, version, str(project or "default"),
            has_error=True, why=str(error), searched=key.name.lower(),
        )  # fmt: skip


def _row(app: Application, key: ResourceKey, version: str) -> AppRow:
    metadata = mapping(app.wire.get("metadata"))
    source = app.sources[0] if app.sources else None
    path = (source.path or source.chart) if source else ""
    place = app.destination.known
    labels = _texts(metadata.get("labels"))
    found = rows(app)
    told = why(app)
    repo = source.repo_url if source else ""
    cluster = place.name or place.server
    return AppRow(
        key=key,
        namespace=key.namespace,
        name=key.name,
        version=version,
        project=app.project,
        environment=_environment(labels, path, key.name, place.namespace),
        sync=sync_word(app),
        health=health_word(app),
        health_message=health_message(app),
        operation=app.state.progress.value if app.state else NO_OPERATION,
        is_busy=is_busy(app),
        has_error=has_error(app),
        is_deleting=bool(app.deleted),
        why=told,
        revisions=tuple(revisions(app)),
        synced=_synced(app),
        deployments=deployment_count(app),
        policy=policy_word(app),
        hold=read_hold(app.annotations),
        cluster=cluster,
        destination_namespace=place.namespace,
        repo=repo,
        path=path,
        ref=(source.ref or "HEAD") if source else "",
        sources=len(app.sources),
        owner=_owner(app, metadata),
        labels=labels,
        annotations=_texts(metadata.get("annotations")),
        created=str(metadata.get("creationTimestamp") or ""),
        differing=sum(row.status == "OutOfSync" for row in found),
        objects=len(found),
        searched="\n".join([key.name, key.namespace, app.project, place.namespace, repo, path, told]).lower(),
    )


def _environment(labels: Mapping[str, str], path: str, name: str, namespace: str) -> str:
    said = next((labels[each] for each in ENVIRONMENT_LABELS if labels.get(each)), "")
    return environment_of(said, path, name, namespace) or said


def _synced(app: Application) -> str:
    """Return the time of the last deployment, else of the last finished operation."""
    history: Iterable[Mapping[str, Any]] = mappings(app.status.get("history"))
    deployed = max((str(each.get("deployedAt") or "") for each in history), default="")
    return deployed or (app.state.finished if app.state else "")


def _owner(app: Application, metadata: Mapping[str, Any]) -> str:
    for each in mappings(metadata.get("ownerReferences")):
        return f"{each.get('kind')}/{each.get('name')}"
    return f"Application/{app.parent}" if app.parent else ""


def _texts(value: object) -> Mapping[str, str]:
    """Return the manifest's own map if all values are strings: thousands of rows must not copy it."""
    if not isinstance(value, Mapping) or not value:
        return _NOTHING
    if all(isinstance(each, str) for each in value.values()):
        return value
    return {str(name): str(each) for name, each in value.items()}
