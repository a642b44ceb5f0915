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

from argosy.gitops.analysis.cause import Cause
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.diff import readable
from argosy.gitops.policy.delivery_engine import Engines
from argosy.gitops.policy.destination_clusters import Clusters
from argosy.gitops.status.history import deployments
from argosy.gitops.status.hold import read_hold, told
from argosy.gitops.status.project_budgets import BudgetUse
from argosy.gitops.status.rollback import Rollback, rollback_of
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

PRODUCTION: Final = frozenset({"prod", "production", "prd", "live"})
NO_OTHERS: Final = Engines()


class Differs(NamedTuple):
    """A field that differs from Git; an empty pointer is the whole object."""

    key: ResourceKey
    pointer: str
    cause: Cause
    path: str = ""  # readable form of the pointer

    @property
    def shown(self) -> str:
        return (self.path or readable(self.pointer, {})).lstrip(".")


class LiveRow(NamedTuple):
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
class LiveApp:
    """An Application with its live state. `differing_fields` is None if it was not compared."""

    app: Application
    rows: tuple[LiveRow, ...] = ()
    fields: tuple[Differs, ...] | None = None
    unrendered: Cause | None = None  # why it cannot be rendered from here
    blockers: tuple[str, ...] = ()  # unhealthy objects, from the managed object down to the container
    open_secrets: tuple[str, ...] | None = None  # Secrets with values in Git; None: not checked
    default_branch: str = ""  # of its repository, if the Application follows another branch
    title: str = ""  # NAMESPACE/NAME if another Application has the same name

    @property
    def name(self) -> str:
        """The name as users type it."""
        return self.title or self.app.name

    @property
    def sync(self) -> str:
        return str(mapping(self.app.status.get("sync")).get("status") or "Unknown")

    @property
    def health(self) -> str:
        return str(mapping(self.app.status.get("health")).get("status") or "Unknown")

    @property
    def health_message(self) -> str:
        return str(mapping(self.app.status.get("health")).get("message") or "")

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Type and message, without the condition that reports a hold: a hold is intended and not an error."""
        found = mappings(self.app.status.get("conditions"))
        hold = read_hold(self.app.annotations)
        said = told(hold, self.app.name) if hold else ""
        all_told = ((str(each.get("type")), str(each.get("message") or "")) for each in found)
        return [(kind, message) for kind, message in all_told if not said or said not in message]

    def said(self, kind: str) -> str:
        """Return the message of the first condition of a type; empty if there is none."""
        return next((message or kind for name, message in self.conditions if name == kind), "")

    @property
    def is_busy(self) -> bool:
        return self.app.operation is not None or (self.app.state is not None and not self.app.state.progress.is_over)

    @property
    def rollback(self) -> Rollback | None:
        """The rollback in force while Git has another revision."""
        return rollback_of(self.app.status, self.app.sources[0].ref or "HEAD") if self.app.sources else None

    @property
    def has_earlier_deployment(self) -> bool:
        """True if `argosy app rollback` has an earlier deployment to return to."""
        entries = [(entry.revisions, tuple(entry.sources)) for entry in deployments(self.app.status)]
        state = self.app.state
        if state is not None and not state.progress.is_over and state.has_result:
            entries.append((state.revisions or (state.revision,), tuple(state.sources)))  # the deployment in progress
        return any(entry != entries[-1] for entry in entries)

    @property
    def is_automated(self) -> bool:
        automated = self.app.policy.automated
        return automated is not None and automated.is_on

    @property
    def is_production(self) -> bool:
        """True if its name, namespace or a label says so."""
        labels = mapping(mapping(self.app.wire.get("metadata")).get("labels"))
        words = {*self.name.split("-"), *self.app.destination.namespace.split("-")}
        return bool(PRODUCTION & {*words, str(labels.get("environment", "")), str(labels.get("env", ""))})

    @property
    def parent(self) -> str:
        """The Application that created this one; empty if unknown."""
        return self.app.parent

    def sight(
        self, message: str, fix: str, *, subject: str = "", field: str = "", severity: Severity | None = None
    ) -> Sight:
        return Sight(Place(f"Application/{self.name}"), message, fix, subject, field, severity)


@dataclass(frozen=True)
class RepositorySecret:
    """The Secret with Argo CD's credentials for a URL; never its contents."""

    name: str  # namespace/name
    url: str
    is_template: bool = False
    fault: str = ""


@dataclass(frozen=True)
class OperatorState:
    """State of the operator that writes argocd-cm."""

    namespace: str = ""
    pods: tuple[str, ...] = ()  # `name: Running, ready`
    is_ready: bool | None = None  # None: not visible
    errors: tuple[str, ...] = ()  # from its log


