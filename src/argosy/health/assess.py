"""Judge live manifests, all at once: ours in this process, users' checks confined and in batches.

In: live manifests and small facts. Out: for each an Assessment, or None. Never: lets one broken check stop the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from argosy.confine import OverLimit
from argosy.health import builtin, fallback
from argosy.health.bundled import Origin, Rule
from argosy.health.lua import LuaFault, answer_of, failed, health_of, run_health
from argosy.health.lua.reads import project
from argosy.health.rulebook import Rulebook
from argosy.model.annotations import HOOK_FINALIZER
from argosy.model.flow import Assessment, Health
from argosy.model.manifest import Manifest
from argosy.model.names import split_api_version

EVALUATE: Final = "argosy.health.lua.confined:evaluate"
FIELDS_READ: Final = "argosy.health.lua.confined:fields_read"
PENDING_DELETION: Final = Assessment(Health.PROGRESSING, "Pending deletion")
PATIENCE: Final = 3  # objects on which a check may run over its limits before the rest is spared

Facts = Mapping[str, Any]
Memo = tuple[str, str, bytes]


class Confined(Protocol):
    """What of a pool is needed: a batch in, an answer or an error for each."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


class Assessor:
    """Judges by the rules in force, and remembers what it said of a version of an object."""

    def __init__(self, rulebook: Rulebook, confined: Confined, *, remembered: int = 20_000) -> None:
        self._rulebook = rulebook
        self._confined = confined
        self._most = remembered
        self._said: OrderedDict[Memo, Assessment | None] = OrderedDict()
        self._reads: dict[str, Any] = {}

    async def assess_all(self, manifests: Sequence[Manifest], facts: Facts | None = None) -> list[Assessment | None]:
        """One assessment for each manifest, in their order; None where the kind has no health."""
        facts = facts or {}
        mark = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS) if facts else b""
        answers: list[Assessment | None] = []
        waiting: dict[Rule, list[int]] = {}
        for place, manifest in enumerate(manifests):
            memo = _memo(manifest, mark)
            if memo is not None and memo in self._said:
                self._said.move_to_end(memo)
                answers.append(self._said[memo])
                continue
            rule = self._rule_for(manifest)
            if rule is not None and rule.origin is Origin.ARGOCD_CM and not is_pending_deletion(manifest):
                waiting.setdefault(rule, []).append(place)
                answers.append(None)
            else:
                answers.append(judge(manifest, rule, facts))
                self._remember(memo, answers[place])
        for rule, places in waiting.items():
            asked = [manifests[place] for place in places]
            for place, (answer, is_lasting) in zip(places, await self._judge_confined(rule, asked, facts), strict=True):
                answers[place] = answer
                if is_lasting:
                    self._remember(_memo(manifests[place], mark), answer)
        return answers

    def _rule_for(self, manifest: Manifest) -> Rule | None:
        group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
        return self._rulebook.rule_for(group, str(manifest.get("kind") or ""))

    async def _judge_confined(
        self, rule: Rule, manifests: Sequence[Manifest], facts: Facts
    ) -> list[tuple[Assessment, bool]]:
        """Judge by one user's check. The first few go alone: a check that hangs must not cost a second an object."""
        judged: list[tuple[Assessment, bool]] = []
        fields = await self._fields_read(rule.script)
        step = PATIENCE
        while len(judged) < len(manifests):
            part = manifests[len(judged) : len(judged) + step]
            seen = part if fields is None else [project(manifest, fields) for manifest in part]
            payloads = [_payload(rule, manifest, facts) for manifest in seen]
            answers = await self._confined.run_batch(EVALUATE, payloads)
            judged += [(_outcome(answer, rule), not isinstance(answer, OverLimit)) for answer in answers]
            step *= 4
            if len(judged) < len(manifests) and sum(not is_lasting for _, is_lasting in judged) >= PATIENCE:
                spared = failed(f"not run: on {PATIENCE} objects before it, {judged[-1][0].fault}", rule=rule.name)
                judged += [(spared, False)] * (len(manifests) - len(judged))
        return judged

    async def _fields_read(self, script: str) -> Any:
        """What of an object the script reads: the rest need not travel. A stranger's text is not even parsed here."""
        if script not in self._reads:
            (answer,) = await self._confined.run_batch(FIELDS_READ, [script])
            self._reads[script] = answer if isinstance(answer, list) else None
        return self._reads[script]

    def _remember(self, memo: Memo | None, answer: Assessment | None) -> None:
        if memo is None or not self._most:
            return
        self._said[memo] = answer
        if len(self._said) > self._most:
            self._said.popitem(last=False)


def judge(manifest: Manifest, rule: Rule | None, facts: Facts) -> Assessment | None:
    """Judge by a rule of ours."""
    if is_pending_deletion(manifest):
        return PENDING_DELETION  # argo: before any check is asked
    if rule is None:
        return None
    if rule.origin is Origin.BUILT_IN:
        return builtin.judge(manifest)
    if rule.origin is Origin.FALLBACK:
        return fallback.judge(manifest)
    return run_health(rule.script, manifest, facts=facts, open_libs=rule.open_libs, rule=rule.name)


def is_pending_deletion(manifest: Manifest) -> bool:
    """argo: a hook keeps its health while its finalizer holds it, so that its result can still be read."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("deletionTimestamp"):
        return False
    finalizers = metadata.get("finalizers")
    return not isinstance(finalizers, list) or HOOK_FINALIZER not in finalizers


def _payload(rule: Rule, manifest: Manifest, facts: Facts) -> dict[str, Any]:
    return {"script": rule.script, "manifest": manifest, "facts": facts, "open": rule.open_libs}


def _outcome(answer: Any, rule: Rule) -> Assessment:
    try:
        return health_of(answer_of(answer), rule=rule.name)
    except LuaFault as fault:
        return failed(str(fault), rule=rule.name)


def _memo(manifest: Manifest, mark: bytes) -> Memo | None:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return None
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version, mark) if isinstance(uid, str) and isinstance(version, str) else None
