"""Live rules about ApplicationSets.

In: a live view. Out: sights. Never: says that nobody expands one where workloads cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Place, Severity, Sight


def _find_unexpanded(view: LiveView) -> Iterator[Sight]:
    for name in view.settings.unexpanded:
        text = f"ApplicationSet/{name}: no controller expands it, so it makes no Applications"
        fix = "commit its Applications to Git, or run Argo CD's applicationset controller"
        yield Sight(Place(f"ApplicationSet/{name}"), text, fix, f"ApplicationSet/{name}")


RULES: Final = (
    live_rule(
        "AGY520",
        Severity.ERROR,
        "An ApplicationSet that nobody expands",
        "It is stored and nothing comes of it: its Applications are neither made nor updated.",
        "No workload in the control namespace is an applicationset controller that runs, and no controller has written"
        " a status of the ApplicationSet. argosy does not run generators.",
        "Commit the Applications to Git instead, or run Argo CD's applicationset controller.",
        _find_unexpanded,
    ),
)
