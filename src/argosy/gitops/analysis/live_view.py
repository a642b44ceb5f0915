"""The installation as live rules see it: Applications, live objects, settings.

In, out: values; callers read the cluster. Never: I/O; a value of a Secret. Anything that could not be read is marked
as unread, so that a missing object is not mistaken for an absent one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.difference_cause_kinds import Cause
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.diff import format_pointer
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters
from argosy.gitops.status.history import read_deployments
from argosy.gitops.status.projects_over_worker_budget_configmap import BudgetUse
from argosy.gitops.status.rollback_detection import ActiveRollback, find_active_rollback
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import describe_hold, read_hold
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import EVENT

PRODUCTION_WORDS: Final = frozenset({"prod", "production", "prd", "live"})
NO_ENGINES: Final = DeliveryEngines()


class DifferingField(NamedTuple):
    """A field that differs from Git; an empty pointer is the whole object."""

    key: ResourceKey
    pointer: str
    cause: Cause
    path: str = ""  # readable form of the pointer

    @property
    def display_path(self) -> str:
        return (self.path or format_pointer(self.pointer, {})).lstrip(".")


class LiveResource(NamedTuple):
    """One managed object, as reported in the status of its Application."""

    key: ResourceKey
    status: str = ""
    health: str = ""  # empty if no health check applies
    wave: int = 0
    hook: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"


@dataclass(frozen=True)
class LiveApplication:
    """An Application with its live state. `differing_fields` is None if it was not compared."""

    app: Application
    resources: tuple[LiveResource, ...] = ()
    differing_fields: tuple[DifferingField, ...] | None = None
    render_failure: Cause | None = None  # why it cannot be rendered from here
    blockers: tuple[str, ...] = ()  # unhealthy objects, from the managed object down to the container
    plain_secrets: tuple[str, ...] | None = None  # Secrets with values in Git; None: not checked
    default_branch: str = ""  # of its repository, if the Application follows another branch
    display_name: str = ""  # NAMESPACE/NAME if another Application has the same name

    @property
    def name(self) -> str:
        """The name as users type it."""
        return self.display_name or self.app.name

    @property
    def sync(self) -> str:
        return str(as_mapping(self.app.status.get("sync")).get("status") or "Unknown")

    @property
    def health(self) -> str:
        return str(as_mapping(self.app.status.get("health")).get("status") or "Unknown")

    @property
    def health_message(self) -> str:
        return str(as_mapping(self.app.status.get("health")).get("message") or "")

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Type and message, without the condition that reports a hold: a hold is intended and not an error."""
        conditions = as_mappings(self.app.status.get("conditions"))
        hold = read_hold(self.app.annotations)
        hold_message = describe_hold(hold, self.app.name) if hold else ""
        pairs = ((str(condition.get("type")), str(condition.get("message") or "")) for condition in conditions)
        return [(kind, message) for kind, message in pairs if not hold_message or hold_message not in message]

    def find_condition_message(self, kind: str) -> str:
        """Return the message of the first condition of a type; empty if there is none."""
        return next((message or kind for name, message in self.conditions if name == kind), "")

    @property
    def has_running_operation(self) -> bool:
        return self.app.operation is not None or (self.app.state is not None and not self.app.state.phase.is_over)

    @property
    def rollback(self) -> ActiveRollback | None:
        """The rollback in force while Git has another revision."""
        return find_active_rollback(self.app.status, self.app.sources[0].ref or "HEAD") if self.app.sources else None

    @property
    def has_earlier_deployment(self) -> bool:
        """True if `argosy app rollback` has an earlier deployment to return to."""
        entries = [(entry.revisions, tuple(entry.sources)) for entry in read_deployments(self.app.status)]
        state = self.app.state
        if state is not None and not state.phase.is_over and state.has_result:
            entries.append((state.revisions or (state.revision,), tuple(state.sources)))  # the deployment in progress
        return any(entry != entries[-1] for entry in entries)

    @property
    def is_automated(self) -> bool:
        automated = self.app.policy.automated
        return automated is not None and automated.is_on

    @property
    def is_production(self) -> bool:
        """True if its name, namespace or a label says so."""
        labels = as_mapping(as_mapping(self.app.wire.get("metadata")).get("labels"))
        words = {*self.name.split("-"), *self.app.destination.namespace.split("-")}
        return bool(PRODUCTION_WORDS & {*words, str(labels.get("environment", "")), str(labels.get("env", ""))})

    @property
    def parent(self) -> str:
        """The Application that created this one; empty if unknown."""
        return self.app.parent

    def build_violation(
        self, message: str, fix: str, *, subject: str = "", field: str = "", severity: Severity | None = None
    ) -> Violation:
        return Violation(FileLocation(f"Application/{self.name}"), message, fix, subject, field, severity)


@dataclass(frozen=True)
class RepositorySecret:
    """The Secret with Argo CD's credentials for a URL; never its contents."""

    name: str  # namespace/name
    url: str
    is_template: bool = False
    problem: str = ""


@dataclass(frozen=True)
class OperatorHealth:
    """State of the operator that writes argocd-cm."""

    namespace: str = ""
    pods: tuple[str, ...] = ()  # `name: Running, ready`
    is_ready: bool | None = None  # None: not visible
    errors: tuple[str, ...] = ()  # from its log


