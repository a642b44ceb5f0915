"""Rules that are checked elsewhere: linters of health check scripts, notebooks and YAML text.

In: violations that callers found. Out: the same violations. Never: checks anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from argosy.gitops.analysis.repository_view import RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation

_SCRIPT_CERTAINTY: Final = "All paths of the script are analysed without running it; unknown results are not reported."
_SETTINGS_CERTAINTY: Final = "The settings are read as Argo CD reads them."


def _get_external_violations(rule: str, repository: RepositoryView) -> Iterable[Violation]:
    return repository.external_violations.get(rule, ())


def _pass_on_duplicate_key_violations(repository: RepositoryView) -> Iterable[Violation]:
    """Kustomize rejects such a file, and then the failed build is reported at the same line."""
    failed_locations = {rendering.failure.location for rendering in repository.renderings if rendering.failure}
    return [
        violation
        for violation in _get_external_violations("AGY154", repository)
        if violation.location not in failed_locations
    ]


def _build_rule(
    number: str, severity: Severity, title: str, consequence: str, certainty: str, fix: str
) -> AnalysisRule:
    return AnalysisRule(number, severity, title, consequence, certainty, fix, partial(_get_external_violations, number))


RULES: Final = (
    AnalysisRule(
        "AGY154",
        Severity.WARNING,
        "A key is written twice",
        "One of the two values is silently lost: Argo CD and Helm use the last one, and Kustomize rejects the file.",
        "The same map of the file has the key on both lines, which YAML forbids. The file is a manifest, a"
        " kustomization or a values file, or was read by a render.",
        "Keep one of them.",
        _pass_on_duplicate_key_violations,
    ),
    _build_rule(
        "AGY303",
        Severity.INFO,
        "A notebook was not run from top to bottom, or is not valid Python",
        "Its outputs may differ from those of a new run: a cell may use a value that a cell below it had set.",
        "The notebook stores execution counts, and Python itself parses the source.",
        "Run all cells from the top, then save the notebook.",
    ),
    _build_rule(
        "AGY304",
        Severity.WARNING,
        "A notebook is saved with an error or a secret",
        "A saved error tells readers that it does not work; a saved secret is visible to everyone who can read Git.",
        "The output is of type error; a secret has its provider's format.",
        "Run the cell again or clear its output; remove the secret, and revoke it.",
    ),
    _build_rule(
        "AGY305",
        Severity.INFO,
        "A notebook has random output",
        "Every run has another output, so a strict comparison with a golden notebook fails.",
        "The cell has an output and calls a random function, and nothing in the notebook sets a seed.",
        "Set a seed, or tag the cell nbval-ignore-output.",
    ),
    _build_rule(
        "AGY306",
        Severity.INFO,
        "A notebook fails without an error",
        "The run counts as a success, and later steps build on a missing result: a swallowed error, a result that is"
        " None or NaN, an assertion that is always true, an installation that failed.",
        "It is visible in the source (a bare except, an assert of a tuple, a use of a value that a function never"
        " returns), or in an output saved with the notebook. `argosy notebook run` reports what only a run can show.",
        "Raise the error, or assert what must be true; run the notebook again, and save it.",
    ),
    _build_rule(
        "AGY401",
        Severity.ERROR,
        "A health check without a result",
        "Its objects are Unknown, and syncs wait for them or fail.",
        _SCRIPT_CERTAINTY,
        "Return a table with a health status on every path.",
    ),
    _build_rule(
        "AGY402",
        Severity.ERROR,
        "A health check is never, or always, Healthy",
        "A sync waits forever, or never waits and never shows a failure.",
        _SCRIPT_CERTAINTY,
        "Return Healthy if the object is ready, and only then.",
    ),
    _build_rule(
        "AGY403",
        Severity.WARNING,
        "A health check reads a field that may be missing",
        "An object that was just created has no status: the script raises an error, and the object is Unknown.",
        _SCRIPT_CERTAINTY,
        "Test for the field first: if obj.status ~= nil then.",
    ),
    _build_rule(
        "AGY404",
        Severity.INFO,
        "A health check replaces a bundled one that detects more",
        "A state that the bundled check detects, such as an intentionally paused object, is no longer shown.",
        "Both checks were run, sandboxed, on the test objects of the bundled one; at least one of them is Suspended for"
        " the bundled check, and something else for this one.",
        "Remove the check, or add the state to it; `argosy health diff` shows both.",
    ),
    _build_rule(
        "AGY405",
        Severity.WARNING,
        "argocd-cm and the ArgoCD resource disagree",
        "The operator overwrites argocd-cm from its resource: settings that only argocd-cm has are lost.",
        _SETTINGS_CERTAINTY,
        "Write the check into the ArgoCD resource.",
    ),
    _build_rule(
        "AGY406",
        Severity.ERROR,
        "A health check setting cannot be used",
        "The check is ignored; its kind is assessed as if the check did not exist.",
        _SETTINGS_CERTAINTY,
        "Use the key resource.customizations.health.GROUP_KIND.",
    ),
    _build_rule(
        "AGY407",
        Severity.ERROR,
        "A health check uses a library that is not available",
        "The script raises an error, and its objects are Unknown.",
        "Argo CD gives scripts few libraries unless useOpenLibs is set, and the script does not test for it.",
        "Do not use it, or set useOpenLibs for the kind.",
    ),
    _build_rule(
        "AGY408",
        Severity.WARNING,
        "A health check has unreachable code",
        "The result that this code returns never appears.",
        _SCRIPT_CERTAINTY,
        "Correct the condition before it, or remove the code.",
    ),
    _build_rule(
        "AGY409",
        Severity.WARNING,
        "A health check ignores observedGeneration",
        "Right after a sync changed the spec, the status still has the result of the previous spec. The check returns"
        " Healthy, and the next wave starts too early.",
        "The script reads the status and returns Healthy, and does not contain the name observedGeneration. The bundled"
        " check for the same kind relies on the field, so its operator updates it.",
        "Return Progressing while obj.status.observedGeneration is nil or less than obj.metadata.generation.",
    ),
)
