"""Compares all pairs of an Application.

In: desired manifests, live ones by key, diff options. Out: a Comparison. Never: asks a cluster; raises because of the
contents of a manifest or setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ManifestError, PatchError
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.application.sync_annotations import has_option, is_hook, is_skipped, list_compare_options
from argosy.gitops.diff import server_side_field_ownership_diff, three_way_diff
from argosy.gitops.diff.diff_cache import DiffCache, PairResult, build_cache_key
from argosy.gitops.diff.diff_options import DiffOptions
from argosy.gitops.diff.field_projection import is_same_json
from argosy.gitops.diff.go_type_round_trip import FindShape, find_manifest_shape, find_no_shape, roundtrip_by_type
from argosy.gitops.diff.ignored_fields import NO_JQ_RESULTS, JqQuestion, JqResults
from argosy.gitops.diff.normalization import ManifestNormalizer, find_normalizer
from argosy.gitops.diff.version_conversion import convert_live
from argosy.kube.objects import Manifest, list_desired_keys
from argosy.kube.resource_key import ResourceKey
from argosy.languages.jq_path_expressions import compile_jq, format_too_expensive_error

_IGNORE_EXTRANEOUS: Final = "IgnoreExtraneous"
_WRITE_FIELDS: Final = frozenset(("managedFields", "resourceVersion", "generation"))


def _is_always_own(live: Manifest) -> bool:
    return True


def compare_manifests(
    desired: Sequence[Manifest],
    live: Mapping[ResourceKey, Manifest],
    options: DiffOptions,
    *,
    predicted: Mapping[ResourceKey, Manifest] = {},
    is_own: Callable[[Manifest], bool] = _is_always_own,
    jq_results: JqResults = NO_JQ_RESULTS,
    cache: DiffCache | None = None,
    find_shape: FindShape = find_no_shape,
) -> AppComparison:
    """Compare all pairs. `predicted` are responses of dry runs, `jq_results` those of the real jq.

    `is_own` is False for a live object whose tracking mark a controller copied from another object.
    """
    too_expensive: dict[str, None] = {}
    jq_results = replace(jq_results, too_expensive=too_expensive)
    run = _ComparisonRun(find_normalizer(options), predicted, jq_results, cache, find_shape)
    hooks = [manifest for manifest in desired if is_hook(manifest)]
    objects = [manifest for manifest in desired if not is_hook(manifest)]
    keyed_objects = list(zip(list_desired_keys(objects), objects, strict=True))
    desired_by_key = {key: manifest for key, manifest in keyed_objects if not is_skipped(manifest)}
    pairs = [run.compare_pair(key, manifest, live.get(key)) for key, manifest in desired_by_key.items()]
    # argo: skipped objects are neither applied nor pruned
    known_keys = {key for key, _ in keyed_objects}
    pairs += [
        Pair(key, None, live_manifest, differs=True)
        for key, live_manifest in sorted(live.items())
        if key not in known_keys
        and not is_hook(live_manifest)
        and not is_skipped(live_manifest)
        and is_own(live_manifest)
    ]
    faults = (*jq_results.faults, *map(format_too_expensive_error, too_expensive), *dict.fromkeys(run.faults))
    return AppComparison(pairs, hooks, _sync_status(pairs, run.failed), faults)


def _sync_status(pairs: Sequence[Pair], failed: bool) -> SyncStatus:
    if failed:
        return SyncStatus.UNKNOWN
    return SyncStatus.OUT_OF_SYNC if any(map(_counts_as_difference, pairs)) else SyncStatus.SYNCED


def _counts_as_difference(pair: Pair) -> bool:
    """argo: an extra object may opt out by annotation, and a live hook never counts; both can still be pruned."""
    if pair.live is not None and is_hook(pair.live):
        return False
    if pair.desired is None and pair.live is not None and _IGNORE_EXTRANEOUS in list_compare_options(pair.live):
        return False
    return pair.differs


@dataclass(slots=True)
class _ComparisonRun:
    """One comparison of many pairs."""

    normalizer: ManifestNormalizer
    predicted: Mapping[ResourceKey, Manifest]
    jq_results: JqResults
    cache: DiffCache | None
    find_shape: FindShape
    faults: list[str] = field(default_factory=list)
    failed: bool = False
    _options_number: int = 0

    def __post_init__(self) -> None:
        if self.cache is not None:
            self._options_number = self.cache.options_id(self.normalizer.options)

    def compare_pair(self, key: ResourceKey, desired: Manifest, live: Manifest | None) -> Pair:
        ignored = self.normalizer.ignored_fields(key)
        self.faults += ignored.faults
        if live is None:
            return Pair(key, desired, None, differs=True)
        cache = self.cache
        cache_key = (
            build_cache_key(desired, live, self.predicted.get(key), self._options_number) if cache is not None else None
        )
        result = cache.find(cache_key) if cache is not None and cache_key is not None else None
        if result is None:
            try:
                result = self._compare_sides(key, desired, live)
            except (ManifestError, PatchError) as error:
                self.failed = True
                self.faults.append(f"{key}: comparison failed: {error.message}; correct the manifest")
                return Pair(key, desired, live, differs=True)
            # The real jq may fail only now, so only results without errors are cached.
            is_cacheable = not ignored.needs_real_jq or (self.jq_results.documents and not self.jq_results.faults)
            is_cacheable = is_cacheable and not self.jq_results.too_expensive
            if cache is not None and cache_key is not None and is_cacheable:
                cache.store(cache_key, result)
        return Pair(key, desired, live, *result)

    def _compare_sides(self, key: ResourceKey, desired: Manifest, live: Manifest) -> PairResult:
        predicted, compared = predict_live(
            self.normalizer, key, desired, live, self.predicted.get(key), self.jq_results, self.find_shape
        )
        return PairResult(False) if is_same_json(predicted, compared) else PairResult(True, predicted, compared)


def predict_live(
    normalizer: ManifestNormalizer,
    key: ResourceKey,
    desired: Manifest,
    live: Manifest,
    dry_run: Manifest | None = None,
    jq_results: JqResults = NO_JQ_RESULTS,
    find_shape: FindShape = find_no_shape,
) -> tuple[Manifest, Manifest]:
    """Return what live would become, and live, both in the same form."""
    options = normalizer.options
    shape = find_manifest_shape(desired, find_shape)
    live = convert_live(desired, live)
    if managers := normalizer.ignored_fields(key).managers:
        desired, live = server_side_field_ownership_diff.remove_trusted_fields(desired, live, managers, shape)
    normalized_live = normalizer.normalize(live, key, jq_results)
    if options.server_side and dry_run is not None:
        if not options.include_mutations:
            dry_run = server_side_field_ownership_diff.remove_mutations(dry_run, live, options.field_manager, shape)
        return _remove_write_fields(normalizer.normalize(dry_run, key, jq_results)), _remove_write_fields(
            normalized_live
        )
    normalized_desired = normalizer.normalize(desired, key, jq_results)
    if options.server_side or _is_applied_server_side(desired, options):
        return server_side_field_ownership_diff.predict_server_side(
            normalized_desired, normalized_live, options.field_manager, shape
        )
    original = three_way_diff.read_last_applied(normalized_live)
    if original is not None:
        return three_way_diff.predict_three_way(
            normalizer.normalize_untyped(original, key, jq_results), normalized_desired, normalized_live, shape
        )
    return three_way_diff.predict_three_way(normalized_desired, normalized_desired, normalized_live, shape)


def _is_applied_server_side(desired: Manifest, options: DiffOptions) -> bool:
    if has_option(desired, "ServerSideApply=true"):
        return True
    return options.server_side_apply and not has_option(desired, "ServerSideApply=false")


def _remove_write_fields(manifest: Manifest) -> Manifest:
    """Remove the fields that change with every write, and so with the dry run."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _WRITE_FIELDS}
    return {**manifest, "metadata": metadata}


