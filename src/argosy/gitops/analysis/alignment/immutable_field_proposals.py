"""Proposes what to do about changes of immutable fields.

In: an observed Application. Out: proposals: remove the root cause, or recreate the object. Never: hides the
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.kustomize_selector_labels import (
    find_added_labels,
    is_in_selector,
    list_selector_labels,
)
from argosy.gitops.analysis.alignment.observed_application import RECREATE_OPTIONS, ObservedApplication, ObservedObject
from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.analysis.object_versions_as_cause_evidence import get_matching_value
from argosy.gitops.application.step_results import FieldDifference
from argosy.kube.objects.yaml_edits import YamlEdit


def propose_for_immutable_fields(observed: ObservedApplication) -> Iterator[Proposal]:
    for observed_object in observed.objects:
        fields = [difference for difference, cause in observed_object.fields if cause.kind is CauseKind.IMMUTABLE]
        if not fields:
            continue
        pointers_text = ", ".join(difference.pointer for difference in fields[:3])
        root_cause_proposals = (
            [*_propose_selector_fixes(observed, observed_object, fields, pointers_text)]
            if any(is_in_selector(field.pointer) for field in fields)
            else []
        )
        yield from root_cause_proposals or [_propose_recreation(observed, observed_object, pointers_text)]


def _propose_selector_fixes(
    observed: ObservedApplication,
    observed_object: ObservedObject,
    fields: Sequence[FieldDifference],
    pointers_text: str,
) -> Iterator[Proposal]:
    """Kustomize labels leaked into selectors: excluding them changes nothing in the cluster."""
    new_labels = find_added_labels(fields)
    evidence = (f"{observed_object.name}: {pointers_text} cannot be changed on an existing object",)
    yield from _propose_label_option(observed, observed_object, new_labels, evidence)
    for file, kustomization in observed.kustomizations.items():
        if labels := list_selector_labels(kustomization, new_labels):
            label_names = ", ".join(labels)
            text = (
                f"{file}: keep {label_names} out of selectors: it changes that of {observed_object.name}, "
                "which is immutable"
            )
            target = (observed_object.key.group, observed_object.key.kind, observed_object.key.name)
            pod_labels = get_matching_value(
                observed_object.live_manifest, ("spec", "template", "metadata", "labels"), observed_object.live_manifest
            )
            has_pod_labels = isinstance(pod_labels, Mapping) and any(label in pod_labels for label in labels)
            yield Proposal(
                observed.app.name, ProposalKind.SELECTORS, text, "includeSelectors: false", True, evidence,
                file=file, labels=labels, on_pods=has_pod_labels, target=target,
            )  # fmt: skip


def _propose_label_option(
    observed: ObservedApplication, observed_object: ObservedObject, new_labels: Sequence[str], evidence: tuple[str, ...]
) -> Iterator[Proposal]:
    """argo: commonLabels of an Application go into selectors, too, unless labelWithoutSelector is set."""
    options = observed.app.sources[0].kustomize if len(observed.app.sources) == 1 else None
    labels = [name for name in new_labels if options and name in options.common_labels]
    if labels and options and not options.label_without_selector and not observed.app.has_many_sources:
        path = ("spec", "source", "kustomize", "labelWithoutSelector")
        text = (
            f"keep commonLabels ({', '.join(labels)}) out of selectors: one was added to the selector of "
            f"{observed_object.name}"
        )
        sets = (YamlEdit(path, True),)
        yield Proposal(
            observed.app.name, ProposalKind.SELECTORS, text, "labelWithoutSelector", True, evidence, sets=sets
        )  # fmt: skip


def _propose_recreation(observed: ObservedApplication, observed_object: ObservedObject, pointers_text: str) -> Proposal:
    group, kind, name = observed_object.key.group, observed_object.key.kind, observed_object.key.name
    resource = f"{group}:{kind}:{name}"
    text = (
        f"recreate {observed_object.name}: {pointers_text} cannot be changed on an existing object;"
        f" annotate it once with sync-options {RECREATE_OPTIONS} (Replace=true alone does not recreate), or "
        "delete it and sync"
    )
    namespace_flag = f" -n {observed_object.key.namespace}" if observed_object.key.namespace else ""
    commands = (
        f"argosy app sync {observed.app.name} --force --replace --resource {resource}",
        f"kubectl delete {kind.lower()} {name}{namespace_flag}",
    )
    evidence = tuple(
        f"{observed_object.name} {difference.pointer}: {cause.text}" for difference, cause in observed_object.fields[:5]
    )
    return Proposal(
        observed.app.name, ProposalKind.RECREATE, text, "recreate", False, evidence,
        file=observed.source_files.get(observed_object.key, ""), target=(group, kind, name), commands=commands,
    )  # fmt: skip
