"""One run of `argosy health test`. In: a request. Out: a report. Never: stops at the first failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.confined_test_runner import HealthTestRunner, ObjectHealth
from argosy.features.health_checks.effective_health_rule_catalog import build_script_settings, select_profile
from argosy.features.health_checks.input_files import (
    STDIN_PATH,
    HealthInputs,
    load_facts,
    load_inputs,
    load_text,
    render_file_name,
)
from argosy.features.health_checks.kind_name_lookup import list_known_kinds
from argosy.features.health_checks.lint import LintResult, lint_settings
from argosy.features.health_checks.strict_profile_comparison_notes import describe_profiles
from argosy.features.health_checks.test_report import HealthTestReport
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.kind_patterns import matches_kind_pattern
from argosy.gitops.health.setting_fault_and_location import SettingFault, find_similar_word
from argosy.gitops.health.settings import Customizations
from argosy.gitops.health.test_suite import CaseResult, RuleTestSuite, collect_cases
from argosy.kube.resource_key import GroupKind, split_api_version

FACT_NAMES: Final = ("storageClasses", "defaultStorageClass")
_SIMILARITY_CUTOFF: Final = 0.75


@dataclass(frozen=True)
class HealthTestRequest:
    """The files to test, and the rules to use."""

    paths: tuple[Path, ...]
    settings: tuple[Path, ...] = ()
    script: Path | None = None
    open_libs: bool = False
    profile: str = ""
    facts: Path | None = None
    expect: str = ""

    def list_files(self) -> list[Path]:
        """List all files whose change could change the result."""
        named_paths = [*self.paths, *self.settings, *filter(None, (self.script, self.facts))]
        return [
            file for path in named_paths for file in ([path, *sorted(path.rglob("*"))] if path.is_dir() else [path])
        ]


def run_tests(runner: HealthTestRunner, request: HealthTestRequest) -> HealthTestReport:
    """Test all named files with the selected rules."""
    request = _validate_request(request)
    inputs = load_inputs(request.paths, request.settings)
    if not inputs.objects and not inputs.problems and (request.profile or request.expect):
        raise UserError("--profile and --expect need objects; name a file with objects")
    settings = _build_settings(request, inputs)
    given_facts = load_facts(request.facts)
    facts = {**inputs.facts(), **given_facts}
    suites, problems = _load_suites(inputs.trees)

    def assess_with_settings(chosen: Customizations) -> Sequence[ObjectHealth]:
        return runner.assess(chosen, [located.manifest for located in inputs.objects], facts)

    verdicts = assess_with_settings(settings)
    profile_notes = [] if request.profile else describe_profiles(settings, verdicts, assess_with_settings)
    has_settings_only = not inputs.objects and not request.script
    failing = (
        settings.problems if has_settings_only else () if request.script else _list_relevant_faults(settings, inputs)
    )
    return HealthTestReport(
        tests=tuple(_run_suites(runner, suites)),
        verdicts=tuple(
            replace(verdict, file=located_object.file)
            for verdict, located_object in zip(verdicts, inputs.objects, strict=True)
        ),
        trials=tuple(runner.try_checks(settings.checks if has_settings_only else ())),
        lint_result=lint_settings(inputs.settings) if has_settings_only else LintResult(),
        failing_faults=tuple(fault for fault in failing if fault.severity == "error"),
        warnings=(
            *_render_warnings(settings.problems, failing, has_settings_only),
            *_warn_unknown_facts(given_facts, settings),
        ),
        notes=(
            *(note for suite in suites for note in suite.notes),
            *_suggest_kinds(verdicts, settings),
            *profile_notes,
        ),
        expect=request.expect,
        is_by_script=request.script is not None,
        problems=(*inputs.problems, *problems),
    )


def _run_suites(runner: HealthTestRunner, suites: Sequence[RuleTestSuite]) -> list[CaseResult]:
    return [outcome for suite in suites for outcome in runner.run_suite(suite)]


def _load_suites(trees: Sequence[Path]) -> tuple[list[RuleTestSuite], list[UserError]]:
    """Load the test suites; with several trees, an unreadable one does not stop the others."""
    suites: list[RuleTestSuite] = []
    problems: list[UserError] = []
    for tree in trees:
        try:
            suites.append(collect_cases(tree, strict=True))
        except UserError as error:
            if len(trees) == 1:
                raise
            problems.append(error)
    return suites, problems


def _list_relevant_faults(settings: Customizations, inputs: HealthInputs) -> tuple[SettingFault, ...]:
    """List faults of settings for the kinds of the assessed objects."""
    kinds = {"/".join(filter(None, _read_group_kind(located.manifest))) for located in inputs.objects}
    return tuple(
        fault
        for fault in settings.problems
        if fault.pattern and any(_matches_kind(fault.pattern, kind) for kind in kinds)
    )


def _matches_kind(pattern: str, kind: str) -> bool:
    try:
        return matches_kind_pattern(pattern, kind)
    except UserError:  # an invalid pattern is a fault of its own
        return False


def _render_warnings(
    faults: Sequence[SettingFault], failing: Sequence[SettingFault], has_settings_only: bool
) -> list[str]:
    """List faults to print as warnings; tested settings have lint remarks instead."""
    if has_settings_only:
        return []
    return [str(fault) for fault in faults if fault.severity == "warning" or fault not in failing]


def _suggest_kinds(verdicts: Sequence[ObjectHealth], settings: Customizations) -> list[str]:
    """Suggest a similar kind for each kind without a health rule."""
    unknown = {GroupKind(item.key.group, item.key.kind) for item in verdicts if item.assessment is None}
    kinds = list_known_kinds(settings) if unknown else []
    notes = []
    for group_kind in sorted(unknown - set(kinds)):
        candidates = {item.kind: item for item in kinds if item.group == group_kind.group}
        candidates |= {item.group: item for item in kinds if item.kind == group_kind.kind}
        if similar_name := find_similar_word(group_kind.kind, candidates, _SIMILARITY_CUTOFF) or find_similar_word(
            group_kind.group, candidates, _SIMILARITY_CUTOFF
        ):
            notes.append(f"no health rule for {group_kind}; did you mean {candidates[similar_name]}?")
    return notes


def _warn_unknown_facts(facts: Mapping[str, Any], settings: Customizations) -> list[str]:
    """Warn about facts that no bundled rule and no user's check reads."""
    scripts = [check.script for check in settings.checks]
    unknown = [name for name in facts if name not in FACT_NAMES and not any(name in script for script in scripts)]
    return [
        f"facts: no rule reads {name}; "
        + (
            f"did you mean {near}?"
            if (near := find_similar_word(name, FACT_NAMES))
            else f"known are {' and '.join(FACT_NAMES)}"
        )
        for name in unknown
    ]


