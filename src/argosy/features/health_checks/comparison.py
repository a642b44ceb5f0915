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
from argosy.features.health_checks.catalog import called, find_rule, shown, with_profile, with_script
from argosy.features.health_checks.inputs import named, read_inputs, read_settings, read_text
from argosy.features.health_checks.kinds import find_kind, kind_of, known_kinds
from argosy.features.health_checks.service import Verdict, Workbench
from argosy.features.health_checks.sources import Located
from argosy.gitops.application.step_results import Health
from argosy.gitops.health.bundled import PROFILES, RULES, Origin, Rule, bundled_rules, profile_rules, profiles_of
from argosy.gitops.health.cluster_facts import facts_from
from argosy.gitops.health.kind_keys import is_wild
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Check, Customizations
from argosy.gitops.health.test_suite import collect
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class Alternative:
    """The rule to compare the default rule with: a profile, settings or a script."""

    profile: str = ""
    settings: tuple[Path, ...] = ()
    script: Path | None = None
    open_libs: bool = False

    def check(self) -> None:
        """Raise UserError unless exactly one of the three is set."""
        given = {"--profile": self.profile, "-f": self.settings, "--script": self.script}
        names = [name for name, value in given.items() if value]
        if not names:
            raise UserError("nothing to compare with; add one of --profile P, -f FILE and --script FILE")
        if len(names) > 1:
            raise UserError(f"{' and '.join(names)} cannot be used together; keep one of them")
        if self.open_libs and not self.script:
            raise UserError("--open-libs needs --script; checks in settings use useOpenLibs")


@dataclass(frozen=True)
class Disagreement:
    """One object whose health or message differs between the two rules."""

    name: str
    one: Verdict
    other: Verdict

    @property
    def changes_health(self) -> bool:
        return self.one.health != self.other.health

    def as_data(self) -> dict[str, Any]:
        both = (("one", self.one), ("other", self.other))
        return {"name": self.name, **{side: {"status": of.health, "message": of.message} for side, of in both}}


@dataclass(frozen=True)
class Comparison:
    """The result of comparing the default rule with another one."""

    kind: GroupKind
    one: str
    other: str
    lines: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]
    objects: int
    hint: str
    settings: Customizations

    @property
    def differs(self) -> bool:
        return bool(self.lines or self.disagreements)

    def as_data(self) -> dict[str, Any]:
        return {
            "group": self.kind.group,
            "resource": self.kind.kind,
            "one": self.one,
            "other": self.other,
            "diff": list(self.lines),
            "objects": self.objects,
            "disagreements": [each.as_data() for each in self.disagreements],
            "hint": self.hint,
        }


def compare(bench: Workbench, word: str, alternative: Alternative, objects: Sequence[Path] = ()) -> Comparison:
    """Compare the default rule of a kind with another rule, on the given objects or on the bundled test objects."""
    alternative.check()
    given = read_settings(alternative.settings)
    found = _read(objects)
    of = _meant(word, given, {_kind_of(each.manifest) for each in found})
    changed = _changed(of, given, alternative)
    one, other = Rulebook().rule_for(*of), Rulebook(changed).rule_for(*of)
    if alternative.settings and other == one:
        what = f"these settings have no check and no profile for {of}"
        raise UserError(f"{what}; name a kind that they configure")
    samples = _own_samples(of, found) if objects else _samples(of)
    differing = tuple(_disagreements(bench, samples, changed))
    lines = tuple(_difference(one, other))
    return Comparison(of, _name(one), _name(other), lines, differing, len(samples), _hint(one, other, differing), given)


def judged_by_more(settings: Customizations) -> list[tuple[Check, GroupKind]]:
    """List the checks that override a bundled rule and are not a bundled script themselves."""
    found = [(check, kind_of(check.pattern)) for check in settings.checks if not is_wild(check.pattern)]
    return [(check, of) for check, of in found if of in bundled_rules() and not _is_ours(check, of)]


def _is_ours(check: Check, of: GroupKind) -> bool:
    """Return True if the check is the script of a bundled profile, which the user chose on purpose."""
    return any(profile_rules(name)[of].script.strip() == check.script.strip() for name in profiles_of(of))


def hidden_by(bench: Workbench, check: Check, of: GroupKind) -> str:
    """Describe a state that the bundled rule detects and the check does not; empty if there is none."""
    changed = Customizations(checks=(check,))
    one, other = Rulebook().rule_for(*of), Rulebook(changed).rule_for(*of)
    return _hint(one, other, list(_disagreements(bench, _samples(of), changed)))


