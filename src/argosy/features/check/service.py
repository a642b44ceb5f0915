"""Checks paths with all rules, and applies fixes.

In: paths, suppressions and a baseline. Out: CheckResult. Never: writes, except a requested baseline or fix; prints.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from argosy.errors import ArgosyError, UserError
from argosy.features.check.file_fix_writer import FixedFinding, UnfixedFinding, apply_fixes
from argosy.features.check.folder_renderer import FolderRenderer
from argosy.features.check.previous_state_rules import list_history_violations
from argosy.features.check.repository_model_builder import RepositoryScanner
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.repository_view import DeclaredEnvironment, RepositoryView
from argosy.gitops.analysis.rules import check_repository
from argosy.gitops.analysis.schema_validation import SchemaValidator
from argosy.gitops.analysis.suppressions_and_baseline import (
    FindingSuppression,
    SuppressedFinding,
    build_baseline,
    filter_findings,
    read_baseline,
)
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress
from argosy.gitops.workspace.manifest_files import find_top_folder, has_notebooks, relative_path

if TYPE_CHECKING:
    from argosy.gitops.delivery_file.delivery_value_types import DeliveryFile
    from argosy.gitops.source.git.refs import Refs

FetchRefs = Callable[[str], "Refs"]


@dataclass(frozen=True)
class CheckResult:
    findings: list[Finding]
    excused: list[SuppressedFinding]
    notes: list[str]  # what was not checked, and why
    applications: int
    objects: int
    fixed: list[FixedFinding] = field(default_factory=list)
    unfixed: list[UnfixedFinding] = field(default_factory=list)
    is_empty: bool = False  # the paths have nothing to check


class CheckRunOptions(NamedTuple):
    """Options of a check, without the paths."""

    profile: str = ""  # a checklist for every Application
    fetch_refs: FetchRefs | None = None  # fetches branches and tags of a repository; None: they are not checked
    is_online: bool = False  # fetch branches and tags from the Git hosts
    base: str = ""  # the ref to compare with; empty: the branch to merge into
    is_interactive: bool = False  # a user gave the paths: outside Git, bases in parent folders are read too
    boundary: str = ""  # real path of a folder outside of which nothing is rendered; empty: the file's working tree


DEFAULT_OPTIONS: Final = CheckRunOptions()
OVERRIDDEN_MESSAGE: Final = "the file was edited, but a kustomization or chart overrides the value; edit it there"


def check_paths(
    paths: Sequence[str],
    *,
    baseline: str = "",
    writes_baseline: bool = False,
    options: CheckRunOptions = DEFAULT_OPTIONS,
    log: ShowProgress,
) -> CheckResult:
    delivery, file = _load_delivery_file(paths[0] if paths else os.curdir)
    checkouts = CheckoutCache(show_progress=log)
    remote_refs = RemoteRefs(options.fetch_refs or (checkouts.fetch_refs if options.is_online else None))
    try:
        scanner = RepositoryScanner(
            paths, FolderRenderer(checkouts), is_typed=options.is_interactive, boundary=options.boundary
        )
        repository = scanner.build_repository(_list_declared_environments(delivery))
        extra_violations = {**repository.external_violations, **list_history_violations(paths, options.base, log=log)}
        repository = replace(
            repository,
            find_missing_ref_reason=remote_refs.find_missing_ref_error,
            profile=options.profile,
            external_violations=extra_violations,
        )
        findings = check_repository(repository)
    finally:
        checkouts.close()
    if baseline == "" and delivery and delivery.check and delivery.check.baseline:
        baseline = relative_path(os.path.join(os.path.dirname(file), delivery.check.baseline))
    if writes_baseline:
        _write_baseline(baseline, findings)
    triage = filter_findings(findings, repository, _list_suppressions(delivery, file), _load_baseline(baseline))
    objects = sum(len(rendering.items) for rendering in repository.renderings)
    notes = [
        *repository.notes,
        *remote_refs.notes,
        *triage.notes,
        *_describe_unknown_kinds(repository),
        *_describe_undeployed_files(repository),
    ]
    applications = len(repository.applications)
    is_empty = not (findings or notes or applications or objects or repository.kustomizations or has_notebooks(paths))
    return CheckResult(triage.remaining, triage.suppressed, notes, applications, objects, is_empty=is_empty)


def fix_and_check_paths(
    paths: Sequence[str], *, baseline: str = "", options: CheckRunOptions = DEFAULT_OPTIONS, log: ShowProgress
) -> CheckResult:
    """Apply the fixes of findings, and check again."""
    fix_result = apply_fixes(check_paths(paths, baseline=baseline, options=options, log=log).findings, paths)
    after = check_paths(paths, baseline=baseline, options=options, log=log)
    remaining_marks = {item.fingerprint for item in after.findings}
    fixed = [item for item in fix_result.fixed if item.finding.fingerprint not in remaining_marks]
    overridden = [
        UnfixedFinding(item.finding, OVERRIDDEN_MESSAGE)
        for item in fix_result.fixed
        if item.finding.fingerprint in remaining_marks
    ]
    return replace(after, fixed=fixed, unfixed=[*fix_result.unfixed, *overridden])


def _load_delivery_file(path: str) -> tuple[DeliveryFile | None, str]:
    """Load argosy.yaml from the checked folder or from the repository root."""
    from argosy.gitops.delivery_file.reader import read_delivery_file

    real = os.path.realpath(path)
    for folder in dict.fromkeys((real if os.path.isdir(real) else os.path.dirname(real), find_top_folder(real))):
        file = os.path.join(folder, "argosy.yaml")
        if os.path.isfile(file):
            return read_delivery_file(Path(file).read_bytes(), relative_path(file)), file
    return None, ""


def _list_declared_environments(delivery: DeliveryFile | None) -> list[DeclaredEnvironment]:
    if delivery is None:
        return []
    ref = delivery.repository.ref
    return [
        DeclaredEnvironment(
            environment.name, environment.application, environment.namespace, str(environment.sync) == "auto", ref
        )
        for environment in delivery.environments
    ]


def _list_suppressions(delivery: DeliveryFile | None, file: str) -> list[FindingSuppression]:
    entries = delivery.check.suppress if delivery and delivery.check else ()
    folder = os.path.dirname(file)
    return [
        FindingSuppression(
            entry.rule, relative_path(os.path.join(folder, entry.path)) if entry.path else "", entry.reason
        )
        for entry in entries
    ]


def _load_baseline(baseline: str) -> Counter[str]:
    if not baseline:
        return Counter()
    from argosy.kube.objects import read_yaml

    try:
        return read_baseline(read_yaml(Path(baseline).read_bytes(), where=baseline), baseline)
    except FileNotFoundError:
        advice = "create it with --write-baseline, or correct the path"
        raise UserError(f"baseline not found; {advice}", where=baseline) from None


def _write_baseline(baseline: str, findings: list[Finding]) -> None:
    from argosy.kube.objects import dump_yaml

    if not baseline:
        raise UserError("requires --baseline FILE", where="--write-baseline")
    Path(baseline).write_text(dump_yaml(build_baseline(findings)))


def _describe_undeployed_files(repository: RepositoryView) -> list[str]:
    """Note files outside Applications and kustomizations, which are only checked for secrets and settings."""
    files = Counter(
        item.find_location().file for item in repository.unrendered_manifests if item.key.group != "argoproj.io"
    )
    if not files:
        return []
    names_text = ", ".join(sorted(files)[:3]) + (", …" if len(files) > 3 else "")
    return [
        f"{names_text}: not deployed here, so only checked for secrets and settings; to check a file, pass its path"
    ]


def _describe_unknown_kinds(repository: RepositoryView) -> list[str]:
    """Note kinds without a known schema, once each."""
    schemas = SchemaValidator(repository.definitions)
    counts = Counter(
        f"{item.key.kind} ({item.manifest.get('apiVersion')})"
        for _, item in repository.list_objects()
        if not schemas.has_schema(item.manifest)
    )
    if not counts:
        return []
    kinds_text = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    return [
        f"no schema found for {kinds_text}: their fields were not checked; keep the CustomResourceDefinitions in Git"
    ]


class RemoteRefs:
    """Refs of remote repositories; an unreachable repository is tried and noted once."""

    def __init__(self, fetch_refs: FetchRefs | None) -> None:
        self._fetch_refs = fetch_refs
        self._unreachable_urls: set[str] = set()
        self.notes: list[str] = []

    def find_missing_ref_error(self, url: str, ref: str) -> str:
        from argosy.gitops.source.git.refs import SHORT_COMMIT_ID

        if self._fetch_refs is None or url in self._unreachable_urls or SHORT_COMMIT_ID.fullmatch(ref):
            return ""  # a commit is not listed
        try:
            refs = self._fetch_refs(url)
        except ArgosyError as error:
            self._unreachable_urls.add(url)
            self.notes.append(f"branches and tags were not checked: {error}")
            return ""
        return "" if refs.find_commit(ref) else refs.unknown_ref_error(ref, "", url).message