def _validate_request(request: HealthTestRequest) -> HealthTestRequest:
    if request.script and request.profile:
        raise UserError("--script and --profile cannot be used together; remove one")
    if request.open_libs and not request.script:
        raise UserError("--open-libs needs --script; checks in settings use useOpenLibs")
    inputs = [*request.paths, *request.settings, *filter(None, (request.script, request.facts))]
    if inputs.count(STDIN_PATH) > 1:
        raise UserError("standard input can be used only once; write one of the inputs to a file")
    if not request.expect:
        return request
    similar_health = find_similar_word(request.expect, list(HealthStatus))
    if similar_health.lower() == request.expect.lower():
        return replace(request, expect=similar_health)
    advice = f"did you mean {similar_health}?" if similar_health else f"choose one of {', '.join(HealthStatus)}"
    raise UserError(f"--expect {request.expect} is not a health status; {advice}")


def _build_settings(request: HealthTestRequest, inputs: HealthInputs) -> Customizations:
    settings = inputs.customizations()
    if request.script:
        script = load_text(request.script)
        if not inputs.objects and inputs.problems:
            raise inputs.problems[0]
        if not inputs.objects:
            raise UserError("--script needs objects; name at least one file with objects")
        kinds = {_read_group_kind(located.manifest) for located in inputs.objects}
        script_settings = build_script_settings(
            script, kinds, open_libs=request.open_libs, where=render_file_name(request.script)
        )
        return replace(script_settings, problems=settings.problems)
    return select_profile(settings, request.profile) if request.profile else settings


def _read_group_kind(manifest: Mapping[str, Any]) -> GroupKind:
    return GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])
