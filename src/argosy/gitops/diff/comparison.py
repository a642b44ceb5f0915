"""Compares all pairs of an Application.

In: desired manifests, live ones by key, diff options. Out: a Comparison. Never: asks a cluster; raises because of the
contents of a manifest or setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ManifestError, PatchError
from argosy.gitops.application.hooks import compare_options, has_option, is_hook, is_skipped
from argosy.gitops.application.step_results import Comparison, Pair, SyncStatus
from argosy.gitops.diff import structured_merge_diff, three_way_diff
from argosy.gitops.diff.diff_cache import Memory, Verdict, fingerprint
from argosy.gitops.diff.diff_options import CompareRules
from argosy.gitops.diff.field_subset import same
from argosy.gitops.diff.ignored_fields import NOTHING_REMOVED, Question, Removed
from argosy.gitops.diff.normalization import Normalizer, normalizer_for
from argosy.gitops.diff.typed_manifests import ShapeOf, no_shape, retyped, shape_for
from argosy.gitops.diff.version_conversion import in_version_of
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of_source
from argosy.languages.jq import compile_path, too_expensive_sentence

_EXTRANEOUS: Final = "IgnoreExtraneous"
_OF_A_WRITE: Final = frozenset(("managedFields", "resourceVersion", "generation"))


def _always(live: Manifest) -> bool:
    return True


def compare(
    desired: Sequence[Manifest],
    live: Mapping[ResourceKey, Manifest],
    rules: CompareRules,
    *,
    predicted: Mapping[ResourceKey, Manifest] = {},
    is_own: Callable[[Manifest], bool] = _always,
    removed: Removed = NOTHING_REMOVED,
    memory: Memory | None = None,
    shape_of: ShapeOf = no_shape,
) -> Comparison:
    """Compare all pairs. `predicted` are responses of dry runs, `jq_results` those of the real jq.

    `is_own` is False for a live object whose tracking mark a controller copied from another object.
    """
    too_expensive: dict[str, None] = {}
    removed = replace(removed, too_expensive=too_expensive)
    work = _Comparing(normalizer_for(rules), predicted, removed, memory, shape_of)
    hooks = [each for each in desired if is_hook(each)]
    wanted = {key_of_source(each): each for each in desired if not is_hook(each) and not is_skipped(each)}
    pairs = [work.pair(key, each, live.get(key)) for key, each in wanted.items()]
    # argo: skipped objects are neither applied nor pruned
    known = wanted.keys() | {key_of_source(each) for each in desired if is_skipped(each)}
    pairs += [
        Pair(key, None, found, differs=True)
        for key, found in sorted(live.items())
        if key not in known and not is_hook(found) and not is_skipped(found) and is_own(found)
    ]
    faults = (*removed.faults, *map(too_expensive_sentence, too_expensive), *dict.fromkeys(work.faults))
    return Comparison(pairs, hooks, _status(pairs, work.failed), faults)


def _status(pairs: Sequence[Pair], failed: bool) -> SyncStatus:
    if failed:
        return SyncStatus.UNKNOWN
    return SyncStatus.OUT_OF_SYNC if any(map(_counts, pairs)) else SyncStatus.SYNCED


def _counts(pair: Pair) -> bool:
    """argo: an extra object may opt out by annotation; it can still be pruned."""
    if pair.desired is None and pair.live is not None and _EXTRANEOUS in compare_options(pair.live):
        return False
    return pair.differs


@dataclass(slots=True)
class _Comparing:
    """One comparison of many pairs."""

    normalizer: Normalizer
    predicted: Mapping[ResourceKey, Manifest]
    removed: Removed
    memory: Memory | None
    shape_of: ShapeOf
    faults: list[str] = field(default_factory=list)
    failed: bool = False
    _number: int = 0

    def __post_init__(self) -> None:
        if self.memory is not None:
            self._number = self.memory.number_of(self.normalizer.rules)

    def pair(self, key: ResourceKey, desired: Manifest, live: Manifest | None) -> Pair:
        ignored = self.normalizer.ignored(key)
        self.faults += ignored.faults
        if live is None:
            return Pair(key, desired, None, differs=True)
        memory = self.memory
        print_ = fingerprint(desired, live, self.predicted.get(key), self._number) if memory is not None else None
        verdict = memory.recall(print_) if memory is not None and print_ is not None else None
        if verdict is None:
            try:
                verdict = self._verdict(key, desired, live)
            except (ManifestError, PatchError) as error:
                self.failed = True
                self.faults.append(f"{key}: comparison failed: {error.message}; correct the manifest")
                return Pair(key, desired, live, differs=True)
            # The real jq may fail only now, so only results without errors are cached.
            lasts = not ignored.needs_confined or (self.removed.answers and not self.removed.faults)
            lasts = lasts and not self.removed.too_expensive
            if memory is not None and print_ is not None and lasts:
                memory.keep(print_, verdict)
        return Pair(key, desired, live, *verdict)

    def _verdict(self, key: ResourceKey, desired: Manifest, live: Manifest) -> Verdict:
        predicted, compared = predict(
            self.normalizer, key, desired, live, self.predicted.get(key), self.removed, self.shape_of
        )
        return Verdict(False) if same(predicted, compared) else Verdict(True, predicted, compared)


def predict(
    normalizer: Normalizer,
    key: ResourceKey,
    desired: Manifest,
    live: Manifest,
    dry_run: Manifest | None = None,
    removed: Removed = NOTHING_REMOVED,
    shape_of: ShapeOf = no_shape,
) -> tuple[Manifest, Manifest]:
    """Return what live would become, and live, both in the same form."""
    rules = normalizer.rules
    shape = shape_for(desired, shape_of)
    live = in_version_of(desired, live)
    if managers := normalizer.ignored(key).managers:
        desired, live = structured_merge_diff.without_trusted(desired, live, managers, shape)
    found = normalizer.comparable(live, key, removed)
    if rules.server_side and dry_run is not None:
        if not rules.keeps_mutations:
            dry_run = structured_merge_diff.without_mutations(dry_run, live, rules.controller, shape)
        return _unversioned(normalizer.comparable(dry_run, key, removed)), _unversioned(found)
    wanted = normalizer.comparable(desired, key, removed)
    if rules.server_side or _is_applied_by_server(desired, rules):
        return structured_merge_diff.predict(wanted, found, rules.controller, shape)
    original = three_way_diff.last_applied(found)
    if original is not None:
        return three_way_diff.predict(normalizer.normalized(original, key, removed), wanted, found, shape)
    return three_way_diff.predict(wanted, wanted, found, shape)


def _is_applied_by_server(desired: Manifest, rules: CompareRules) -> bool:
    if has_option(desired, "ServerSideApply=true"):
        return True
    return rules.structured and not has_option(desired, "ServerSideApply=false")


def _unversioned(manifest: Manifest) -> Manifest:
    """Remove the fields that change with every write, and so with the dry run."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _OF_A_WRITE}
    return {**manifest, "metadata": metadata}