def _meant(word: str, given: Customizations, kinds: set[GroupKind]) -> GroupKind:
    """Find the kind that a word names; prefer kinds of the given objects, then kinds of the settings."""
    checked = {kind_of(check.pattern) for check in given.checks}
    for near in (kinds, checked):
        with suppress(UserError):
            return find_kind(word, near)
    return find_kind(word, {*known_kinds(given), *kinds})


def _read(objects: Sequence[Path]) -> list[Located]:
    found = read_inputs(objects)
    for problem in found.problems:
        raise problem
    return list(found.objects)


def _own_samples(of: GroupKind, found: Sequence[Located]) -> list[_Sample]:
    facts = facts_from(each.manifest for each in found)
    samples = [_Sample(_called_in(each), each.manifest, facts) for each in found if _kind_of(each.manifest) == of]
    if not samples:
        raise UserError(f"none of the objects has kind {of}; name files that contain some")
    return samples


def _called_in(located: Located) -> str:
    metadata = located.manifest["metadata"]
    return f"{located.file} {metadata.get('name') or metadata.get('generateName')}"


def _kind_of(manifest: Manifest) -> GroupKind:
    return GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])


def _disagreements(bench: Workbench, samples: Sequence[_Sample], changed: Customizations) -> Iterator[Disagreement]:
    """Assess samples with the same facts in one batch, so that a hanging check times out only once."""
    for _, group in itertools.groupby(sorted(samples, key=_facts_of), key=_facts_of):
        alike = list(group)
        manifests, facts = [sample.manifest for sample in alike], alike[0].facts
        before, after = (bench.judge(each, manifests, facts) for each in (Customizations(), changed))
        for sample, one, other in zip(alike, before, after, strict=True):
            if (one.health, one.message) != (other.health, other.message):
                yield Disagreement(sample.name, one, other)


def _facts_of(sample: _Sample) -> str:
    return json.dumps(sample.facts, sort_keys=True)


def _changed(of: GroupKind, given: Customizations, alternative: Alternative) -> Customizations:
    if alternative.script:
        text = read_text(alternative.script)
        return with_script(text, {of}, open_libs=alternative.open_libs, where=named(alternative.script))
    if alternative.profile:
        find_rule(str(of) if of.group else f"core/{of.kind}", given, alternative.profile)
        return with_profile(given, alternative.profile)
    return given


class _Sample(NamedTuple):
    name: str
    manifest: Manifest
    facts: Mapping[str, Any]


def _samples(of: GroupKind) -> list[_Sample]:
    """List the test objects of the bundled rules for this kind, without duplicates."""
    trees = {"": RULES} | {f"{profile}/": PROFILES / profile for profile in profiles_of(of)}
    found: dict[str, _Sample] = {}
    for prefix, tree in trees.items():
        folder = tree.joinpath(*filter(None, of))
        for sample in _tested(folder, prefix) if (folder / "health_test.yaml").exists() else ():
            if sample.manifest.get("kind") == of.kind:
                found.setdefault(repr((sample.manifest, sample.facts)), sample)
    return list(found.values())


def _tested(folder: Path, prefix: str) -> Iterator[_Sample]:
    suite = collect(folder)
    for case in suite.cases:
        if case.suite == "health" and case.input:
            name = prefix + case.name.replace("testdata/", "").replace(".yaml", "")
            yield _Sample(name, suite.inputs.document(case.folder, case.input), case.facts)


def _name(rule: Rule | None) -> str:
    return called(rule.name) if rule else "no rule"


def _difference(one: Rule | None, other: Rule | None) -> list[str]:
    before, after = (shown(rule).splitlines() if rule else [] for rule in (one, other))
    return list(difflib.unified_diff(before, after, _name(one), _name(other), lineterm=""))


def _hint(one: Rule | None, other: Rule | None, differing: Sequence[Disagreement]) -> str:
    """Warn if a user's check does not report Suspended where the bundled rule does."""
    if one is None or other is None or one.origin is not Origin.BUNDLED or other.origin is not Origin.ARGOCD_CM:
        return ""
    lost = [each for each in differing if each.one.health == Health.SUSPENDED and not each.other.fault]
    lost = [each for each in lost if each.other.health != Health.SUSPENDED]
    if not lost:
        return ""
    return (
        f"AGY404: this check overrides a bundled rule that detects more states: {lost[0].name} is Suspended there, "
        f"and {lost[0].other.health or 'nothing'} here; remove the check, or handle this state in it"
    )
