"""The tests of rules: any tree in Argo CD's layout, run as Argo CD's own tests run it.

In: a folder, or a script and manifests. Out: an outcome for each case. Never: runs a script in this process, passes
over a case in silence, or reads a file outside the folder.
"""

from __future__ import annotations

from argosy.gitops.health.test_suite.case_collection import collect, script_cases
from argosy.gitops.health.test_suite.cases import ActionCase, Case, DiscoveryCase, HealthCase, Outcome, Suite
from argosy.gitops.health.test_suite.report import junit, line, report
from argosy.gitops.health.test_suite.run import run

__all__ = [
    "ActionCase",
    "Case",
    "DiscoveryCase",
    "HealthCase",
    "Outcome",
    "Suite",
    "collect",
    "junit",
    "line",
    "report",
    "run",
    "script_cases",
]
