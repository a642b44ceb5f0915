"""Finds labels that a kustomization writes into immutable selectors.

In: kustomizations as data, labels. Out: the labels written, and edits that keep them out of selectors. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.application.step_results import Difference
from argosy.kube.objects.yaml_edits import REMOVED, Edit
from argosy.kube.patch.json_pointer import parse

# Paths of Pod selectors in workloads
_SELECTORS: Final = (("spec", "selector", "matchLabels"), ("spec", "selector"))


def added_labels(fields: Sequence[Difference]) -> tuple[str, ...]:
    """Return labels that Git adds to a selector and the live object does not have."""
    found: dict[str, None] = {}
    for field in fields:
        if not field.has_desired:
            continue
        tokens = tuple(parse(field.pointer))
        for path in _SELECTORS:
            if tokens[: len(path)] == path and len(tokens) == len(path) + 1 and not field.has_live:
                found[tokens[-1]] = None
                break
            if tokens == path and isinstance(field.desired, Mapping):
                there = field.live if isinstance(field.live, Mapping) else {}
                found |= dict.fromkeys(name for name in field.desired if name not in there)
    return tuple(found)


def is_in_selector(pointer: str) -> bool:
    """True if the field is a selector or a Pod template label, which must match the selector."""
    tokens = parse(pointer)
    return tokens[:2] == ["spec", "selector"] or tokens[:4] == ["spec", "template", "metadata", "labels"]


def writes_selectors(kustomization: Mapping[str, Any], labels: Collection[str]) -> tuple[str, ...]:
    """Return those of the labels that the kustomization writes into selectors."""
    given = {name for _, pairs in _leaks(kustomization) for name in pairs}
    return tuple(each for each in labels if each in given)


def _leaks(kustomization: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    common = kustomization.get("commonLabels")
    if isinstance(common, Mapping):
        yield ("commonLabels",), common
    labels = kustomization.get("labels")
    for place, each in enumerate(labels if isinstance(labels, list) else ()):
        pairs = each.get("pairs") if isinstance(each, Mapping) else None
        if isinstance(pairs, Mapping) and each.get("includeSelectors") is True:
            yield ("labels", place), pairs


def selector_edits(kustomization: Mapping[str, Any], labels: Collection[str], *, on_pods: bool) -> tuple[Edit, ...]:
    """Keep the labels on objects, and on Pods if the live Pods have them, but not in selectors."""
    more = {"includeTemplates": True} if on_pods else {}
    edits: list[Edit] = []
    there = kustomization.get("labels")
    number = len(there) if isinstance(there, list) else 0
    for path, pairs in _leaks(kustomization):
        if not any(label in pairs for label in labels):
            continue
        if path[0] == "labels":
            edits.append(Edit((*path, "includeSelectors"), False))
            edits += [Edit((*path, name), value) for name, value in more.items()]
            continue
        # kustomize: commonLabels always go into selectors; labels say where they go
        entry = {"pairs": dict(pairs), "includeSelectors": False, **more}
        edits += [Edit(("labels",), [entry]) if not number else Edit(("labels", number), entry)]
        edits.append(Edit(("commonLabels",), REMOVED))
    return tuple(edits)
