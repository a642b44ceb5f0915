"""The sync panel: its options and resources, and the submitted form.

In: an Application, a form. Out: options, groups of resources, a SyncWish. Never: starts a sync.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from argosy.errors import UserError
from argosy.features.applications.page_parts.keyed_values import Keyed
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.sync_requests import SyncWish
from argosy.gitops.sync.options import SyncOptions
from argosy.kube.names import ResourceKey
from argosy.web.request import quoted

REPLACE_WORD: Final = "replace"  # to be typed as confirmation: objects are deleted and recreated
# argo: options and labels of Argo CD's sync panel
OPTIONS: Final = (
    ("Validate", "false", "Skip schema validation"),
    ("CreateNamespace", "true", "Auto-create namespace"),
    ("PruneLast", "true", "Prune last"),
    ("ApplyOutOfSyncOnly", "true", "Apply out of sync only"),
    ("RespectIgnoreDifferences", "true", "Respect ignore differences"),
    ("ServerSideApply", "true", "Server-side apply"),
)
PROPAGATIONS: Final = ("foreground", "background", "orphan")


class Form(Protocol):
    def text(self, name: str) -> str: ...
    def all(self, name: str) -> tuple[str, ...]: ...
    def __contains__(self, name: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    word: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Choice(Keyed):
    """One object that can be synced alone."""

    text: str  # GROUP:KIND:NAMESPACE/NAME
    key: ResourceKey
    status: str
    health: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Choices:
    kind: str
    items: tuple[Choice, ...]

    @property
    def state(self) -> str:
        """The state of the checkbox of the group: all, some or none."""
        on = sum(each.is_on for each in self.items)
        return "all" if on == len(self.items) else "some" if on else "none"


def options_of(app: Application) -> tuple[Option, ...]:
    own = SyncOptions.of(app.policy.options)
    return tuple(Option(name, word, own.value(name) == on) for name, on, word in OPTIONS)


def propagation_of(app: Application) -> str:
    return SyncOptions.of(app.policy.options).value("PrunePropagationPolicy") or PROPAGATIONS[0]


def choices_of(app: Application, chosen: Collection[str] = ()) -> tuple[Choices, ...]:
    """Group resources by kind. Without a selection, all are selected."""
    kinds: dict[str, list[Choice]] = {}
    for row in summary.rows(app):
        if row.hook:
            continue
        text = text_of(row.key)
        is_on = not chosen or text in chosen
        kinds.setdefault(row.key.kind, []).append(Choice(text, row.key, row.status, row.health, is_on))
    return tuple(Choices(kind, tuple(sorted(each, key=lambda it: it.key))) for kind, each in sorted(kinds.items()))


def text_of(key: ResourceKey) -> str:
    return f"{key.group}:{key.kind}:{f'{key.namespace}/' if key.namespace else ''}{key.name}"


def wish_of(app: Application, form: Form) -> SyncWish:
    """Read the submitted form. Options of the Application that are unchecked in the form are turned off."""
    replaces = "replace" in form
    if replaces and form.text("sure").strip().lower() != REPLACE_WORD:
        raise UserError("Replace deletes and recreates objects; type the word replace to confirm")
    return SyncWish(
        revision=_revision(app, form.text("revision").strip()),
        prune="prune" in form,
        dry_run="dry_run" in form,
        force="force" in form,
        replace=replaces,
        strategy="apply" if "apply_only" in form else "hook",
        resources=_resources(app, form.all("resource")),
        retry_limit=_number(form.text("retry_limit"), "Retries") if "retry" in form else None,
        retry_duration=form.text("retry_duration").strip() if "retry" in form else "",
        retry_longest=form.text("retry_longest").strip() if "retry" in form else "",
        retry_factor=_number(form.text("retry_factor"), "Factor") if "retry" in form else None,
        options=_options(app, form),
    )


def _revision(app: Application, text: str) -> str:
    """argo: The target revision counts as no revision."""
    return "" if len(app.sources) != 1 or text == (app.sources[0].ref or "HEAD") else text


def _resources(app: Application, given: Sequence[str]) -> tuple[str, ...]:
    """Return nothing if all are selected: only a full sync runs hooks, prunes, and is recorded in the history."""
    known = {text_of(row.key) for row in summary.rows(app) if not row.hook}
    chosen = tuple(each for each in given if each in known)
    if given and not chosen:
        raise UserError(f"{app.name} does not have the selected resources any more; select again")
    return () if set(chosen) == known else chosen


def _options(app: Application, form: Form) -> tuple[str, ...]:
    own = SyncOptions.of(app.policy.options)
    found = []
    for name, on, _ in OPTIONS:
        is_on = name in form.all("option")
        if is_on != (own.value(name) == on):
            found.append(f"{name}={on if is_on else 'true' if on == 'false' else 'false'}")
    propagation = form.text("propagation")
    if propagation in PROPAGATIONS and propagation != (own.value("PrunePropagationPolicy") or PROPAGATIONS[0]):
        found.append(f"PrunePropagationPolicy={propagation}")
    return tuple(found)


def _number(text: str, what: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise UserError(f"invalid number {quoted(text)}: expected an integer", where=what) from None
