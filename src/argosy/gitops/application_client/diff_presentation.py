"""Differences between Git and the cluster, for display: fields, unified diff, data.

In: a comparison. Out: values with Secrets masked. Never: a value of a Secret.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application.step_results import AppComparison, FieldDifference, FieldOrigin, Pair, RenderResult
from argosy.gitops.diff import list_differences, list_foreign_fields, mask_pair
from argosy.gitops.status.status_json_conversions import omit_empty
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CLI_API_VERSION


class DifferingObject(NamedTuple):
    """One differing object. `live` and `desired` are YAML to compare by line; empty if that side is missing.

    `foreign_fields`: fields that others set and Git does not have; these are no drift. `locations`: file and line of
    the desired value in the sources, by pointer.
    """

    key: ResourceKey
    fields: tuple[FieldDifference, ...]
    live: str
    desired: str
    foreign_fields: tuple[FieldDifference, ...] = ()
    locations: Mapping[str, str] = MappingProxyType({})
    causes: Mapping[str, Cause] = MappingProxyType({})  # why each field differs, by pointer


def with_causes(
    objects: Iterable[DifferingObject], causes: Mapping[ResourceKey, Mapping[str, Cause]]
) -> list[DifferingObject]:
    return [differing._replace(causes=causes.get(differing.key, {})) for differing in objects]


def add_locations(objects: Iterable[DifferingObject], rendered: Sequence[RenderResult]) -> list[DifferingObject]:
    """Add the file and line of each desired value; tracing is slow, so only callers that show them ask for it."""
    return [differing._replace(locations=_find_locations(differing, rendered)) for differing in objects]


def _find_locations(differing: DifferingObject, rendered: Sequence[RenderResult]) -> dict[str, str]:
    pointers = [difference.pointer for difference in differing.fields if difference.has_desired and differing.live]
    origins = (
        (pointer, render_result.origins.find(differing.key, pointer))
        for pointer in pointers
        for render_result in rendered
    )
    return {pointer: _format_location(origin) for pointer, origin in origins if origin is not None}


def _format_location(origin: FieldOrigin) -> str:
    line = f":{origin.line}" if origin.line else ""
    return f"{origin.repository}{'//' if origin.repository else ''}{origin.file}{line}"


def list_differing_objects(
    comparison: AppComparison, masked_annotations: Collection[str] = ()
) -> list[DifferingObject]:
    return [_build_differing_object(pair, masked_annotations) for pair in comparison.pairs if pair.differs]


def _build_differing_object(pair: Pair, masked_annotations: Collection[str]) -> DifferingObject:
    fields = list_differences(pair, masked_annotations=masked_annotations)
    masked = mask_pair(pair, masked_annotations)
    live, desired = masked.compared or masked.live, masked.predicted or masked.desired
    if masked.desired is None:
        desired = None
    return DifferingObject(
        pair.key,
        tuple(fields),
        _dump_without_managed_fields(live),
        _dump_without_managed_fields(desired),
        tuple(list_foreign_fields(pair)),
    )


def _dump_without_managed_fields(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    return dump_yaml({**manifest, "metadata": metadata})


def format_unified_diff(differing: DifferingObject) -> list[str]:
    name = str(differing.key)
    lines = difflib.unified_diff(
        differing.live.splitlines(), differing.desired.splitlines(), f"live/{name}", f"desired/{name}", lineterm=""
    )
    return list(lines)


def format_normal_diff(differing: DifferingObject) -> list[str]:
    """Format a diff as the program `diff` does without flags."""
    old, new = differing.live.splitlines(), differing.desired.splitlines()
    return list(_normal_diff_lines(old, new))


def _normal_diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        letter = {"replace": "c", "delete": "d", "insert": "a"}[tag]
        left = _format_range(i, j) if tag != "insert" else str(i)
        right = _format_range(k, m) if tag != "delete" else str(k)
        yield f"{left}{letter}{right}"
        yield from (f"< {line}" for line in old[i:j])
        if tag == "replace":
            yield "---"
        yield from (f"> {line}" for line in new[k:m])


def _format_range(start: int, end: int) -> str:
    return str(start + 1) if end == start + 1 else f"{start + 1},{end}"


def summarize_differences(objects: Sequence[DifferingObject]) -> str:
    """Summarize how much differs; empty if nothing does."""
    fields = sum(len(differing.fields) for differing in objects if differing.live and differing.desired)
    to_create, to_prune = (
        sum(not differing.live for differing in objects),
        sum(not differing.desired for differing in objects),
    )
    words = [f"{fields} field{' differs' if fields == 1 else 's differ'}{_summarize_causes(objects)}"] if fields else []
    words += [f"{to_create} to create"] if to_create else []
    words += [f"{to_prune} to prune"] if to_prune else []
    return ", ".join(words)


def _summarize_causes(objects: Sequence[DifferingObject]) -> str:
    """Count causes, e.g. `: 1 Git change, 2 by kubectl-edit`; empty if there are no causes."""
    counts = Counter(
        _describe_author(cause)
        for differing in objects
        if differing.live and differing.desired
        for cause in differing.causes.values()
    )
    return f": {', '.join(f'{count} {author}' for author, count in counts.most_common())}" if counts else ""


def _describe_author(cause: Cause) -> str:
    is_other = cause.kind is CauseKind.OTHER_CONTROLLER and cause.manager
    words = cause.kind.label
    return f"by {cause.manager}" if is_other else f"by {words}" if words.startswith("a ") else words


def differences_to_wire(objects: Sequence[DifferingObject]) -> dict[str, Any]:
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "DiffReport",
        "items": [
            {
                **differing.key._asdict(),
                "fields": [
                    {
                        **_difference_to_wire(difference, differing.locations.get(difference.pointer, "")),
                        **omit_empty(
                            cause=cause.to_wire() if (cause := differing.causes.get(difference.pointer)) else None
                        ),
                    }
                    for difference in differing.fields
                ],
                **omit_empty(setByOthers=[_difference_to_wire(difference) for difference in differing.foreign_fields]),
            }
            for differing in objects
        ],
    }


def _difference_to_wire(difference: FieldDifference, location: str = "") -> dict[str, Any]:
    body: dict[str, Any] = {"path": difference.pointer}
    if difference.has_desired:
        body["desired"] = difference.desired
    if difference.has_live:
        body["live"] = difference.live
    return {**body, **omit_empty(writtenIn=location, manager=difference.manager, since=difference.since)}