def needs_real_jq(options: DiffOptions) -> bool:
    """True if `list_jq_questions` must be answered by the real jq before comparing."""
    return any(compile_jq(text) is None for rule in options.ignore_rules for text in rule.jq_paths)


def list_jq_questions(
    desired: Sequence[Manifest],
    live: Mapping[ResourceKey, Manifest],
    options: DiffOptions,
    *,
    predicted: Mapping[ResourceKey, Manifest] = {},
    cache: DiffCache | None = None,
    find_shape: FindShape = find_no_shape,
) -> Iterator[JqQuestion]:
    """Yield the documents that the real jq must process before a comparison, except for cached pairs."""
    normalizer = find_normalizer(options)
    options_id = cache.options_id(options) if cache is not None else 0
    for key, manifest in zip(list_desired_keys(desired), desired, strict=True):
        live_manifest, ignored = live.get(key), normalizer.ignored_fields(key)
        if live_manifest is None or not ignored.needs_real_jq or is_hook(manifest) or is_skipped(manifest):
            continue
        dry_run = predicted.get(key)
        cache_key = build_cache_key(manifest, live_manifest, dry_run, options_id)
        if cache is not None and cache_key is not None and cache.find(cache_key) is not None:
            continue
        shape, live_manifest = find_manifest_shape(manifest, find_shape), convert_live(manifest, live_manifest)
        if ignored.managers:
            manifest, live_manifest = server_side_field_ownership_diff.remove_trusted_fields(
                manifest, live_manifest, ignored.managers, shape
            )
        sides = [
            normalizer.normalize_builtin(side)
            for side in (roundtrip_by_type(manifest), roundtrip_by_type(live_manifest))
        ]
        if options.server_side and dry_run is not None:
            unmutated = server_side_field_ownership_diff.remove_mutations(
                dry_run, live_manifest, options.field_manager, shape
            )
            sides += [normalizer.normalize_builtin(roundtrip_by_type(side)) for side in (unmutated, dry_run)]
        original = three_way_diff.read_last_applied(live_manifest)
        if original is not None:
            sides.append(normalizer.normalize_builtin(original))
        yield from (question for side in sides if (question := ignored.build_question(side)) is not None)
