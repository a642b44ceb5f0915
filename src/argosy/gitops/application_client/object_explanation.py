"""Explains one object or one field: owner, differences, causes and the next command.

In: a reader, names such as `deploy/web` and `.spec.replicas`. Out: Explanation. Never: changes anything; shows a value
of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.errors import ClusterError, Forbidden, RenderError, UnknownRef, UserError
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.field_explanation import FieldExplanation, explain_field
from argosy.gitops.analysis.field_path_parser import parse_field_path
from argosy.gitops.analysis.object_versions_as_cause_evidence import ABSENT, Evidence, get_matching_value
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Pair
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.difference_cause_evidence import (
    add_commits,
    explain_render_error,
    gather_evidence,
)
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.diff import format_pointer, list_differences, list_foreign_fields, mask_pair
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.status.status_json_conversions import as_mappings, omit_empty
from argosy.kube.client.resource_arguments import parse_resource_arguments
from argosy.kube.patch.json_pointer import parse
from argosy.kube.resource_key import GroupKind, ResourceKey


@dataclass(frozen=True)
class ExplainedField:
    """A field with both values; ABSENT if a side has none. `path` is the display form of the pointer."""

    report: FieldExplanation
    path: str
    live: Any
    desired: Any

    @property
    def has_live(self) -> bool:
        return self.live is not ABSENT

    @property
    def has_desired(self) -> bool:
        return self.desired is not ABSENT

    def to_wire(self) -> dict[str, Any]:
        values = {
            name: value for name, value in (("desired", self.desired), ("live", self.live)) if value is not ABSENT
        }
        report = self.report
        return {
            "path": report.pointer,
            "differs": report.differs,
            **values,
            "cause": report.cause.to_wire(),
            **omit_empty(manager=report.manager, since=report.since),
        }


@dataclass(frozen=True)
class ObjectExplanation:
    """`fields`: the differing fields, or the requested one. `foreign_fields`: fields that Git does not set."""

    key: ResourceKey
    app: str
    status: str
    health: str
    message: str = ""
    cause: Cause | None = None  # cause for the whole object: it is missing, extra, or the Application does not render
    fields: tuple[ExplainedField, ...] = ()
    foreign_fields: tuple[ExplainedField, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        return {
            "object": self.key._asdict(),
            "application": self.app,
            "status": self.status,
            **omit_empty(health=self.health, message=self.message, cause=self.cause.to_wire() if self.cause else None),
            "fields": [field_explanation.to_wire() for field_explanation in self.fields],
            **omit_empty(setByOthers=[field_explanation.to_wire() for field_explanation in self.foreign_fields]),
        }


async def find_object(
    service: ApplicationService, object_name: str, namespace: str = "", app: str = ""
) -> tuple[Application, ResourceKey]:
    """Find the object among those of Applications. Raises UserError if there is none or more than one."""
    kind_name, _, name = object_name.partition("/")
    apps = [await service.load_application(app)] if app else await _list_applications(service)
    kind = await _resolve_kind(service, object_name, kind_name, apps)
    matches = {
        (application.name, row.key): (application, row.key)
        for application in apps
        for row in list_rows(application)
        if row.key.name == name and row.key.group_kind == kind and namespace in ("", row.key.namespace)
    }
    if not matches:
        raise UserError(await _describe_unowned(service, kind, name, namespace, app))
    if len(matches) > 1:
        locations = ", ".join(f"{key.namespace or 'no namespace'} (of {owner})" for owner, key in matches)
        raise UserError(f"{object_name} is ambiguous: {locations}; choose one with -n NAMESPACE or --app APP")
    return next(iter(matches.values()))


async def _list_applications(service: ApplicationService) -> list[Application]:
    try:
        return await service.list_applications(all_namespaces=True)
    except Forbidden:
        return await service.list_applications()  # without permission for all namespaces, use the default one


async def _resolve_kind(
    service: ApplicationService, object_name: str, kind_name: str, apps: Sequence[Application]
) -> GroupKind:
    """Resolve the kind, also one that the cluster no longer serves but an Application has."""
    try:
        return parse_resource_arguments([object_name], await service.cluster.kinds())[0].kind
    except UserError:
        for key in (row.key for app in apps for row in list_rows(app)):
            if kind_name.lower() in (key.kind.lower(), f"{key.kind}.{key.group}".lower()):
                return key.group_kind
        raise


async def _describe_unowned(service: ApplicationService, kind: GroupKind, name: str, namespace: str, app: str) -> str:
    display_name = f"{kind.kind}/{name}"
    if app:
        return f"{app} has no {display_name}; list its objects: argosy app resources {app}"
    advice = "give its namespace with -n, or list the objects: argosy app resources NAME"
    try:
        live = await service.cluster.get(ResourceKey(*kind, namespace, name)) if namespace else None
    except ClusterError:
        live = None
    owner = next(iter(as_mappings(((live or {}).get("metadata") or {}).get("ownerReferences"))), None)
    if owner:
        owner_name = f"{owner.get('kind')}/{owner.get('name')}"
        return (
            f"{display_name} was created by {owner_name}, not by an Application; explain its owner: argosy "
            f"explain {owner_name}"
        )
    return f"no Application has {display_name}; {advice}"


async def explain_object(
    reader: ApplicationReader, app: Application, key: ResourceKey, field: str = ""
) -> ObjectExplanation:
    row = next((candidate for candidate in list_rows(app) if candidate.key == key), None)
    status, health, message = (row.status, row.health, row.message) if row else ("", "", "")
    try:
        app_state = await reader.compare(app)
    except (RenderError, UnknownRef) as error:
        cause = await explain_render_error(reader, app, error)
        return ObjectExplanation(key, app.name, "Unknown", health, message, cause)
    pair = next((candidate for candidate in app_state.comparison.pairs if candidate.key == key), None)
    if pair is None:
        cause = Cause(CauseKind.UNKNOWN, "the object is a hook or is excluded from comparison, so it cannot differ")
        return ObjectExplanation(key, app.name, status, health, message, cause)
    status = "OutOfSync" if pair.differs else "Synced"
    assessment = (await reader.assess_managed_objects(app)).get(key)
    if assessment is not None and assessment.health is not None:
        health, message = assessment.health.value, assessment.message
    return await _explain_fields(
        reader, app, app_state, pair, field, ObjectExplanation(key, app.name, status, health, message)
    )


async def _explain_fields(
    reader: ApplicationReader,
    app: Application,
    app_state: AppState,
    pair: Pair,
    field: str,
    explanation: ObjectExplanation,
) -> ObjectExplanation:
    masked_annotations = reader.reconciler_settings.diff.masked_annotations
    masked, differing = (
        mask_pair(pair, masked_annotations),
        {item.pointer: item for item in list_differences(pair, masked_annotations=masked_annotations)},
    )
    pointers = [parse_field_path(field, pair.live or pair.desired or {})] if field else list(differing)
    foreign_pointers = [] if field else [item.pointer for item in list_foreign_fields(pair)]
    object_evidence = (await gather_evidence(reader, app, app_state, [(pair, [*pointers, *foreign_pointers])]))[
        pair.key
    ]
    reports = {
        item: explain_field(object_evidence, item, _find_difference(item, differing))
        for item in [*pointers, *foreign_pointers]
    }
    causes = await add_commits(
        reader, app, app_state.desired, {pair.key: {pointer: item.cause for pointer, item in reports.items()}}
    )
    explanations = {
        pointer: _build_field_explanation(object_evidence, masked, item, causes[pair.key][pointer])
        for pointer, item in reports.items()
    }
    object_cause = causes[pair.key].get("") if not field else None
    fields = tuple(explanations[item] for item in pointers if item)
    return ObjectExplanation(
        explanation.key,
        explanation.app,
        explanation.status,
        explanation.health,
        explanation.message,
        object_cause,
        fields,
        tuple(explanations[item] for item in foreign_pointers),
    )


def _find_difference(pointer: str, differing: dict[str, Any]) -> Any:
    """Return the difference of this field, of a parent of it, or the first one within it."""
    if pointer in differing or not differing:
        return differing.get(pointer)
    tokens = parse(pointer)
    for other_pointer, difference in differing.items():
        other_tokens = parse(other_pointer)
        if other_tokens[: len(tokens)] == tokens[: len(other_tokens)]:
            return difference
    return None


def _build_field_explanation(
    object_evidence: Evidence, masked: Pair, report: FieldExplanation, cause: Cause
) -> ExplainedField:
    tokens, reference = parse(report.pointer), object_evidence.reference_manifest
    live = get_matching_value(masked.compared or masked.live, tokens, reference)
    desired = get_matching_value(masked.desired, tokens, reference)
    explained = FieldExplanation(report.pointer, report.differs, cause, report.manager, report.since)
    return ExplainedField(explained, format_pointer(report.pointer, reference or masked.desired or {}), live, desired)
