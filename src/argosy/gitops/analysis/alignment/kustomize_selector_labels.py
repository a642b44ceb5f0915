"""Finds labels that a kustomization writes into immutable selectors.

In: kustomizations as data, labels. Out: the labels written, and edits that keep them out of selectors. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.application.step_results import FieldDifference
from argosy.kube.objects.yaml_edits import REMOVED, YamlEdit
from argosy.kube.patch.json_pointer import parse

# Paths of Pod selectors in workloads
_SELECTOR_PATHS: Final = (("spec", "selector", "matchLabels"), ("spec", "selector"))


def find_added_labels(fields: Sequence[FieldDifference]) -> tuple[str, ...]:
    """Return labels that Git adds to a selector and the live object does not have."""
    labels: dict[str, None] = {}
    for field in fields:
        if not field.has_desired:
            continue
        tokens = tuple(parse(field.pointer))
        for path in _SELECTOR_PATHS:
            if tokens[: len(path)] == path and len(tokens) == len(path) + 1 and not field.has_live:
                labels[tokens[-1]] = None
                break
            if tokens == path and isinstance(field.desired, Mapping):
                live_labels = field.live if isinstance(field.live, Mapping) else {}
                labels |= dict.fromkeys(name for name in field.desired if name not in live_labels)
    return tuple(labels)


def is_in_selector(pointer: str) -> bool:
    """True if the field is a selector or a Pod template label, which must match the selector."""
    tokens = parse(pointer)
    return tokens[:2] == ["spec", "selector"] or tokens[:4] == ["spec", "template", "metadata", "labels"]


def list_selector_labels(kustomization: Mapping[str, Any], labels: Collection[str]) -> tuple[str, ...]:
    """Return those of the labels that the kustomization writes into selectors."""
    written_labels = {name for _, pairs in _list_selector_entries(kustomization) for name in pairs}
    return tuple(label for label in labels if label in written_labels)


def _list_selector_entries(
    kustomization: Mapping[str, Any],
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    common = kustomization.get("commonLabels")
    if isinstance(common, Mapping):
        yield ("commonLabels",), common
    labels = kustomization.get("labels")
    for index, entry in enumerate(labels if isinstance(labels, list) else ()):
        pairs = entry.get("pairs") if isinstance(entry, Mapping) else None
        if isinstance(pairs, Mapping) and entry.get("includeSelectors") is True:
            yield ("labels", index), pairs


def build_selector_exclusion_edits(
    kustomization: Mapping[str, Any], labels: Collection[str], *, on_pods: bool
) -> tuple[YamlEdit, ...]:
    """Keep the labels on objects, and on Pods if the live Pods have them, but not in selectors."""
    template_option = {"includeTemplates": True} if on_pods else {}
    edits: list[YamlEdit] = []
    existing_labels = kustomization.get("labels")
    label_count = len(existing_labels) if isinstance(existing_labels, list) else 0
    for path, pairs in _list_selector_entries(kustomization):
        if not any(label in pairs for label in labels):
            continue
        if path[0] == "labels":
            edits.append(YamlEdit((*path, "includeSelectors"), False))
            edits += [YamlEdit((*path, name), value) for name, value in template_option.items()]
            continue
        # kustomize: commonLabels always go into selectors; labels say where they go
        entry = {"pairs": dict(pairs), "includeSelectors": False, **template_option}
        edits += [YamlEdit(("labels",), [entry]) if not label_count else YamlEdit(("labels", label_count), entry)]
        edits.append(YamlEdit(("commonLabels",), REMOVED))
    return tuple(edits)
