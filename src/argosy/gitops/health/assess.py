"""Assesses live manifests in batches: argosy's rules in this process, users' checks in isolated workers.

In: live manifests and cluster facts. Out: an Assessment or None for each. Never: lets a failing check stop others.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from argosy.annotations import HOOK_FINALIZER
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health import builtin, fallback
from argosy.gitops.health.bundled_rules import HealthRule, RuleOrigin
from argosy.gitops.health.lua import (
    EVALUATE_FUNCTION,
    FIELDS_READ_FUNCTION,
    MAX_LIMIT_FAILURES,
    BatchRunner,
    LuaFault,
    failed_assessment,
    read_health,
    read_script_result,
    run_health_script,
)
from argosy.gitops.health.lua.manifest_projection import project_manifest
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.isolation import NotConfinedError
from argosy.isolation.script_backoff import FIRST_SECONDS, ScriptBackoff
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version

PENDING_DELETION: Final = Assessment(HealthStatus.PROGRESSING, "Pending deletion")
FIRST_BACKOFF_SECONDS: Final = FIRST_SECONDS  # first backoff of a check that killed or hung workers

ClusterFacts = Mapping[str, Any]
CacheKey = tuple[tuple[str, ...], tuple[str, ...]]  # identity of an object; its version with the facts


class HealthAssessor:
    """Assesses objects by the rules in force, and caches the result for the last version of each object."""

    def __init__(
        self,
        rules: HealthRules,
        confined: BatchRunner,
        *,
        max_cached: int = 20_000,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._confined_checks = _ConfinedChecks(confined, now)
        self._max_cached = max_cached
        self._cache: OrderedDict[tuple[str, ...], tuple[tuple[str, ...], Assessment | None]] = OrderedDict()

    async def assess_all(
        self, manifests: Sequence[Manifest], facts: ClusterFacts | None = None
    ) -> list[Assessment | None]:
        """Return one assessment per manifest, in order; None if the kind has no health."""
        facts = facts or {}
        facts_text = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS).decode() if facts else ""
        assessments: list[Assessment | None] = []
        waiting: dict[HealthRule, list[int]] = {}
        for position, manifest in enumerate(manifests):
            cache_key = _build_cache_key(manifest, facts_text)
            if (
                cache_key is not None
                and (cached := self._cache.get(cache_key[0])) is not None
                and cached[0] == cache_key[1]
            ):
                self._cache.move_to_end(cache_key[0])
                assessments.append(cached[1])
                continue
            rule = self._find_rule(manifest)
            if rule is not None and rule.origin is RuleOrigin.ARGOCD_CM and not is_pending_deletion(manifest):
                waiting.setdefault(rule, []).append(position)
                assessments.append(None)
            else:
                assessments.append(assess_by_rule(manifest, rule, facts))
                self._store(cache_key, assessments[position], rule)
        for rule, positions in waiting.items():
            results = await self._confined_checks(rule, [manifests[position] for position in positions], facts)
            for position, (assessment, is_cacheable) in zip(positions, results, strict=True):
                assessments[position] = assessment
                if is_cacheable:
                    self._store(_build_cache_key(manifests[position], facts_text), assessment, rule)
        return assessments

    def _find_rule(self, manifest: Manifest) -> HealthRule | None:
        group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
        return self._rules.find_rule(group, str(manifest.get("kind") or ""))

    def _store(self, cache_key: CacheKey | None, assessment: Assessment | None, rule: HealthRule | None) -> None:
        if cache_key is None or not self._max_cached or (rule is not None and reads_clock(rule.script)):
            return
        self._cache[cache_key[0]] = cache_key[1], assessment
        if len(self._cache) > self._max_cached:
            self._cache.popitem(last=False)


class _ConfinedChecks:
    """Runs users' checks in isolated workers, and backs off from a check that hangs."""

    def __init__(self, confined: BatchRunner, now: Callable[[], float]) -> None:
        self._confined = confined
        self._fields_by_script: dict[str, Any] = {}
        self._backoff = ScriptBackoff(now)

    async def __call__(
        self, rule: HealthRule, manifests: Sequence[Manifest], facts: ClusterFacts
    ) -> list[tuple[Assessment, bool]]:
        """Return each assessment, and whether it may be cached until the object changes."""
        if (reason := self._backoff.find_block_reason(rule.script)) is not None:
            return [(_backoff_assessment(rule, reason), False)] * len(manifests)
        try:
            return await self._assess_batches(rule, manifests, facts)
        except NotConfinedError as problem:
            return [(failed_assessment(f"the script was not run: {problem}", rule=rule.name), False)] * len(manifests)

    async def _assess_batches(
        self, rule: HealthRule, manifests: Sequence[Manifest], facts: ClusterFacts
    ) -> list[tuple[Assessment, bool]]:
        fields = await self._load_fields_read(rule.script)
        results: list[tuple[Assessment, bool]] = []
        failures, batch_size = (
            0,
            MAX_LIMIT_FAILURES,
        )  # small batches first: a hanging check must not cost a second per object
        while len(results) < len(manifests):
            batch = manifests[len(results) : len(results) + batch_size]
            projected = batch if fields is None else [project_manifest(manifest, fields) for manifest in batch]
            batch_results = await self._confined.run_batch(
                EVALUATE_FUNCTION, [_build_payload(rule, manifest, facts) for manifest in projected]
            )
            # A killed worker gives no result about the object, so the check may succeed next time.
            results += [
                (_read_result(script_result, rule), isinstance(script_result, dict)) for script_result in batch_results
            ]
            failures += sum(not isinstance(script_result, dict) for script_result in batch_results)
            batch_size *= 4
            if failures >= MAX_LIMIT_FAILURES:
                reason = next(
                    script_result.fault for script_result, is_cacheable in reversed(results) if not is_cacheable
                )
                self._backoff.record_failure(rule.script, reason)
                results += [(_backoff_assessment(rule, reason), False)] * (len(manifests) - len(results))
        if not failures:
            self._backoff.record_success(rule.script)
        return results

    async def _load_fields_read(self, script: str) -> Any:
        """Return the fields that the script reads: only these are sent. Users' scripts are parsed in a worker."""
        if script not in self._fields_by_script:
            (script_result,) = await self._confined.run_batch(FIELDS_READ_FUNCTION, [script])
            self._fields_by_script[script] = script_result if isinstance(script_result, list) else None
        return self._fields_by_script[script]