@dataclass(frozen=True)
class SettingsView:
    """Where health checks are configured, and whether they reached argocd-cm."""

    namespace: str = ""
    owner: str = ""  # name of the ArgoCD resource; empty for a plain installation
    data: Mapping[str, str] | None = None  # of argocd-cm; None: not readable, or missing
    is_there: bool = True  # argocd-cm exists
    asked: Mapping[GroupKind, str] = field(default_factory=dict)  # scripts in the ArgoCD resource
    unpropagated: tuple[str, ...] = ()  # keys of the resource that argocd-cm does not have with the same value
    overruled: tuple[str, ...] = ()  # keys for which spec.extraConfig has another script
    strays: tuple[str, ...] = ()  # keys of argocd-cm that the resource does not have
    changed: str = ""  # when a person last wrote the resource, RFC 3339
    phase: str = ""  # status.phase of the resource
    operator: OperatorState = OperatorState()
    errors: tuple[str, ...] = ()  # from the application controller's log, about health checks
    judged: frozenset[GroupKind] = frozenset()  # kinds with a health check of any origin
    is_engine: bool = False  # argosy delivers here itself
    has_argosy: bool = False  # argosy's controller runs, though it may only observe
    has_argocd: bool | None = None  # True if an Argo CD controller runs here; None: unknown, no permission
    engines: Engines = NO_OTHERS  # other delivery engines, wherever they run
    unexpanded: tuple[str, ...] = ()  # ApplicationSets that no controller expands
    sso_fault: str = ""  # why oidc.config of argocd-cm cannot be used
    has_stopped: bool = False  # argosy's controller released its Lease, and nobody holds one now
    sees_leases: bool = True  # False: no permission to read whether argosy's controller runs
    renewed: str = ""  # when an argosy engine last renewed its Lease, RFC 3339
    lease_seconds: float = 0.0  # duration after which an engine's Lease expires


class Answer(NamedTuple):
    """A model server's response to a health request. Code 0: no response."""

    path: str
    code: int


@dataclass(frozen=True)
class ModelView:
    service: Manifest
    answers: tuple[Answer, ...] = ()
    outdated: str = ""  # which of its Pods serve an older file than the last run produced


@dataclass(frozen=True)
class LiveView:
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    apps: tuple[LiveApp, ...] = ()
    objects: Mapping[GroupKind, Sequence[Manifest]] = field(default_factory=dict)
    unread: frozenset[GroupKind] = frozenset()  # kinds whose objects could not all be read
    settings: SettingsView = SettingsView()
    repositories: tuple[RepositorySecret, ...] | None = None  # None: no permission to read Secrets
    models: tuple[ModelView, ...] = ()
    told: Mapping[str, tuple[Sight, ...]] = field(default_factory=dict)  # by rule: reported by callers
    projects: Mapping[str, Project] = field(default_factory=dict)  # by name, with inherited settings
    clusters: Clusters = field(default_factory=Clusters)  # resolves destinations to addresses
    notes: tuple[str, ...] = ()  # what could not be checked, and why
    unreadable_settings: tuple[Sight, ...] = ()
    budget_uses: Mapping[str, BudgetUse] = field(default_factory=dict)  # projects over their worker-time budgets

    def of(self, kind: GroupKind, namespace: str = "") -> list[Manifest]:
        found = self.objects.get(kind, ())
        return [each for each in found if namespace in ("", each["metadata"].get("namespace") or "")]

    @cached_property
    def by_key(self) -> Mapping[ResourceKey, Manifest]:
        return {key_of(each): each for found in self.objects.values() for each in found}

    def events(self, key: ResourceKey) -> list[Manifest]:
        """Return the Events about an object, the latest last."""
        return sorted(self._events.get(key, ()), key=last_seen)

    @cached_property
    def _events(self) -> Mapping[ResourceKey, list[Manifest]]:
        found: dict[ResourceKey, list[Manifest]] = {}
        for each in self.of(EVENT):
            about = mapping(each.get("involvedObject"))
            group = str(about.get("apiVersion") or "").rpartition("/")[0]
            names = (str(about.get(part) or "") for part in ("kind", "namespace", "name"))
            found.setdefault(ResourceKey(group, *names), []).append(each)
        return found

    def owner_of(self, key: ResourceKey) -> LiveApp | None:
        """Find the Application that manages the object or one of its owners, as far as owners were read."""
        seen: set[ResourceKey] = set()
        todo = [key]
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            if here in self._managed:
                return self._managed[here]
            for each in mappings((self.by_key.get(here) or {}).get("metadata", {}).get("ownerReferences")):
                group = str(each.get("apiVersion") or "").rpartition("/")[0]
                todo.append(ResourceKey(group, str(each.get("kind")), here.namespace, str(each.get("name"))))
        return None

    @cached_property
    def _managed(self) -> Mapping[ResourceKey, LiveApp]:
        return {row.key: app for app in self.apps for row in app.rows}

    def seconds_since(self, time: str) -> float | None:
        """Return the age in seconds; None if the text is not a timestamp."""
        found = moment(time)
        return (self.now - found).total_seconds() if found else None


EVENT: Final = GroupKind("", "Event")


def last_seen(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")


def moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def span(seconds: float) -> str:
    """Render a duration: `2m07s`, `3h05m`, `4d`."""
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m" if whole < 2 * 86400 else f"{whole // 86400}d"
