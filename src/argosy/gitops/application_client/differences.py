"""Differences between Git and the cluster, for display: fields, unified diff, data.

In: a comparison. Out: values with Secrets masked. Never: a value of a Secret.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.application.step_results import Comparison, Difference, Origin, Pair, Rendered
from argosy.gitops.diff import additions, differences, masked_pair
from argosy.gitops.status.wire_format import given
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, dump


class Differing(NamedTuple):
    """One differing object. `live` and `desired` are YAML to compare by line; empty if that side is missing.

    `foreign_fields`: fields that others set and Git does not have; these are no drift. `locations`: file and line of
    the desired value in the sources, by pointer.
    """

    key: ResourceKey
    fields: tuple[Difference, ...]
    live: str
    desired: str
    added: tuple[Difference, ...] = ()
    written: Mapping[str, str] = MappingProxyType({})
    causes: Mapping[str, Cause] = MappingProxyType({})  # why each field differs, by pointer


def with_causes(found: Iterable[Differing], causes: Mapping[ResourceKey, Mapping[str, Cause]]) -> list[Differing]:
    return [each._replace(causes=causes.get(each.key, {})) for each in found]


def with_places(found: Iterable[Differing], rendered: Sequence[Rendered]) -> list[Differing]:
    """Add the file and line of each desired value; tracing is slow, so only callers that show them ask for it."""
    return [each._replace(written=_written(each, rendered)) for each in found]


def _written(found: Differing, rendered: Sequence[Rendered]) -> dict[str, str]:
    wanted = [field.pointer for field in found.fields if field.has_desired and found.live]
    places = ((pointer, each.origins.find(found.key, pointer)) for pointer in wanted for each in rendered)
    return {pointer: _place(origin) for pointer, origin in places if origin is not None}


def _place(origin: Origin) -> str:
    line = f":{origin.line}" if origin.line else ""
    return f"{origin.repository}{'//' if origin.repository else ''}{origin.file}{line}"


def differing(comparison: Comparison, masked_annotations: Collection[str] = ()) -> list[Differing]:
    return [_shown(pair, masked_annotations) for pair in comparison.pairs if pair.differs]


def _shown(pair: Pair, masked_annotations: Collection[str]) -> Differing:
    found = differences(pair, masked_annotations=masked_annotations)
    masked = masked_pair(pair, masked_annotations)
    live, desired = masked.compared or masked.live, masked.predicted or masked.desired
    if masked.desired is None:
        desired = None
    return Differing(pair.key, tuple(found), _text(live), _text(desired), tuple(additions(pair)))


def _text(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    return dump({**manifest, "metadata": metadata})


def unified(found: Differing) -> list[str]:
    name = str(found.key)
    lines = difflib.unified_diff(
        found.live.splitlines(), found.desired.splitlines(), f"live/{name}", f"desired/{name}", lineterm=""
    )
    return list(lines)


def normal(found: Differing) -> list[str]:
    """Format a diff as the program `diff` does without flags."""
    old, new = found.live.splitlines(), found.desired.splitlines()
    return list(_normal(old, new))


def _normal(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        letter = {"replace": "c", "delete": "d", "insert": "a"}[tag]
        left = _range(i, j) if tag != "insert" else str(i)
        right = _range(k, m) if tag != "delete" else str(k)
        yield f"{left}{letter}{right}"
        yield from (f"< {line}" for line in old[i:j])
        if tag == "replace":
            yield "---"
        yield from (f"> {line}" for line in new[k:m])


def _range(start: int, end: int) -> str:
    return str(start + 1) if end == start + 1 else f"{start + 1},{end}"


def in_short(found: Sequence[Differing]) -> str:
    """Summarize how much differs; empty if nothing does."""
    fields = sum(len(each.fields) for each in found if each.live and each.desired)
    new, old = sum(not each.live for each in found), sum(not each.desired for each in found)
    words = [f"{fields} field{' differs' if fields == 1 else 's differ'}{_by_whom(found)}"] if fields else []
    words += [f"{new} to create"] if new else []
    words += [f"{old} to prune"] if old else []
    return ", ".join(words)


def _by_whom(found: Sequence[Differing]) -> str:
    """Count causes, e.g. `: 1 your change, 2 by kubectl-edit`; empty if there are no causes."""
    told = Counter(_whose(cause) for each in found if each.live and each.desired for cause in each.causes.values())
    return f": {', '.join(f'{count} {who}' for who, count in told.most_common())}" if told else ""


def _whose(cause: Cause) -> str:
    is_other = cause.kind is CauseKind.OTHER_CONTROLLER and cause.manager
    words = cause.kind.words
    return f"by {cause.manager}" if is_other else f"by {words}" if words.startswith("a ") else words


def as_data(found: Sequence[Differing]) -> dict[str, Any]:
    return {
        "apiVersion": "cli.argosy.dev/v1",
        "kind": "DiffReport",
        "items": [
            {
                **each.key._asdict(),
                "fields": [
                    {
                        **_field_data(field, each.written.get(field.pointer, "")),
                        **given(cause=cause.document() if (cause := each.causes.get(field.pointer)) else None),
                    }
                    for field in each.fields
                ],
                **given(setByOthers=[_field_data(field) for field in each.added]),
            }
            for each in found
        ],
    }


def _field_data(field: Difference, written: str = "") -> dict[str, Any]:
    told: dict[str, Any] = {"path": field.pointer}
    if field.has_desired:
        told["desired"] = field.desired
    if field.has_live:
        told["live"] = field.live
    return {**told, **given(writtenIn=written, manager=field.manager, since=field.since)}
