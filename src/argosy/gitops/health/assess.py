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
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health import builtin, fallback
from argosy.gitops.health.bundled import Origin, Rule
from argosy.gitops.health.lua import (
    EVALUATE,
    FIELDS_READ,
    PATIENCE,
    Confined,
    LuaFault,
    answer_of,
    failed,
    health_of,
    run_health,
)
from argosy.gitops.health.lua.projection import project
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.isolation import NotConfinedError
from argosy.isolation.backoff import FIRST_SECONDS, ScriptBackoff
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

PENDING_DELETION: Final = Assessment(Health.PROGRESSING, "Pending deletion")
REST: Final = FIRST_SECONDS  # first backoff of a check that killed or hung workers

Facts = Mapping[str, Any]
Memo = tuple[tuple[str, ...], tuple[str, ...]]  # identity of an object; its version with the facts


class Assessor:
    """Assesses objects by the rules in force, and caches the result for the last version of each object."""

    def __init__(
        self,
        rulebook: Rulebook,
        confined: Confined,
        *,
        remembered: int = 20_000,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rulebook = rulebook
        self._judge_by = _ConfinedJudge(confined, now)
        self._most = remembered
        self._said: OrderedDict[tuple[str, ...], tuple[tuple[str, ...], Assessment | None]] = OrderedDict()

    async def assess_all(self, manifests: Sequence[Manifest], facts: Facts | None = None) -> list[Assessment | None]:
        """Return one assessment per manifest, in order; None if the kind has no health."""
        facts = facts or {}
        mark = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS).decode() if facts else ""
        answers: list[Assessment | None] = []
        waiting: dict[Rule, list[int]] = {}
        for place, manifest in enumerate(manifests):
            memo = _memo(manifest, mark)
            if memo is not None and (said := self._said.get(memo[0])) is not None and said[0] == memo[1]:
                self._said.move_to_end(memo[0])
                answers.append(said[1])
                continue
            rule = self._rule_for(manifest)
            if rule is not None and rule.origin is Origin.ARGOCD_CM and not is_pending_deletion(manifest):
                waiting.setdefault(rule, []).append(place)
                answers.append(None)
            else:
                answers.append(judge(manifest, rule, facts))
                self._remember(memo, answers[place], rule)
        for rule, places in waiting.items():
            judged = await self._judge_by(rule, [manifests[place] for place in places], facts)
            for place, (answer, is_lasting) in zip(places, judged, strict=True):
                answers[place] = answer
                if is_lasting:
                    self._remember(_memo(manifests[place], mark), answer, rule)
        return answers

    def _rule_for(self, manifest: Manifest) -> Rule | None:
        group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
        return self._rulebook.rule_for(group, str(manifest.get("kind") or ""))

    def _remember(self, memo: Memo | None, answer: Assessment | None, rule: Rule | None) -> None:
        if memo is None or not self._most or (rule is not None and reads_clock(rule.script)):
            return
        self._said[memo[0]] = memo[1], answer
        if len(self._said) > self._most:
            self._said.popitem(last=False)


class _ConfinedJudge:
    """Runs users' checks in isolated workers, and backs off from a check that hangs."""

    def __init__(self, confined: Confined, now: Callable[[], float]) -> None:
        self._confined = confined
        self._fields: dict[str, Any] = {}
        self._backoff = ScriptBackoff(now)

    async def __call__(self, rule: Rule, manifests: Sequence[Manifest], facts: Facts) -> list[tuple[Assessment, bool]]:
        """Return each assessment, and whether it may be cached until the object changes."""
        if (why := self._backoff.reason(rule.script)) is not None:
            return [(_spared(rule, why), False)] * len(manifests)
        try:
            return await self._judge(rule, manifests, facts)
        except NotConfinedError as problem:
            return [(failed(f"the script was not run: {problem}", rule=rule.name), False)] * len(manifests)

    async def _judge(self, rule: Rule, manifests: Sequence[Manifest], facts: Facts) -> list[tuple[Assessment, bool]]:
        fields = await self._fields_read(rule.script)
        judged: list[tuple[Assessment, bool]] = []
        failures, step = 0, PATIENCE  # small batches first: a hanging check must not cost a second per object
        while len(judged) < len(manifests):
            part = manifests[len(judged) : len(judged) + step]
            seen = part if fields is None else [project(manifest, fields) for manifest in part]
            answers = await self._confined.run_batch(EVALUATE, [_payload(rule, manifest, facts) for manifest in seen])
            # A killed worker gives no result about the object, so the check may succeed next time.
            judged += [(_outcome(answer, rule), isinstance(answer, dict)) for answer in answers]
            failures += sum(not isinstance(answer, dict) for answer in answers)
            step *= 4
            if failures >= PATIENCE:
                why = next(answer.fault for answer, is_lasting in reversed(judged) if not is_lasting)
                self._backoff.failed(rule.script, why)
                judged += [(_spared(rule, why), False)] * (len(manifests) - len(judged))
        if not failures:
            self._backoff.succeeded(rule.script)
        return judged

    async def _fields_read(self, script: str) -> Any:
        """Return the fields that the script reads: only these are sent. Users' scripts are parsed in a worker."""
        if script not in self._fields:
            (answer,) = await self._confined.run_batch(FIELDS_READ, [script])
            self._fields[script] = answer if isinstance(answer, list) else None
        return self._fields[script]


def judge(manifest: Manifest, rule: Rule | None, facts: Facts) -> Assessment | None:
    """Assess an object by a built-in, bundled or fallback rule."""
    if is_pending_deletion(manifest):
        return PENDING_DELETION  # argo: before any check runs
    if rule is None:
        return None
    if rule.origin is Origin.BUILT_IN:
        return builtin.judge(manifest)
    if rule.origin is Origin.FALLBACK:
        return fallback.judge(manifest)
    return run_health(rule.script, manifest, facts=facts, open_libs=rule.open_libs, rule=rule.name)


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


def _spared(rule: Rule, why: str) -> Assessment:
    return failed(f"not run: on {PATIENCE} objects before it, {why}", rule=rule.name)


def _payload(rule: Rule, manifest: Manifest, facts: Facts) -> dict[str, Any]:
    return {"script": rule.script, "manifest": manifest, "facts": facts, "open": rule.open_libs}


def _outcome(answer: Any, rule: Rule) -> Assessment:
    try:
        return health_of(answer_of(answer), rule=rule.name)
    except LuaFault as fault:
        return failed(str(fault), rule=rule.name)


def _memo(manifest: Manifest, mark: str) -> Memo | None:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return None
    # An object served in several API versions has the same uid and resourceVersion in all of them.
    parts = (metadata.get("uid"), manifest.get("apiVersion"), manifest.get("kind"))
    version = metadata.get("resourceVersion")
    if not isinstance(version, str) or not all(isinstance(part, str) for part in parts):
        return None
    return parts, (version, mark)  # type: ignore[return-value]
