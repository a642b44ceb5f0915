"""AGY403: uses of values that may be nil, which make the script fail.

In: the uses found by the control flow analysis. Out: findings. Never: reports a field that every object has, or one
that only a schema could confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from argosy.gitops.health.lint.finding import Finding, Purpose, Severity
from argosy.gitops.health.lint.script_facts import NilUse

_RULE = "AGY403"
_ALWAYS = frozenset({"metadata", "kind", "apiVersion"})
_OPTIONAL_METADATA = frozenset({"annotations", "labels", "ownerReferences", "finalizers", "deletionTimestamp"})
_OF_EVERY_ELEMENT = frozenset({"type", "status", "name", "kind", "namespace"})

_FAILS = {
    "indexed": "is indexed, but may be nil: then the script fails",
    "iterated": "is iterated, but may be nil: then the script fails",
    "counted": "is counted with #, but may be nil: then the script fails",
    "joined": "is concatenated, but may be nil: then the script fails",
}


def check_nils(uses: Iterable[NilUse], purpose: Purpose) -> Iterator[Finding]:
    for use in uses:
        if purpose != "health" and use.names[1] == "spec":
            continue  # an action is written for a kind with a spec
        severity = _severity(use)
        if severity is not None:
            chain = _spelled(use.names)
            yield Finding(_RULE, use.line, f"{chain} {_FAILS[use.how]}", _advice(use, chain), severity)


def _spelled(names: tuple[str, ...]) -> str:
    return names[0] + "".join(f".{name}" if name.isidentifier() else f'["{name}"]' for name in names[1:])


def _advice(use: NilUse, chain: str) -> str:
    if use.how == "joined":
        return f'write ({chain} or "…"), or test it first'
    if use.how == "iterated":
        return f"write {chain} or {{}}, or test {chain} ~= nil first"
    return f"test {chain} ~= nil first, or return early where it is nil"


def _severity(use: NilUse) -> Severity | None:
    """Return the severity; None if the script does not show that the field may be missing."""
    first, below = use.names[1], use.names[2:]
    if use.is_element:
        # The fields of list elements depend on the kind; only these exist by convention.
        return "warning" if use.how == "joined" and not below and first not in _OF_EVERY_ELEMENT else None
    if first in _ALWAYS:
        if not below or below[0] not in _OPTIONAL_METADATA:
            return None
        return "error" if len(below) == 1 and use.how != "joined" else "warning"
    if first == "spec":
        return "warning" if not below and use.how != "joined" else None
    if use.how == "joined":
        return "warning"
    return "warning" if below else "error"
