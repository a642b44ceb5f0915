"""AGY403: uses of values that may be nil, which make the script fail.

In: the uses found by the control flow analysis. Out: findings. Never: reports a field that every object has, or one
that only a schema could confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from argosy.gitops.health.lint.analysis_context import NilUse
from argosy.gitops.health.lint.finding import LintFinding, ScriptPurpose, Severity

_RULE = "AGY403"
_REQUIRED_FIELDS = frozenset({"metadata", "kind", "apiVersion"})
_OPTIONAL_METADATA = frozenset({"annotations", "labels", "ownerReferences", "finalizers", "deletionTimestamp"})
_COMMON_ELEMENT_FIELDS = frozenset({"type", "status", "name", "kind", "namespace"})

_FAILURE_MESSAGES = {
    "indexed": "is indexed, but may be nil: then the script fails",
    "iterated": "is iterated, but may be nil: then the script fails",
    "counted": "is counted with #, but may be nil: then the script fails",
    "joined": "is concatenated, but may be nil: then the script fails",
}


def check_nil_uses(uses: Iterable[NilUse], purpose: ScriptPurpose) -> Iterator[LintFinding]:
    for use in uses:
        if purpose != "health" and use.names[1] == "spec":
            continue  # an action is written for a kind with a spec
        severity = _find_severity(use)
        if severity is not None:
            expression = _render_path(use.names)
            yield LintFinding(
                _RULE,
                use.line,
                f"{expression} {_FAILURE_MESSAGES[use.use_kind]}",
                _suggest_fix(use, expression),
                severity,
            )


def _render_path(names: tuple[str, ...]) -> str:
    return names[0] + "".join(f".{name}" if name.isidentifier() else f'["{name}"]' for name in names[1:])


def _suggest_fix(use: NilUse, expression: str) -> str:
    if use.use_kind == "joined":
        return f'write ({expression} or "…"), or test it first'
    if use.use_kind == "iterated":
        return f"write {expression} or {{}}, or test {expression} ~= nil first"
    return f"test {expression} ~= nil first, or return early where it is nil"


def _find_severity(use: NilUse) -> Severity | None:
    """Return the severity; None if the script does not show that the field may be missing."""
    field, nested_fields = use.names[1], use.names[2:]
    if use.is_element:
        # The fields of list elements depend on the kind; only these exist by convention.
        return (
            "warning"
            if use.use_kind == "joined" and not nested_fields and field not in _COMMON_ELEMENT_FIELDS
            else None
        )
    if field in _REQUIRED_FIELDS:
        if not nested_fields or nested_fields[0] not in _OPTIONAL_METADATA:
            return None
        return "error" if len(nested_fields) == 1 and use.use_kind != "joined" else "warning"
    if field == "spec":
        return "warning" if not nested_fields and use.use_kind != "joined" else None
    if use.use_kind == "joined":
        return "warning"
    return "warning" if nested_fields else "error"
