"""Collects Applications as pytest items, for example `apps/dev.yaml::llmops-dev::render`.

In: files that pytest collects, a Workshop. Out: items, with a message for each failure. Never: drops a finding that
belongs to no Application; it fails the file that it is in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from argosy.errors import ArgosyError
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.rule_violation import Severity
from argosy.testing.session_resources import Workshop
from argosy.testing.user_repository_renders import Repo, format_finding

SCHEMAS: Final = "AGY15"  # prefix of the rules about unknown fields
RENDER: Final = ("AGY101", "AGY102")  # reported by the `render` item


def build_file_collector(path: Path, parent: pytest.Collector, shop: Workshop) -> pytest.Collector | None:
    if not path.is_relative_to(shop.repo.root):
        return None
    names = [name for name in shop.repo.applications if _find_app_file(shop.repo, name) == path]
    other_findings = [
        finding
        for finding in _list_failing_findings(shop.repo)
        if _path(finding) == path and not _list_owning_apps(shop.repo, finding)
    ]
    if not names and not other_findings:
        return None
    collector: GitOpsFile = GitOpsFile.from_parent(parent, path=path)
    collector.shop, collector.names, collector.rest = shop, names, other_findings
    return collector


class GitOpsFile(pytest.File):
    shop: Workshop
    names: list[str]
    rest: list[Finding]

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        for name in self.names:
            node: ApplicationNode = ApplicationNode.from_parent(self, name=name)
            node.shop = self.shop
            yield node
        if self.rest:
            yield _item(self, "policy", lambda: _raise_if_any([format_finding(finding) for finding in self.rest]))


class ApplicationNode(pytest.Collector):
    shop: Workshop

    def collect(self) -> Iterator[pytest.Item]:
        repo = self.shop.repo
        yield _item(self, "render", lambda: repo.render(self.name))
        yield _item(self, "schema", lambda: self._check_findings(is_schema=True))
        yield _item(self, "policy", lambda: self._check_findings(is_schema=False))
        if self.config.getoption("--argosy-sync"):
            yield _item(self, "sync", self._sync)

    def _check_findings(self, *, is_schema: bool) -> None:
        _raise_if_any(self._findings(is_schema=is_schema))
        try:
            self.shop.repo.render(self.name)
        except ArgosyError:
            pytest.skip("the Application does not render, so there is nothing to check")

    def _findings(self, *, is_schema: bool) -> list[str]:
        repo = self.shop.repo
        return [
            format_finding(finding)
            for finding in _list_failing_findings(repo)
            if finding.rule.id.startswith(SCHEMAS) is is_schema
            and finding.rule.id not in RENDER
            and repo.is_about(finding, self.name)
        ]

    def _sync(self) -> None:
        factory: pytest.TempPathFactory = self.config._tmp_path_factory  # type: ignore[attr-defined]
        sandbox = self.shop.sandbox(factory.mktemp("argosy"))
        try:
            sandbox.deliver(self.name)
        finally:
            sandbox.close()


class Unsound(Exception):
    """The failures of an item, one per line."""


class GitOpsItem(pytest.Item):
    act: Callable[[], object]

    def runtest(self) -> None:
        self.act()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Unsound | ArgosyError | AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        owner = self.parent.name if isinstance(self.parent, ApplicationNode) else self.path.name
        return self.path, None, f"{owner} {self.name}"


def _item(parent: pytest.Collector, name: str, act: Callable[[], object]) -> GitOpsItem:
    item: GitOpsItem = GitOpsItem.from_parent(parent, name=name)
    item.act = act
    return item


def _raise_if_any(lines: list[str]) -> None:
    if lines:
        raise Unsound("\n".join(lines))


def _list_failing_findings(repo: Repo) -> list[Finding]:
    min_weight = Severity.WARNING.weight
    return [finding for finding in repo.checked.findings if finding.severity.weight >= min_weight]


def _list_owning_apps(repo: Repo, finding: Finding) -> list[str]:
    return [name for name in repo.applications if repo.is_about(finding, name)]


def _find_app_file(repo: Repo, name: str) -> Path | None:
    written = repo.rendering(name).declaration
    return Path(os.path.realpath(written.find_location().file)) if written else None


def _path(finding: Finding) -> Path:
    return Path(os.path.realpath(finding.location.file))
