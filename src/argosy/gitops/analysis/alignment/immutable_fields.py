"""Proposes what to do about changes of immutable fields.

In: an observed Application. Out: proposals: remove the root cause, or recreate the object. Never: hides the
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argosy.gitops.analysis.alignment.observation import RECREATE, AppSight, SeenObject
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.selector_labels import added_labels, is_in_selector, writes_selectors
from argosy.gitops.analysis.cause import CauseKind
from argosy.gitops.analysis.evidence import value_at
from argosy.gitops.application.step_results import Difference
from argosy.kube.objects.yaml_edits import Edit


def immutable(seen: AppSight) -> Iterator[Proposal]:
    for each in seen.objects:
        fields = [found for found, cause in each.fields if cause.kind is CauseKind.IMMUTABLE]
        if not fields:
            continue
        told = ", ".join(found.pointer for found in fields[:3])
        cured = [*_selectors(seen, each, fields, told)] if any(is_in_selector(f.pointer) for f in fields) else []
        yield from cured or [_recreated(seen, each, told)]


def _selectors(seen: AppSight, each: SeenObject, fields: Sequence[Difference], told: str) -> Iterator[Proposal]:
    """Kustomize labels leaked into selectors: excluding them changes nothing in the cluster."""
    wanted = added_labels(fields)
    evidence = (f"{each.name}: {told} cannot be changed on an existing object",)
    yield from _own_labels(seen, each, wanted, evidence)
    for file, kustomization in seen.kustomizations.items():
        if labels := writes_selectors(kustomization, wanted):
            named = ", ".join(labels)
            text = f"{file}: keep {named} out of selectors: it changes that of {each.name}, which is immutable"
            target = (each.key.group, each.key.kind, each.key.name)
            pods = value_at(each.form, ("spec", "template", "metadata", "labels"), each.form)
            has_them = isinstance(pods, Mapping) and any(label in pods for label in labels)
            yield Proposal(
                seen.app.name, ProposalKind.SELECTORS, text, "includeSelectors: false", True, evidence,
                file=file, labels=labels, on_pods=has_them, target=target,
            )  # fmt: skip


def _own_labels(
    seen: AppSight, each: SeenObject, wanted: Sequence[str], evidence: tuple[str, ...]
) -> Iterator[Proposal]:
    """argo: commonLabels of an Application go into selectors, too, unless labelWithoutSelector is set."""
    options = seen.app.sources[0].kustomize if len(seen.app.sources) == 1 else None
    labels = [name for name in wanted if options and name in options.common_labels]
    if labels and options and not options.label_without_selector and not seen.app.has_many_sources:
        path = ("spec", "source", "kustomize", "labelWithoutSelector")
        text = f"keep commonLabels ({', '.join(labels)}) out of selectors: one was added to the selector of {each.name}"
        sets = (Edit(path, True),)
        yield Proposal(
            seen.app.name, ProposalKind.SELECTORS, text, "labelWithoutSelector", True, evidence, sets=sets
        )  # fmt: skip


def _recreated(seen: AppSight, each: SeenObject, told: str) -> Proposal:
    group, kind, name = each.key.group, each.key.kind, each.key.name
    chosen = f"{group}:{kind}:{name}"
    text = (
        f"recreate {each.name}: {told} cannot be changed on an existing object;"
        f" annotate it once with sync-options {RECREATE} (Replace=true alone does not recreate), or delete it and sync"
    )
    place = f" -n {each.key.namespace}" if each.key.namespace else ""
    commands = (
        f"argosy app sync {seen.app.name} --force --replace --resource {chosen}",
        f"kubectl delete {kind.lower()} {name}{place}",
    )
    evidence = tuple(f"{each.name} {found.pointer}: {cause.text}" for found, cause in each.fields[:5])
    return Proposal(
        seen.app.name, ProposalKind.RECREATE, text, "recreate", False, evidence,
        file=seen.homes.get(each.key, ""), target=(group, kind, name), commands=commands,
    )  # fmt: skip
