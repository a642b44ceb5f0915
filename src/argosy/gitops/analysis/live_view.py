"""An installation as live rules look at it: its Applications, what lives, and its settings.

In, out: values; others ask the cluster. Never: I/O; a value of a Secret. What could not be read is said to be unread,
so that nobody takes silence for absence.
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
    """A field that is not as Git asks for; an empty pointer is the whole object."""

    key: ResourceKey
    pointer: str
    cause: Cause
    path: str = ""  # for people

    @property
    def shown(self) -> str:
        return (self.path or readable(self.pointer, {})).lstrip(".")


class LiveRow(NamedTuple):
    """One managed object, as the status of its Application tells of it."""

    key: ResourceKey
    status: str = ""
    health: str = ""  # empty where nobody judges it
    wave: int = 0
    hook: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"


@dataclass(frozen=True)
class LiveApp:
    """`fields` is None where nobody could look: then only its status speaks."""

    app: Application
    rows: tuple[LiveRow, ...] = ()
    fields: tuple[Differs, ...] | None = None
    unrendered: Cause | None = None  # why it cannot be rendered, as seen from here
    blockers: tuple[str, ...] = ()  # what is unwell, from the object down to the container
    open_secrets: tuple[str, ...] | None = None  # Secrets with values in Git; None: nobody has looked
    default_branch: str = ""  # of its repository, where it is known to follow another branch
    title: str = ""  # NAMESPACE/NAME where another one has its name

    @property
    def name(self) -> str:
        """As it is typed."""
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
        """Without the one that only says that it is held: that is somebody's wish, and no error."""
        found = mappings(self.app.status.get("conditions"))
        hold = read_hold(self.app.annotations)
        said = told(hold, self.app.name) if hold else ""
        all_told = ((str(each.get("type")), str(each.get("message") or "")) for each in found)
        return [(kind, message) for kind, message in all_told if not said or said not in message]

    def said(self, kind: str) -> str:
        """The message of the first condition of a type; empty where there is none."""
        return next((message or kind for name, message in self.conditions if name == kind), "")

    @property
    def is_busy(self) -> bool:
        return self.app.operation is not None or (self.app.state is not None and not self.app.state.progress.is_over)

    @property
    def rollback(self) -> Rollback | None:
        """The one that is in force, while Git asks for something else."""
        return rollback_of(self.app.status, self.app.sources[0].ref or "HEAD") if self.app.sources else None

    @property
    def has_earlier_deployment(self) -> bool:
        """Whether `argosy app rollback` has something to go back to."""
        entries = [(entry.revisions, tuple(entry.sources)) for entry in deployments(self.app.status)]
        state = self.app.state
        if state is not None and not state.progress.is_over and state.has_result:
            entries.append((state.revisions or (state.revision,), tuple(state.sources)))  # what is being deployed
        return any(entry != entries[-1] for entry in entries)

    @property
    def is_automated(self) -> bool:
        automated = self.app.policy.automated
        return automated is not None and automated.is_on

    @property
    def is_production(self) -> bool:
        """By its name, its namespace, or a label: it says so itself."""
        labels = mapping(mapping(self.app.wire.get("metadata")).get("labels"))
        words = {*self.name.split("-"), *self.app.destination.namespace.split("-")}
        return bool(PRODUCTION & {*words, str(labels.get("environment", "")), str(labels.get("env", ""))})

    @property
    def parent(self) -> str:
        """The Application that made this one; empty where nobody says."""
        return self.app.parent

    def sight(
        self, message: str, fix: str, *, subject: str = "", field: str = "", severity: Severity | None = None
    ) -> Sight:
        return Sight(Place(f"Application/{self.name}"), message, fix, subject, field, severity)


@dataclass(frozen=True)
class RepositorySecret:
    """Which Secret lets Argo CD in at an address; never what is in it."""

    name: str  # namespace/name
    url: str
    is_template: bool = False
    fault: str = ""


