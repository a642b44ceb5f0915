"""Comparison of the default health rule of a kind with another rule.

In: a kind and an alternative rule. Out: the diff of the scripts, and the objects whose health differs.
Never: decides which rule is better.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from argosy.errors import UserError
from argosy.features.health_checks.confined_test_runner import HealthTestRunner, ObjectHealth
from argosy.features.health_checks.effective_health_rule_catalog import (
    build_script_settings,
    find_rule,
    render_rule,
    render_rule_name,
    select_profile,
)
from argosy.features.health_checks.input_files import load_inputs, load_settings, load_text, render_file_name
from argosy.features.health_checks.kind_name_lookup import find_kind, list_known_kinds, parse_kind_pattern
from argosy.features.health_checks.located_manifests import LocatedManifest
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.bundled_rules import (
    PROFILES_FOLDER,
    RULES_FOLDER,
    HealthRule,
    RuleOrigin,
    list_profiles_of_kind,
    load_bundled_rules,
    load_profile_rules,
)
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.setting_kind_names import has_wildcard
from argosy.gitops.health.settings import CustomHealthCheck, Customizations
from argosy.gitops.health.storage_class_facts import read_cluster_facts
from argosy.gitops.health.test_suite import collect_cases
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, split_api_version


@dataclass(frozen=True)
class AlternativeRule:
    """The rule to compare the default rule with: a profile, settings or a script."""

    profile: str = ""
    settings: tuple[Path, ...] = ()
    script: Path | None = None
    open_libs: bool = False

    def validate(self) -> None:
        """Raise UserError unless exactly one of the three is set."""
        flags = {"--profile": self.profile, "-f": self.settings, "--script": self.script}
        used_flags = [name for name, value in flags.items() if value]
        if not used_flags:
            raise UserError("nothing to compare with; add one of --profile P, -f FILE and --script FILE")
        if len(used_flags) > 1:
            raise UserError(f"{' and '.join(used_flags)} cannot be used together; keep one of them")
        if self.open_libs and not self.script:
            raise UserError("--open-libs needs --script; checks in settings use useOpenLibs")


@dataclass(frozen=True)
class HealthDisagreement:
    """One object whose health or message differs between the two rules."""

    name: str
    default_result: ObjectHealth
    other_result: ObjectHealth

    @property
    def changes_health(self) -> bool:
        return self.default_result.health != self.other_result.health

    def to_wire(self) -> dict[str, Any]:
        sides = (("one", self.default_result), ("other", self.other_result))
        return {
            "name": self.name,
            **{side: {"status": result.health, "message": result.message} for side, result in sides},
        }


@dataclass(frozen=True)
class HealthRuleComparison:
    """The result of comparing the default rule with another one."""

    kind: GroupKind
    default_name: str
    other_name: str
    diff_lines: tuple[str, ...]
    disagreements: tuple[HealthDisagreement, ...]
    object_count: int
    hint: str
    settings: Customizations

    @property
    def differs(self) -> bool:
        return bool(self.diff_lines or self.disagreements)

    def to_wire(self) -> dict[str, Any]:
        return {
            "group": self.kind.group,
            "resource": self.kind.kind,
            "one": self.default_name,
            "other": self.other_name,
            "diff": list(self.diff_lines),
            "objects": self.object_count,
            "disagreements": [disagreement.to_wire() for disagreement in self.disagreements],
            "hint": self.hint,
        }


def compare_rules(
    runner: HealthTestRunner, kind_name: str, alternative: AlternativeRule, objects: Sequence[Path] = ()
) -> HealthRuleComparison:
    """Compare the default rule of a kind with another rule, on the given objects or on the bundled test objects."""
    alternative.validate()
    settings = load_settings(alternative.settings)
    located_objects = _load_objects(objects)
    group_kind = _resolve_kind(kind_name, settings, {_read_kind(located.manifest) for located in located_objects})
    changed_settings = _build_changed_settings(group_kind, settings, alternative)
    default_rule, other_rule = (
        HealthRules().find_rule(*group_kind),
        HealthRules(changed_settings).find_rule(*group_kind),
    )
    if alternative.settings and other_rule == default_rule:
        problem = f"these settings have no check and no profile for {group_kind}"
        raise UserError(f"{problem}; name a kind that they configure")
    samples = _build_samples(group_kind, located_objects) if objects else _load_bundled_samples(group_kind)
    disagreements = tuple(_find_disagreements(runner, samples, changed_settings))
    lines = tuple(_diff_rules(default_rule, other_rule))
    return HealthRuleComparison(
        group_kind,
        _render_rule_name(default_rule),
        _render_rule_name(other_rule),
        lines,
        disagreements,
        len(samples),
        _describe_lost_suspension(default_rule, other_rule, disagreements),
        settings,
    )


def list_overriding_checks(settings: Customizations) -> list[tuple[CustomHealthCheck, GroupKind]]:
    """List the checks that override a bundled rule and are not a bundled script themselves."""
    pairs = [(check, parse_kind_pattern(check.pattern)) for check in settings.checks if not has_wildcard(check.pattern)]
    return [
        (check, group_kind)
        for check, group_kind in pairs
        if group_kind in load_bundled_rules() and not _is_bundled_script(check, group_kind)
    ]


def _is_bundled_script(check: CustomHealthCheck, group_kind: GroupKind) -> bool:
    """Return True if the check is the script of a bundled profile, which the user chose on purpose."""
    return any(
        load_profile_rules(name)[group_kind].script.strip() == check.script.strip()
        for name in list_profiles_of_kind(group_kind)
    )


def describe_lost_states(runner: HealthTestRunner, check: CustomHealthCheck, group_kind: GroupKind) -> str:
    """Describe a state that the bundled rule detects and the check does not; empty if there is none."""
    changed_settings = Customizations(checks=(check,))
    default_rule, other_rule = (
        HealthRules().find_rule(*group_kind),
        HealthRules(changed_settings).find_rule(*group_kind),
    )
    return _describe_lost_suspension(
        default_rule, other_rule, list(_find_disagreements(runner, _load_bundled_samples(group_kind), changed_settings))
    )


def _resolve_kind(kind_name: str, settings: Customizations, kinds: set[GroupKind]) -> GroupKind:
    """Find the kind that a word names; prefer kinds of the given objects, then kinds of the settings."""
    checked_kinds = {parse_kind_pattern(check.pattern) for check in settings.checks}
    for candidates in (kinds, checked_kinds):
        with suppress(UserError):
            return find_kind(kind_name, candidates)
    return find_kind(kind_name, {*list_known_kinds(settings), *kinds})


def _load_objects(paths: Sequence[Path]) -> list[LocatedManifest]:
    inputs = load_inputs(paths)
    for problem in inputs.problems:
        raise problem
    return list(inputs.objects)


def _build_samples(group_kind: GroupKind, located_objects: Sequence[LocatedManifest]) -> list[_Sample]:
    facts = read_cluster_facts(located.manifest for located in located_objects)
    samples = [
        _Sample(_render_sample_name(located), located.manifest, facts)
        for located in located_objects
        if _read_kind(located.manifest) == group_kind
    ]
    if not samples:
        raise UserError(f"none of the objects has kind {group_kind}; name files that contain some")
    return samples


def _render_sample_name(located: LocatedManifest) -> str:
    metadata = located.manifest["metadata"]
    return f"{located.file} {metadata.get('name') or metadata.get('generateName')}"


def _read_kind(manifest: Manifest) -> GroupKind:
    return GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])


def _find_disagreements(
    runner: HealthTestRunner, samples: Sequence[_Sample], changed_settings: Customizations
) -> Iterator[HealthDisagreement]:
    """Assess samples with the same facts in one batch, so that a hanging check times out only once."""
    for _, group in itertools.groupby(sorted(samples, key=_facts_key), key=_facts_key):
        batch = list(group)
        manifests, facts = [sample.manifest for sample in batch], batch[0].facts
        default_results, other_results = (
            runner.assess(settings, manifests, facts) for settings in (Customizations(), changed_settings)
        )
        for sample, default_result, other_result in zip(batch, default_results, other_results, strict=True):
            if (default_result.health, default_result.message) != (other_result.health, other_result.message):
                yield HealthDisagreement(sample.name, default_result, other_result)


def _facts_key(sample: _Sample) -> str:
    return json.dumps(sample.facts, sort_keys=True)


def _build_changed_settings(
    group_kind: GroupKind, settings: Customizations, alternative: AlternativeRule
) -> Customizations:
    if alternative.script:
        text = load_text(alternative.script)
        return build_script_settings(
            text, {group_kind}, open_libs=alternative.open_libs, where=render_file_name(alternative.script)
        )
    if alternative.profile:
        find_rule(str(group_kind) if group_kind.group else f"core/{group_kind.kind}", settings, alternative.profile)
        return select_profile(settings, alternative.profile)
    return settings


class _Sample(NamedTuple):
    name: str
    manifest: Manifest
    facts: Mapping[str, Any]


def _load_bundled_samples(group_kind: GroupKind) -> list[_Sample]:
    """List the test objects of the bundled rules for this kind, without duplicates."""
    trees = {"": RULES_FOLDER} | {
        f"{profile}/": PROFILES_FOLDER / profile for profile in list_profiles_of_kind(group_kind)
    }
    samples_by_content: dict[str, _Sample] = {}
    for prefix, tree in trees.items():
        folder = tree.joinpath(*filter(None, group_kind))
        for sample in _read_suite_samples(folder, prefix) if (folder / "health_test.yaml").exists() else ():
            if sample.manifest.get("kind") == group_kind.kind:
                samples_by_content.setdefault(repr((sample.manifest, sample.facts)), sample)
    return list(samples_by_content.values())


def _read_suite_samples(folder: Path, prefix: str) -> Iterator[_Sample]:
    suite = collect_cases(folder)
    for case in suite.cases:
        if case.suite == "health" and case.input:
            name = prefix + case.name.replace("testdata/", "").replace(".yaml", "")
            yield _Sample(name, suite.inputs.load_document(case.folder, case.input), case.facts)


def _render_rule_name(rule: HealthRule | None) -> str:
    return render_rule_name(rule.name) if rule else "no rule"


def _diff_rules(default_rule: HealthRule | None, other_rule: HealthRule | None) -> list[str]:
    default_lines, other_lines = (render_rule(rule).splitlines() if rule else [] for rule in (default_rule, other_rule))
    return list(
        difflib.unified_diff(
            default_lines, other_lines, _render_rule_name(default_rule), _render_rule_name(other_rule), lineterm=""
        )
    )


def _describe_lost_suspension(
    default_rule: HealthRule | None, other_rule: HealthRule | None, disagreements: Sequence[HealthDisagreement]
) -> str:
    """Warn if a user's check does not report Suspended where the bundled rule does."""
    if (
        default_rule is None
        or other_rule is None
        or default_rule.origin is not RuleOrigin.BUNDLED
        or other_rule.origin is not RuleOrigin.ARGOCD_CM
    ):
        return ""
    lost_suspensions = [
        disagreement
        for disagreement in disagreements
        if disagreement.default_result.health == HealthStatus.SUSPENDED and not disagreement.other_result.fault
    ]
    lost_suspensions = [
        disagreement for disagreement in lost_suspensions if disagreement.other_result.health != HealthStatus.SUSPENDED
    ]
    if not lost_suspensions:
        return ""
    return (
        f"AGY404: this check overrides a bundled rule that detects more states: {lost_suspensions[0].name} is "
        "Suspended there, "
        f"and {lost_suspensions[0].other_result.health or 'nothing'} here; remove the check, or handle this state in it"
    )
