"""AGY409: a check that answers Healthy for the result of an older spec.

In: a script's tree, and the kind that it is for. Out: findings. Never: reports a kind whose operator is not known to
advance observedGeneration: for such a kind a comparison would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from argosy.health.bundled import bundled_rules
from argosy.health.lint.finding import Finding
from argosy.health.lua.syntax import parse
from argosy.health.lua.syntax.scopes import walk
from argosy.health.lua.syntax.tree import Block, Index, Name, String
from argosy.model.names import GroupKind

_RULE: Final = "AGY409"
_OBSERVED: Final = "observedGeneration"
# k8s: these report it; Argo CD's own checks in Go compare it.
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def check_generations(script: Block, kind: GroupKind) -> Iterator[Finding]:
    """Finds a script that reads the status and answers Healthy, but never reads observedGeneration."""
    line = _find_line(script, "Healthy")
    if line is None or not _reads_status(script) or _find_line(script, _OBSERVED) is not None:
        return
    if reports_generation(kind):
        yield Finding(
            _RULE,
            line,
            "never compares status.observedGeneration with metadata.generation, so the result of an older spec counts"
            " as Healthy",
            "answer Progressing while obj.status.observedGeneration is less than obj.metadata.generation",
            "warning",
        )


@cache
def reports_generation(kind: GroupKind) -> bool:
    """True if the operators of this kind advance observedGeneration: the bundled check for the kind relies on it."""
    rule = bundled_rules().get(kind)
    if kind.group == "apps" and kind.kind in _WORKLOADS:
        return True
    return rule is not None and _find_line(parse(rule.script), _OBSERVED) is not None


def _find_line(script: Block, word: str) -> int | None:
    return next((node.line for node in walk(script) if isinstance(node, String) and node.value == word), None)


def _reads_status(script: Block) -> bool:
    return any(
        isinstance(node, Index)
        and isinstance(node.base, Name)
        and node.base.name == "obj"
        and isinstance(node.key, String)
        and node.key.value == "status"
        for node in walk(script)
    )
