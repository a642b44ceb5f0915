"""Rules that others look for: those who read scripts of health checks, notebooks, or the text of YAML files.

In: what they told. Out: the same as sights of a rule. Never: looks itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from argosy.gitops.analysis.repository import Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight

_READ: Final = "The script is followed on all its ways without being run; what cannot be known is not told."
_SETTINGS: Final = "The settings are read as Argo CD reads them."


def _told(rule: str, repository: Repository) -> Iterable[Sight]:
    return repository.told.get(rule, ())


def _duplicate_keys(repository: Repository) -> Iterable[Sight]:
    """Kustomize refuses such a file, and then the failed build is reported at the same line."""
    failed = {rendering.fault.place for rendering in repository.renderings if rendering.fault}
    return [sight for sight in _told("AGY154", repository) if sight.place not in failed]


def _rule(number: str, severity: Severity, title: str, about: str, why_sure: str, fix: str) -> Rule:
    return Rule(number, severity, title, about, why_sure, fix, partial(_told, number))


RULES: Final = (
    Rule(
        "AGY154",
        Severity.WARNING,
        "A key is written twice",
        "One of the two values is silently lost: Argo CD and Helm use the last one, and Kustomize refuses the file.",
        "The same mapping of the file has the key on both lines. YAML forbids that. The file is a manifest, a"
        " kustomization or a values file, or a rendering read it.",
        "Keep one of them.",
        _duplicate_keys,
    ),
    _rule(
        "AGY303",
        Severity.INFO,
        "A notebook that was not run from top to bottom, or is no Python",
        "What it shows is not what a run will show: a cell may use what a cell below it had set.",
        "The numbers of the runs are kept in the notebook, and Python itself reads the source.",
        "Run all cells from the top, and save the notebook then.",
    ),
    _rule(
        "AGY304",
        Severity.WARNING,
        "A notebook is kept with an error or a secret",
        "A stored error tells readers that it does not work; a stored secret is everybody's who can read Git.",
        "The output says that it is an error; a secret has the mark of its provider.",
        "Run the cell again or clear its output; take the secret away, and end it.",
    ),
    _rule(
        "AGY305",
        Severity.INFO,
        "A notebook shows what chance gives",
        "No run shows the same again, so a strict comparison with a golden notebook fails.",
        "The cell has an output, calls a function of chance, and nothing in the notebook sets a seed.",
        "Set a seed, or tag the cell nbval-ignore-output.",
    ),
    _rule(
        "AGY306",
        Severity.INFO,
        "A notebook fails without an error",
        "The run counts as a success, and what follows is built on nothing: an error that is thrown away, a result that"
        " is None or NaN, an assertion that is always true, an installation that failed.",
        "It is seen, not supposed: in the source (a bare except, an assert of a pair, a use of what a function never"
        " returns), or in an output that was saved with the notebook. What only a run can show, `argosy notebook run`"
        " tells.",
        "Raise the error, or assert what must be true; run the notebook again, and save it.",
    ),
    _rule(
        "AGY401",
        Severity.ERROR,
        "A health check without an answer",
        "Its objects are Unknown, and syncs wait for them or fail.",
        _READ,
        "Return a table with one of the words of health on every way.",
    ),
    _rule(
        "AGY402",
        Severity.ERROR,
        "A health check that is never, or always, Healthy",
        "A sync waits for ever, or never waits and never shows a failure.",
        _READ,
        "Answer Healthy where the object is ready, and only there.",
    ),
    _rule(
        "AGY403",
        Severity.WARNING,
        "A health check that looks into a field that may be missing",
        "An object that was just created has no status: the script raises an error, and the object is Unknown.",
        _READ,
        "Test for the field first: if obj.status ~= nil then.",
    ),
    _rule(
        "AGY404",
        Severity.INFO,
        "A health check hides one that knows more",
        "What the bundled check tells apart, such as an object that is paused on purpose, is no longer told.",
        "Both checks were run, confined, on the objects that the bundled one is tested with; one of them is Suspended"
        " for the bundled check, and something else for this one.",
        "Remove the check, or teach it to see that; `argosy health diff` shows both.",
    ),
    _rule(
        "AGY405",
        Severity.WARNING,
        "argocd-cm and the ArgoCD resource disagree",
        "The operator writes argocd-cm anew from its resource: what stands only there is lost.",
        _SETTINGS,
        "Write the check into the ArgoCD resource.",
    ),
    _rule(
        "AGY406",
        Severity.ERROR,
        "A setting of a health check that cannot be used",
        "Nobody reads the check; its kind is judged as if it were not there.",
        _SETTINGS,
        "Write resource.customizations.health.GROUP_KIND.",
    ),
    _rule(
        "AGY407",
        Severity.ERROR,
        "A health check uses a library that is not there",
        "The script raises an error, and its objects are Unknown.",
        "Argo CD gives scripts few libraries unless useOpenLibs is set, and the script does not test for it.",
        "Do without it, or set useOpenLibs for the kind.",
    ),
    _rule(
        "AGY408",
        Severity.WARNING,
        "A health check with a part that is never reached",
        "What was meant to be told there never is.",
        _READ,
        "Correct the condition that leads there, or take the part out.",
    ),
    _rule(
        "AGY409",
        Severity.WARNING,
        "A health check that ignores observedGeneration",
        "Right after a sync changed the spec, the status still holds the result of the spec before. The check answers"
        " Healthy, and the next wave begins too early.",
        "The script reads the status and answers Healthy, and the name observedGeneration is nowhere in it. The bundled"
        " check for the same kind relies on the field, so its operator advances it.",
        "Answer Progressing while obj.status.observedGeneration is nil or less than obj.metadata.generation.",
    ),
)
