"""Live rules about ApplicationSets.

In: a live view. Out: violations. Never: reports that no controller expands an ApplicationSet if workloads are not
visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation


def _find_unexpanded(view: LiveView) -> Iterator[Violation]:
    for name in view.settings.unexpanded_sets:
        text = f"ApplicationSet/{name}: no controller expands it, so it generates no Applications"
        fix = "commit its Applications to Git, or run Argo CD's applicationset controller"
        yield Violation(FileLocation(f"ApplicationSet/{name}"), text, fix, f"ApplicationSet/{name}")


RULES: Final = (
    build_live_rule(
        "AGY520",
        Severity.ERROR,
        "No controller expands an ApplicationSet",
        "Its Applications are neither created nor updated.",
        "No workload in the control namespace is a running applicationset controller, and no controller has written a"
        " status of the ApplicationSet. argosy does not run generators.",
        "Commit the Applications to Git instead, or run Argo CD's applicationset controller.",
        _find_unexpanded,
    ),
)
