"""One run of `argosy health test`. In: a request. Out: a report. Never: stops at the first failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.catalog import with_profile, with_script
from argosy.features.health_checks.inputs import STDIN, Inputs, named, read_facts, read_inputs, read_text
from argosy.features.health_checks.kinds import known_kinds
from argosy.features.health_checks.lint import Linted, lint_settings
from argosy.features.health_checks.profile_notes import describe_profiles
from argosy.features.health_checks.report import Report
from argosy.features.health_checks.service import Verdict, Workbench
from argosy.gitops.application.step_results import Health
from argosy.gitops.health.kind_patterns import matches
from argosy.gitops.health.setting_error import Fault, meant
from argosy.gitops.health.settings import Customizations
from argosy.gitops.health.test_suite import Outcome, Suite, collect
from argosy.kube.names import GroupKind, split_api_version

FACTS: Final = ("storageClasses", "defaultStorageClass")
_NEAR: Final = 0.75


@dataclass(frozen=True)
class Request:
    """The files to test, and the rules to use."""

    paths: tuple[Path, ...]
    settings: tuple[Path, ...] = ()
    script: Path | None = None
    open_libs: bool = False
    profile: str = ""
    facts: Path | None = None
    expect: str = ""

    def files(self) -> list[Path]:
        """List all files whose change could change the result."""
        named = [*self.paths, *self.settings, *filter(None, (self.script, self.facts))]
        return [file for path in named for file in ([path, *sorted(path.rglob("*"))] if path.is_dir() else [path])]


def run_tests(bench: Workbench, request: Request) -> Report:
    """Test all named files with the selected rules."""
    request = _checked(request)
    inputs = read_inputs(request.paths, request.settings)
    if not inputs.objects and not inputs.problems and (request.profile or request.expect):
        raise UserError("--profile and --expect need objects; name a file with objects")
    settings = _settings(request, inputs)
    told = read_facts(request.facts)
    facts = {**inputs.facts(), **told}
    suites, problems = _suites(inputs.trees)

    def judge_by(chosen: Customizations) -> Sequence[Verdict]:
        return bench.judge(chosen, [located.manifest for located in inputs.objects], facts)

    verdicts = judge_by(settings)
    described = [] if request.profile else describe_profiles(settings, verdicts, judge_by)
    is_alone = not inputs.objects and not request.script
    failing = settings.problems if is_alone else () if request.script else _of_the_judged(settings, inputs)
    return Report(
        tests=tuple(_run(bench, suites)),
        verdicts=tuple(replace(one, file=at.file) for one, at in zip(verdicts, inputs.objects, strict=True)),
        trials=tuple(bench.try_checks(settings.checks if is_alone else ())),
        review=lint_settings(inputs.settings) if is_alone else Linted(),
        failing=tuple(fault for fault in failing if fault.severity == "error"),
        warnings=(*_warnings(settings.problems, failing, is_alone), *_unknown_facts(told, settings)),
        notes=(
            *(note for suite in suites for note in suite.notes),
            *_near_kinds(verdicts, settings),
            *described,
        ),
        expect=request.expect,
        is_by_script=request.script is not None,
        problems=(*inputs.problems, *problems),
    )


def _run(bench: Workbench, suites: Sequence[Suite]) -> list[Outcome]:
    return [outcome for suite in suites for outcome in bench.run_suite(suite)]


def _suites(trees: Sequence[Path]) -> tuple[list[Suite], list[UserError]]:
    """Load the test suites; with several trees, an unreadable one does not stop the others."""
    suites: list[Suite] = []
    problems: list[UserError] = []
    for tree in trees:
        try:
            suites.append(collect(tree, strict=True))
        except UserError as error:
            if len(trees) == 1:
                raise
            problems.append(error)
    return suites, problems


def _of_the_judged(settings: Customizations, inputs: Inputs) -> tuple[Fault, ...]:
    """List faults of settings for the kinds of the assessed objects."""
    kinds = {"/".join(filter(None, _group_kind(each.manifest))) for each in inputs.objects}
    return tuple(
        fault for fault in settings.problems if fault.pattern and any(_is_for(fault.pattern, kind) for kind in kinds)
    )


def _is_for(pattern: str, kind: str) -> bool:
    try:
        return matches(pattern, kind)
    except UserError:  # an invalid pattern is a fault of its own
        return False


def _warnings(found: Sequence[Fault], failing: Sequence[Fault], is_alone: bool) -> list[str]:
    """List faults to print as warnings; tested settings have lint remarks instead."""
    if is_alone:
        return []
    return [str(fault) for fault in found if fault.severity == "warning" or fault not in failing]


def _near_kinds(verdicts: Sequence[Verdict], settings: Customizations) -> list[str]:
    """Suggest a similar kind for each kind without a health rule."""
    unknown = {GroupKind(each.key.group, each.key.kind) for each in verdicts if each.assessment is None}
    known = known_kinds(settings) if unknown else []
    notes = []
    for of in sorted(unknown - set(known)):
        alike = {each.kind: each for each in known if each.group == of.group}
        alike |= {each.group: each for each in known if each.kind == of.kind}
        if near := meant(of.kind, alike, _NEAR) or meant(of.group, alike, _NEAR):
            notes.append(f"no health rule for {of}; did you mean {alike[near]}?")
    return notes


def _unknown_facts(given: Mapping[str, Any], settings: Customizations) -> list[str]:
    """Warn about facts that no bundled rule and no user's check reads."""
    scripts = [check.script for check in settings.checks]
    unknown = [name for name in given if name not in FACTS and not any(name in script for script in scripts)]
    return [
        f"facts: no rule reads {name}; "
        + (f"did you mean {near}?" if (near := meant(name, FACTS)) else f"known are {' and '.join(FACTS)}")
        for name in unknown
    ]


def _checked(request: Request) -> Request:
    if request.script and request.profile:
        raise UserError("--script and --profile cannot be used together; remove one")
    if request.open_libs and not request.script:
        raise UserError("--open-libs needs --script; checks in settings use useOpenLibs")
    inputs = [*request.paths, *request.settings, *filter(None, (request.script, request.facts))]
    if inputs.count(STDIN) > 1:
        raise UserError("standard input can be used only once; write one of the inputs to a file")
    if not request.expect:
        return request
    near = meant(request.expect, list(Health))
    if near.lower() == request.expect.lower():
        return replace(request, expect=near)
    advice = f"did you mean {near}?" if near else f"choose one of {', '.join(Health)}"
    raise UserError(f"--expect {request.expect} is not a health status; {advice}")


def _settings(request: Request, inputs: Inputs) -> Customizations:
    settings = inputs.customizations()
    if request.script:
        script = read_text(request.script)
        if not inputs.objects and inputs.problems:
            raise inputs.problems[0]
        if not inputs.objects:
            raise UserError("--script needs objects; name at least one file with objects")
        kinds = {_group_kind(each.manifest) for each in inputs.objects}
        made = with_script(script, kinds, open_libs=request.open_libs, where=named(request.script))
        return replace(made, problems=settings.problems)
    return with_profile(settings, request.profile) if request.profile else settings


def _group_kind(manifest: Mapping[str, Any]) -> GroupKind:
    return GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])