@dataclass(frozen=True)
class OperatorState:
    """What is known of the operator that writes argocd-cm."""

    namespace: str = ""
    pods: tuple[str, ...] = ()  # `name: Running, ready`
    is_ready: bool | None = None  # None: it cannot be seen
    errors: tuple[str, ...] = ()  # of its log


@dataclass(frozen=True)
class SettingsView:
    """Where health checks are asked for, and where they have arrived."""

    namespace: str = ""
    owner: str = ""  # name of the ArgoCD resource; empty for a plain installation
    data: Mapping[str, str] | None = None  # of argocd-cm; None: not readable, or not there
    is_there: bool = True  # argocd-cm
    asked: Mapping[GroupKind, str] = field(default_factory=dict)  # scripts in the resource
    unpropagated: tuple[str, ...] = ()  # keys that the resource asks for, and argocd-cm does not have so
    overruled: tuple[str, ...] = ()  # those that spec.extraConfig has another script for
    strays: tuple[str, ...] = ()  # keys of argocd-cm that the resource does not have
    changed: str = ""  # when a person last wrote the resource, RFC 3339
    phase: str = ""  # status.phase of the resource
    operator: OperatorState = OperatorState()
    errors: tuple[str, ...] = ()  # of the application controller's log, about health checks
    judged: frozenset[GroupKind] = frozenset()  # kinds whose health is judged there, by whatever rule
    is_engine: bool = False  # argosy delivers there itself
    has_argosy: bool = False  # its controller runs, though it may only observe
    has_argocd: bool | None = None  # whether a controller of an Argo CD runs there; None: that may not be seen
    engines: Engines = NO_OTHERS  # of others, wherever they are
    unexpanded: tuple[str, ...] = ()  # ApplicationSets that no controller expands
    sso_fault: str = ""  # why oidc.config of argocd-cm cannot be used
    has_stopped: bool = False  # a controller of argosy gave its Lease back, and none holds one now
    sees_leases: bool = True  # False: whether a controller of argosy runs may not be read
    renewed: str = ""  # when an engine of argosy last said that it delivers, RFC 3339
    lease_seconds: float = 0.0  # after which a Lease of such an engine that is not renewed ends


class Answer(NamedTuple):
    """What a served model said when it was asked whether it is well. Code 0: nothing."""

    path: str
    code: int


@dataclass(frozen=True)
class ModelView:
    service: Manifest
    answers: tuple[Answer, ...] = ()
    outdated: str = ""  # which of its Pods serve an earlier file than the last run left


@dataclass(frozen=True)
class LiveView:
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    apps: tuple[LiveApp, ...] = ()
    objects: Mapping[GroupKind, Sequence[Manifest]] = field(default_factory=dict)
    unread: frozenset[GroupKind] = frozenset()  # kinds of which not all could be seen
    settings: SettingsView = SettingsView()
    repositories: tuple[RepositorySecret, ...] | None = None  # None: Secrets may not be read
    models: tuple[ModelView, ...] = ()
    told: Mapping[str, tuple[Sight, ...]] = field(default_factory=dict)  # by rule: what others found
    projects: Mapping[str, Project] = field(default_factory=dict)  # by name, with what they inherit
    clusters: Clusters = field(default_factory=Clusters)  # which addresses destinations have
    notes: tuple[str, ...] = ()  # what could not be looked at, and why
    unreadable_settings: tuple[Sight, ...] = ()
    budget_uses: Mapping[str, BudgetUse] = field(default_factory=dict)  # projects over their budgets of worker time

    def of(self, kind: GroupKind, namespace: str = "") -> list[Manifest]:
        found = self.objects.get(kind, ())
        return [each for each in found if namespace in ("", each["metadata"].get("namespace") or "")]

    @cached_property
    def by_key(self) -> Mapping[ResourceKey, Manifest]:
        return {key_of(each): each for found in self.objects.values() for each in found}

    def events(self, key: ResourceKey) -> list[Manifest]:
        """About an object, the latest last."""
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
        """The Application that manages it, or what made it, as far as owners were read."""
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
        """None for what is no time."""
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
    """`2m07s`, `3h05m`, `4d`."""
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m" if whole < 2 * 86400 else f"{whole // 86400}d"
