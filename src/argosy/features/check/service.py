"""Checks paths with all rules, and applies fixes.

In: paths, suppressions and a baseline. Out: CheckResult. Never: writes, except a requested baseline or fix; prints.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from argosy.errors import UserError
from argosy.features.check.fixes import Mended, Unmended, mend
from argosy.features.check.previous_state import told_by_history
from argosy.features.check.remote_refs import Hosts, RefsOf
from argosy.features.check.rendering import Builder
from argosy.features.check.repository_model import Survey
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.repository import Planned, Repository
from argosy.gitops.analysis.rules import look_at
from argosy.gitops.analysis.schema_validation import Schemas
from argosy.gitops.analysis.suppressions import Excused, Suppression, baseline_of, judge, read_baseline
from argosy.gitops.workspace.checkouts import Checkouts, Talk
from argosy.gitops.workspace.manifest_files import holds_notebooks, shown, top_of

if TYPE_CHECKING:
    from argosy.gitops.delivery_file.values import Delivery


@dataclass(frozen=True)
class Checked:
    findings: list[Finding]
    excused: list[Excused]
    notes: list[str]  # what was not checked, and why
    applications: int
    objects: int
    mended: list[Mended] = field(default_factory=list)
    unmended: list[Unmended] = field(default_factory=list)
    is_empty: bool = False  # the paths have nothing to check


class Manner(NamedTuple):
    """Options of a check, without the paths."""

    profile: str = ""  # a checklist for every Application
    refs_of: RefsOf | None = None  # fetches branches and tags of a repository; None: they are not checked
    is_online: bool = False  # fetch branches and tags from the Git hosts
    base: str = ""  # the ref to compare with; empty: the branch to merge into
    is_typed: bool = False  # a user gave the paths: outside Git, bases in parent folders are read too
    boundary: str = ""  # real path of a folder outside of which nothing is rendered; empty: see top_of


PLAIN: Final = Manner()
OVERRIDDEN: Final = "the file was edited, but a kustomization or chart overrides the value; edit it there"


def check(
    paths: Sequence[str], *, baseline: str = "", is_writing: bool = False, manner: Manner = PLAIN, talk: Talk
) -> Checked:
    delivery, file = _delivery(paths[0] if paths else os.curdir)
    checkouts = Checkouts(talk=talk)
    hosts = Hosts(manner.refs_of or (checkouts.refs if manner.is_online else None))
    try:
        survey = Survey(paths, Builder(checkouts), is_typed=manner.is_typed, boundary=manner.boundary)
        repository = survey.repository(_planned(delivery))
        told = {**repository.told, **told_by_history(paths, manner.base, talk=talk)}
        repository = replace(repository, absent=hosts.absent, profile=manner.profile, told=told)
        findings = look_at(repository)
    finally:
        checkouts.close()
    if baseline == "" and delivery and delivery.check and delivery.check.baseline:
        baseline = shown(os.path.join(os.path.dirname(file), delivery.check.baseline))
    if is_writing:
        _write(baseline, findings)
    judged = judge(findings, repository, _suppressions(delivery, file), _known(baseline))
    objects = sum(len(each.items) for each in repository.renderings)
    notes = [*repository.notes, *hosts.notes, *judged.notes, *_unknown_kinds(repository), *_undeployed(repository)]
    applications = len(repository.applications)
    is_empty = not (findings or notes or applications or objects or repository.kustomizations or holds_notebooks(paths))
    return Checked(judged.left, judged.excused, notes, applications, objects, is_empty=is_empty)


def fix(paths: Sequence[str], *, baseline: str = "", manner: Manner = PLAIN, talk: Talk) -> Checked:
    """Apply the fixes of findings, and check again."""
    mending = mend(check(paths, baseline=baseline, manner=manner, talk=talk).findings, paths)
    after = check(paths, baseline=baseline, manner=manner, talk=talk)
    left = {each.mark for each in after.findings}
    done = [each for each in mending.done if each.finding.mark not in left]
    undone = [Unmended(each.finding, OVERRIDDEN) for each in mending.done if each.finding.mark in left]
    return replace(after, mended=done, unmended=[*mending.left, *undone])


def _delivery(path: str) -> tuple[Delivery | None, str]:
    """Load argosy.yaml from the checked folder or from the repository root."""
    from argosy.gitops.delivery_file.reader import read_delivery

    real = os.path.realpath(path)
    for folder in dict.fromkeys((real if os.path.isdir(real) else os.path.dirname(real), top_of(real))):
        file = os.path.join(folder, "argosy.yaml")
        if os.path.isfile(file):
            return read_delivery(Path(file).read_bytes(), shown(file)), file
    return None, ""


def _planned(delivery: Delivery | None) -> list[Planned]:
    if delivery is None:
        return []
    ref = delivery.repository.ref
    return [
        Planned(each.name, each.application, each.namespace, str(each.sync) == "auto", ref)
        for each in delivery.environments
    ]


def _suppressions(delivery: Delivery | None, file: str) -> list[Suppression]:
    given = delivery.check.suppress if delivery and delivery.check else ()
    folder = os.path.dirname(file)
    return [
        Suppression(each.rule, shown(os.path.join(folder, each.path)) if each.path else "", each.reason)
        for each in given
    ]


def _known(baseline: str) -> Counter[str]:
    if not baseline:
        return Counter()
    from argosy.kube.objects import load

    try:
        return read_baseline(load(Path(baseline).read_bytes(), where=baseline), baseline)
    except FileNotFoundError:
        advice = "create it with --write-baseline, or correct the path"
        raise UserError(f"baseline not found; {advice}", where=baseline) from None


def _write(baseline: str, findings: list[Finding]) -> None:
    from argosy.kube.objects import dump

    if not baseline:
        raise UserError("requires --baseline FILE", where="--write-baseline")
    Path(baseline).write_text(dump(baseline_of(findings)))


def _undeployed(repository: Repository) -> list[str]:
    """Note files outside Applications and kustomizations, which are only checked for secrets and settings."""
    files = Counter(item.at().file for item in repository.loose if item.key.group != "argoproj.io")
    if not files:
        return []
    named = ", ".join(sorted(files)[:3]) + (", …" if len(files) > 3 else "")
    return [f"{named}: not deployed here, so only checked for secrets and settings; to check a file, pass its path"]


def _unknown_kinds(repository: Repository) -> list[str]:
    """Note kinds without a known schema, once each."""
    schemas = Schemas(repository.definitions)
    counts = Counter(
        f"{item.key.kind} ({item.manifest.get('apiVersion')})"
        for _, item in repository.objects()
        if not schemas.knows(item.manifest)
    )
    if not counts:
        return []
    named = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    return [f"no schema found for {named}: their fields were not checked; keep the CustomResourceDefinitions in Git"]
