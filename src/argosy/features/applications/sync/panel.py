"""The sync panel: its options and resources, and the submitted form.

In: an Application, a form. Out: options, groups of resources, a SyncWish. Never: starts a sync.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from argosy.errors import UserError
from argosy.features.applications.page_parts.resource_key_template_attributes import KeyProperties
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.sync_operation_builder import SyncFlags
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.kube.resource_key import ResourceKey
from argosy.web.request import quote_input

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


class FormFields(Protocol):
    def get_text(self, name: str) -> str: ...
    def get_all(self, name: str) -> tuple[str, ...]: ...
    def __contains__(self, name: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class SyncOptionChoice:
    name: str
    word: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class SyncResourceChoice(KeyProperties):
    """One object that can be synced alone."""

    text: str  # GROUP:KIND:NAMESPACE/NAME
    key: ResourceKey
    status: str
    health: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class SyncResourceGroup:
    kind: str
    items: tuple[SyncResourceChoice, ...]

    @property
    def state(self) -> str:
        """The state of the checkbox of the group: all, some or none."""
        selected_count = sum(item.is_on for item in self.items)
        return "all" if selected_count == len(self.items) else "some" if selected_count else "none"


def list_sync_options(app: Application) -> tuple[SyncOptionChoice, ...]:
    configured = SyncOptions.from_lists(app.policy.options)
    return tuple(SyncOptionChoice(name, word, configured.get(name) == on_value) for name, on_value, word in OPTIONS)


def get_propagation_policy(app: Application) -> str:
    return SyncOptions.from_lists(app.policy.options).get("PrunePropagationPolicy") or PROPAGATIONS[0]


def list_resource_groups(app: Application, selected: Collection[str] = ()) -> tuple[SyncResourceGroup, ...]:
    """Group resources by kind. Without a selection, all are selected."""
    kinds: dict[str, list[SyncResourceChoice]] = {}
    for row in status_summary.list_rows(app):
        if row.hook:
            continue
        text = format_resource_selector(row.key)
        is_on = not selected or text in selected
        kinds.setdefault(row.key.kind, []).append(SyncResourceChoice(text, row.key, row.status, row.health, is_on))
    return tuple(
        SyncResourceGroup(kind, tuple(sorted(choices, key=lambda choice: choice.key)))
        for kind, choices in sorted(kinds.items())
    )


def format_resource_selector(key: ResourceKey) -> str:
    return f"{key.group}:{key.kind}:{f'{key.namespace}/' if key.namespace else ''}{key.name}"


def read_sync_form(app: Application, form: FormFields) -> SyncFlags:
    """Read the submitted form. Options of the Application that are unchecked in the form are turned off."""
    is_replace = "replace" in form
    if is_replace and form.get_text("sure").strip().lower() != REPLACE_WORD:
        raise UserError("Replace deletes and recreates objects; type the word replace to confirm")
    return SyncFlags(
        revision=_read_revision(app, form.get_text("revision").strip()),
        prune="prune" in form,
        dry_run="dry_run" in form,
        force="force" in form,
        replace=is_replace,
        strategy="apply" if "apply_only" in form else "hook",
        resources=_read_resources(app, form.get_all("resource")),
        retry_limit=_read_number(form.get_text("retry_limit"), "Retries") if "retry" in form else None,
        retry_duration=form.get_text("retry_duration").strip() if "retry" in form else "",
        retry_max_duration=form.get_text("retry_longest").strip() if "retry" in form else "",
        retry_factor=_read_number(form.get_text("retry_factor"), "Factor") if "retry" in form else None,
        options=_read_options(app, form),
    )


def _read_revision(app: Application, text: str) -> str:
    """argo: The target revision counts as no revision."""
    return "" if len(app.sources) != 1 or text == (app.sources[0].ref or "HEAD") else text


def _read_resources(app: Application, submitted: Sequence[str]) -> tuple[str, ...]:
    """Return nothing if all are selected: only a full sync runs hooks, prunes, and is recorded in the history."""
    all_resources = {format_resource_selector(row.key) for row in status_summary.list_rows(app) if not row.hook}
    selected = tuple(resource for resource in submitted if resource in all_resources)
    if submitted and not selected:
        raise UserError(f"{app.name} does not have the selected resources any more; select again")
    return () if set(selected) == all_resources else selected


def _read_options(app: Application, form: FormFields) -> tuple[str, ...]:
    configured = SyncOptions.from_lists(app.policy.options)
    options = []
    for name, on_value, _ in OPTIONS:
        is_on = name in form.get_all("option")
        if is_on != (configured.get(name) == on_value):
            options.append(f"{name}={on_value if is_on else 'true' if on_value == 'false' else 'false'}")
    propagation = form.get_text("propagation")
    if propagation in PROPAGATIONS and propagation != (configured.get("PrunePropagationPolicy") or PROPAGATIONS[0]):
        options.append(f"PrunePropagationPolicy={propagation}")
    return tuple(options)


def _read_number(text: str, field_name: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise UserError(f"invalid number {quote_input(text)}: expected an integer", where=field_name) from None
