"""One run of tests. In: what was asked. Out: a Report. Never: stops at the first failure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from argosy.app.health.catalog import with_profile, with_script
from argosy.app.health.inputs import STDIN, Inputs, named, read_facts, read_inputs, read_text
from argosy.app.health.linting import Remark, lint_checks
from argosy.app.health.workbench import Trial, Verdict, Workbench
from argosy.health.settings import Customizations
from argosy.health.suite import HealthCase, Outcome, collect
from argosy.model.errors import UserError
from argosy.model.flow import Health
from argosy.model.names import GroupKind


@dataclass(frozen=True)
class Request:
    """What to test, and by which rules."""

    paths: tuple[Path, ...]
    settings: tuple[Path, ...] = ()
    script: Path | None = None
    open_libs: bool = False
    profile: str = ""
    facts: Path | None = None
    expect: str = ""

    def files(self) -> list[Path]:
        """Everything that a change of could change the answer."""
        named = [*self.paths, *self.settings, *filter(None, (self.script, self.facts))]
        return [file for path in named for file in ([path, *sorted(path.rglob("*"))] if path.is_dir() else [path])]


@dataclass(frozen=True)
class Report:
    """What came of it: cases of trees, objects that were judged, and checks that were only tried."""

    tests: tuple[Outcome, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    trials: tuple[Trial, ...] = ()
    settings: Customizations = field(default_factory=Customizations)
    remarks: tuple[Remark, ...] = ()  # on checks that were only tried
    notes: tuple[str, ...] = ()
    expect: str = ""

    def outcomes(self) -> list[Outcome]:
        """All of them as cases: those of objects expect a health, or nothing."""
        judged = [_outcome(verdict, self.expect) for verdict in self.verdicts]
        return [*self.tests, *judged, *(_tried(trial) for trial in self.trials)]

    def faults(self) -> list[str]:
        """How checks failed that are not part of a tree."""
        faults = [*(verdict.fault for verdict in self.verdicts), *(trial.fault for trial in self.trials)]
        return [fault for fault in faults if fault]


def _outcome(verdict: Verdict, expect: str) -> Outcome:
    key = verdict.key
    name = "/".join(part for part in (key.namespace, key.name) if part)
    case = HealthCase(group=key.group, kind=key.kind, name=name, status=expect or None)
    is_ok = not verdict.fault and expect in ("", verdict.health)
    return Outcome(case, is_ok, {"status": expect} if expect else None, _got(verdict))


def _tried(trial: Trial) -> Outcome:
    group, _, kind = trial.check.pattern.rpartition("/")
    case = HealthCase(group=group, kind=kind, name=trial.check.where, status=None)
    return Outcome(case, not trial.fault, None, _got(trial))


def _got(of: Verdict | Trial) -> dict[str, str]:
    return {"error": of.fault} if of.fault else {"status": of.health, "message": of.message}


def run_tests(bench: Workbench, request: Request) -> Report:
    """Everything that was named, by the rules that were chosen."""
    _check(request)
    inputs = read_inputs(request.paths, request.settings)
    if not inputs.objects and (request.profile or request.expect):
        raise UserError("--profile and --expect are for objects, and none is named; name a file with some")
    settings = _settings(request, inputs)
    suites = [collect(tree) for tree in inputs.trees]
    outcomes = [outcome for suite in suites for outcome in bench.run_suite(suite)]
    facts = {**inputs.facts(), **read_facts(request.facts)}
    verdicts = bench.judge(settings, [each.manifest for each in inputs.objects], facts)
    alone = () if inputs.objects or inputs.trees else settings.checks
    trials, remarks = bench.try_checks(alone), lint_checks(alone)
    notes = tuple(note for suite in suites for note in suite.notes)
    return Report(tuple(outcomes), tuple(verdicts), tuple(trials), settings, tuple(remarks), notes, request.expect)


def _check(request: Request) -> None:
    if request.expect and request.expect not in list(Health):
        raise UserError(f"--expect {request.expect} is no health; choose one of {', '.join(Health)}")
    if request.script and request.profile:
        raise UserError("--script and --profile both say how to judge; leave one out")
    if request.open_libs and not request.script:
        raise UserError("--open-libs is for the script of --script; settings have useOpenLibs for their checks")
    if request.script == STDIN and STDIN in request.paths:
        raise UserError("standard input cannot be the script and an object; write one of them to a file")


def _settings(request: Request, inputs: Inputs) -> Customizations:
    settings = inputs.customizations()
    if request.script:
        if not inputs.objects:
            raise UserError("--script needs objects to judge; name at least one file with some")
        kinds = {GroupKind(*_group_kind(each.manifest)) for each in inputs.objects}
        script = read_text(request.script)
        made = with_script(script, kinds, open_libs=request.open_libs, where=named(request.script))
        return replace(made, faults=settings.faults)
    return with_profile(settings, request.profile) if request.profile else settings


def _group_kind(manifest: dict[str, Any]) -> tuple[str, str]:
    group, _, _ = manifest["apiVersion"].rpartition("/")
    return group, manifest["kind"]
