"""AGY409: checks that return Healthy for the status of an older spec.

In: the tree of a script, and its kind. Out: findings. Never: reports a kind whose operator may not advance
observedGeneration: then a comparison would wait forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, TypeGuard

from argosy.gitops.health.bundled_rules import load_bundled_rules
from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lua.syntax import parse
from argosy.gitops.health.lua.syntax.scopes import walk_tree
from argosy.gitops.health.lua.syntax.tree import IndexExpression, LuaBlock, NameReference, StringLiteral
from argosy.kube.resource_key import GroupKind

_RULE: Final = "AGY409"
_OBSERVED_GENERATION: Final = "observedGeneration"
# k8s: these report it; Argo CD's own checks in Go compare it.
_WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def check_generations(script: LuaBlock, kind: GroupKind) -> Iterator[LintFinding]:
    """Report a script that reads the status and returns Healthy, but never reads observedGeneration."""
    line = _find_line(script, "Healthy")
    if line is None or not _reads_status(script) or _find_line(script, _OBSERVED_GENERATION) is not None:
        return
    if reports_generation(kind):
        yield LintFinding(
            _RULE,
            line,
            "never compares status.observedGeneration with metadata.generation, so the result of an older spec counts"
            " as Healthy",
            "answer Progressing while obj.status.observedGeneration is nil or less than obj.metadata.generation",
            "warning",
        )


@cache
def reports_generation(kind: GroupKind) -> bool:
    """True if the operator of this kind advances a number in status.observedGeneration.

    Then the bundled check of the kind reads `obj.status.observedGeneration`. Gateway API kinds have the field only in
    their conditions, and a Rollout has a string: their checks read it differently.
    """
    rule = load_bundled_rules().get(kind)
    if kind.group == "apps" and kind.kind in _WORKLOAD_KINDS:
        return True
    return rule is not None and any(map(_is_observed_generation, walk_tree(parse(rule.script))))


def _find_line(script: LuaBlock, word: str) -> int | None:
    return next(
        (node.line for node in walk_tree(script) if isinstance(node, StringLiteral) and node.value == word), None
    )


def _reads_status(script: LuaBlock) -> bool:
    return any(map(_is_status, walk_tree(script)))


def _is_status(node: object) -> bool:
    return _is_index(node, "status") and isinstance(node.base, NameReference) and node.base.name == "obj"


def _is_observed_generation(node: object) -> bool:
    return _is_index(node, _OBSERVED_GENERATION) and _is_status(node.base)


def _is_index(node: object, field: str) -> TypeGuard[IndexExpression]:
    return isinstance(node, IndexExpression) and isinstance(node.key, StringLiteral) and node.key.value == field