def needs_confined(rules: CompareRules) -> bool:
    """True if `list_jq_questions` must be answered by the real jq before comparing."""
    return any(compile_path(text) is None for rule in rules.ignored for text in rule.jq_paths)


def questions(
    desired: Sequence[Manifest],
    live: Mapping[ResourceKey, Manifest],
    rules: CompareRules,
    *,
    predicted: Mapping[ResourceKey, Manifest] = {},
    memory: Memory | None = None,
    shape_of: ShapeOf = no_shape,
) -> Iterator[Question]:
    """Yield the documents that the real jq must process before a comparison, except for cached pairs."""
    normalizer = normalizer_for(rules)
    number = memory.number_of(rules) if memory is not None else 0
    for each in desired:
        key = key_of_source(each)
        found, ignored = live.get(key), normalizer.ignored(key)
        if found is None or not ignored.needs_confined or is_hook(each) or is_skipped(each):
            continue
        dry_run = predicted.get(key)
        print_ = fingerprint(each, found, dry_run, number)
        if memory is not None and print_ is not None and memory.recall(print_) is not None:
            continue
        shape, found = shape_for(each, shape_of), in_version_of(each, found)
        if ignored.managers:
            each, found = structured_merge_diff.without_trusted(each, found, ignored.managers, shape)
        sides = [normalizer.settled(side) for side in (retyped(each), retyped(found))]
        if rules.server_side and dry_run is not None:
            said = structured_merge_diff.without_mutations(dry_run, found, rules.controller, shape)
            sides += [normalizer.settled(retyped(side)) for side in (said, dry_run)]
        original = three_way_diff.last_applied(found)
        if original is not None:
            sides.append(normalizer.settled(original))
        yield from (asked for side in sides if (asked := ignored.question(side)) is not None)