def assess_by_rule(manifest: Manifest, rule: HealthRule | None, facts: ClusterFacts) -> Assessment | None:
    """Assess an object by a built-in, bundled or fallback rule."""
    if is_pending_deletion(manifest):
        return PENDING_DELETION  # argo: before any check runs
    if rule is None:
        return None
    if rule.origin is RuleOrigin.BUILT_IN:
        return builtin.assess_builtin(manifest)
    if rule.origin is RuleOrigin.FALLBACK:
        return fallback.assess_custom_resource(manifest)
    return run_health_script(rule.script, manifest, facts=facts, open_libs=rule.open_libs, rule=rule.name)


def is_pending_deletion(manifest: Manifest) -> bool:
    """argo: a hook keeps its health while its finalizer protects it, so that its result can still be read."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("deletionTimestamp"):
        return False
    finalizers = metadata.get("finalizers")
    return not isinstance(finalizers, list) or HOOK_FINALIZER not in finalizers


@lru_cache(maxsize=1024)
def reads_clock(script: str) -> bool:
    """True if the result may change without a change of the object: `os` gives access to the clock."""
    return re.search(r"\b(?:os|require)\b", script) is not None


def _backoff_assessment(rule: HealthRule, reason: str) -> Assessment:
    return failed_assessment(f"not run: on {MAX_LIMIT_FAILURES} objects before it, {reason}", rule=rule.name)


def _build_payload(rule: HealthRule, manifest: Manifest, facts: ClusterFacts) -> dict[str, Any]:
    return {"script": rule.script, "manifest": manifest, "facts": facts, "open": rule.open_libs}


def _read_result(script_result: Any, rule: HealthRule) -> Assessment:
    try:
        return read_health(read_script_result(script_result), rule=rule.name)
    except LuaFault as fault:
        return failed_assessment(str(fault), rule=rule.name)


def _build_cache_key(manifest: Manifest, facts_text: str) -> CacheKey | None:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return None
    # An object served in several API versions has the same uid and resourceVersion in all of them.
    parts = (metadata.get("uid"), manifest.get("apiVersion"), manifest.get("kind"))
    version = metadata.get("resourceVersion")
    if not isinstance(version, str) or not all(isinstance(part, str) for part in parts):
        return None
    return parts, (version, facts_text)  # type: ignore[return-value]