@dataclass(frozen=True)
class InstallationView:
    """Where health checks are configured, and whether they reached argocd-cm."""

    namespace: str = ""
    owner: str = ""  # name of the ArgoCD resource; empty for a plain installation
    data: Mapping[str, str] | None = None  # of argocd-cm; None: not readable, or missing
    has_configmap: bool = True  # argocd-cm exists
    requested_scripts: Mapping[GroupKind, str] = field(default_factory=dict)  # scripts in the ArgoCD resource
    missing_keys: tuple[str, ...] = ()  # keys of the resource that argocd-cm does not have with the same value
    overridden_keys: tuple[str, ...] = ()  # keys for which spec.extraConfig has another script
    extra_keys: tuple[str, ...] = ()  # keys of argocd-cm that the resource does not have
    changed_at: str = ""  # when a person last wrote the resource, RFC 3339
    phase: str = ""  # status.phase of the resource
    operator: OperatorHealth = OperatorHealth()
    errors: tuple[str, ...] = ()  # from the application controller's log, about health checks
    kinds_with_check: frozenset[GroupKind] = frozenset()  # kinds with a health check of any origin
    is_delivered_by_argosy: bool = False  # argosy delivers here itself
    has_argosy: bool = False  # argosy's controller runs, though it may only observe
    has_argocd: bool | None = None  # True if an Argo CD controller runs here; None: unknown, no permission
    engines: DeliveryEngines = NO_ENGINES  # other delivery engines, wherever they run
    unexpanded_sets: tuple[str, ...] = ()  # ApplicationSets that no controller expands
    sso_fault: str = ""  # why oidc.config of argocd-cm cannot be used
    has_released_lease: bool = False  # argosy's controller released its Lease, and nobody holds one now
    can_read_leases: bool = True  # False: no permission to read whether argosy's controller runs
    renewed_at: str = ""  # when an argosy engine last renewed its Lease, RFC 3339
    lease_seconds: float = 0.0  # duration after which an engine's Lease expires


class HealthResponse(NamedTuple):
    """A model server's response to a health request. Code 0: no response."""

    path: str
    code: int


@dataclass(frozen=True)
class LiveModel:
    service: Manifest
    responses: tuple[HealthResponse, ...] = ()
    outdated_pods: str = ""  # which of its Pods serve an older file than the last run produced


@dataclass(frozen=True)
class LiveView:
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    apps: tuple[LiveApplication, ...] = ()
    objects: Mapping[GroupKind, Sequence[Manifest]] = field(default_factory=dict)
    unread_kinds: frozenset[GroupKind] = frozenset()  # kinds whose objects could not all be read
    settings: InstallationView = InstallationView()
    repositories: tuple[RepositorySecret, ...] | None = None  # None: no permission to read Secrets
    models: tuple[LiveModel, ...] = ()
    external_violations: Mapping[str, tuple[Violation, ...]] = field(
        default_factory=dict
    )  # by rule: reported by callers
    projects: Mapping[str, Project] = field(default_factory=dict)  # by name, with inherited settings
    clusters: DestinationClusters = field(default_factory=DestinationClusters)  # resolves destinations to addresses
    notes: tuple[str, ...] = ()  # what could not be checked, and why
    unreadable_settings: tuple[Violation, ...] = ()
    budget_uses: Mapping[str, BudgetUse] = field(default_factory=dict)  # projects over their worker-time budgets

    def list_objects(self, kind: GroupKind, namespace: str = "") -> list[Manifest]:
        objects = self.objects.get(kind, ())
        return [manifest for manifest in objects if namespace in ("", manifest["metadata"].get("namespace") or "")]

    @cached_property
    def by_key(self) -> Mapping[ResourceKey, Manifest]:
        return {key_of(manifest): manifest for objects in self.objects.values() for manifest in objects}

    def list_events(self, key: ResourceKey) -> list[Manifest]:
        """Return the Events about an object, the latest last."""
        return sorted(self._events_by_object.get(key, ()), key=get_last_seen)

    @cached_property
    def _events_by_object(self) -> Mapping[ResourceKey, list[Manifest]]:
        events_by_key: dict[ResourceKey, list[Manifest]] = {}
        for event in self.list_objects(EVENT):
            reference = as_mapping(event.get("involvedObject"))
            group = str(reference.get("apiVersion") or "").rpartition("/")[0]
            names = (str(reference.get(part) or "") for part in ("kind", "namespace", "name"))
            events_by_key.setdefault(ResourceKey(group, *names), []).append(event)
        return events_by_key

    def find_owner(self, key: ResourceKey) -> LiveApplication | None:
        """Find the Application that manages the object or one of its owners, as far as owners were read."""
        seen: set[ResourceKey] = set()
        todo = [key]
        while todo:
            current = todo.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self._apps_by_resource:
                return self._apps_by_resource[current]
            for owner in as_mappings((self.by_key.get(current) or {}).get("metadata", {}).get("ownerReferences")):
                group = str(owner.get("apiVersion") or "").rpartition("/")[0]
                todo.append(ResourceKey(group, str(owner.get("kind")), current.namespace, str(owner.get("name"))))
        return None

    @cached_property
    def _apps_by_resource(self) -> Mapping[ResourceKey, LiveApplication]:
        return {resource.key: app for app in self.apps for resource in app.resources}

    def seconds_since(self, time: str) -> float | None:
        """Return the age in seconds; None if the text is not a timestamp."""
        timestamp = parse_timestamp(time)
        return (self.now - timestamp).total_seconds() if timestamp else None


def get_last_seen(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")


def parse_timestamp(text: str) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def render_duration(seconds: float) -> str:
    """Render a duration: `2m07s`, `3h05m`, `4d`."""
    total_seconds = int(max(seconds, 0))
    if total_seconds < 60:
        return f"{total_seconds}s"
    if total_seconds < 3600:
        return f"{total_seconds // 60}m{total_seconds % 60:02d}s"
    return (
        f"{total_seconds // 3600}h{total_seconds % 3600 // 60:02d}m"
        if total_seconds < 2 * 86400
        else f"{total_seconds // 86400}d"
    )
