"""The repository under test: its Applications, their manifests, and the findings of `argosy check`.

In: a folder. Out: Repo. Never: renders an unchanged source twice; connects to a cluster.
"""

from __future__ import annotations

import difflib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.errors import UserError
from argosy.features.check.folder_renderer import FolderRenderer
from argosy.features.check.repository_model_builder import RepositoryScanner
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.repository_view import RenderedSource, RenderFailure, RepositoryView
from argosy.gitops.analysis.rule_violation import FileLocation, Severity
from argosy.gitops.application import Application, read_source
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache
from argosy.gitops.workspace.manifest_files import find_top_folder, relative_path
from argosy.kube.objects import Manifest
from argosy.testing.rendered_manifest_lookup import Manifests

if TYPE_CHECKING:
    from argosy.features.check.service import CheckResult


class Repo:
    """Read on first use and cached: changes of files during the test run are not seen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not root.is_dir():
            raise UserError("is not a folder; correct argosy_path or --argosy-path", where=str(root))
        self._checkouts = CheckoutCache(show_progress=lambda _: None)
        self._builder = FolderRenderer(self._checkouts)

    def __repr__(self) -> str:
        return f"<repository {self.root}>"

    @property
    def applications(self) -> list[str]:
        """Names of all Applications in the repository, including those that other Applications render."""
        return list(self._named)

    @property
    def notes(self) -> list[str]:
        """Files and sources that could not be checked, with the reason."""
        return list(self._surveyed.notes)

    def application(self, name: str) -> Manifest:
        """The manifest of an Application as it is in the repository."""
        __tracebackhide__ = True
        written = self.rendering(name).declaration
        assert written is not None
        return written.item.manifest

    def render(self, what: str) -> Manifests:
        """Render an Application by its name, or a folder of the repository by its path."""
        __tracebackhide__ = True
        if what in self._named or not (self.root / what).is_dir():
            rendering = self.rendering(what)
            _raise_if_failed(rendering.failure, what)
            return Manifests(rendering.items, source=what, namespace=rendering.namespace)
        folder = os.path.realpath(self.root / what)
        top = find_top_folder(folder, [str(self.root)])
        inner = os.path.relpath(folder, top)
        app = Application(name=os.path.basename(folder))
        built = self._builder.render_sources(
            top, app, [read_source({"path": inner})], FileLocation(relative_path(folder))
        )
        _raise_if_failed(built.fault, what)
        return Manifests(built.items, source=what)

    def findings(self, at_least: str = "warning", *, application: str = "") -> list[str]:
        """Findings of `argosy check`, one line each; empty if there are none."""
        min_weight = Severity(at_least).weight
        return [
            format_finding(finding)
            for finding in self.checked.findings
            if finding.severity.weight >= min_weight and (not application or self.is_about(finding, application))
        ]

    def is_about(self, finding: Finding, application: str) -> bool:
        """True if the finding is in a file that defines this Application or that it renders."""
        rendering = self.rendering(application)
        files = {item.find_location().file for item in rendering.items} | {
            rendering.declaration.find_location().file if rendering.declaration else ""
        }
        file = finding.location.file
        return file in files or (bool(rendering.folder) and file.startswith(f"{rendering.folder}/"))

    @cached_property
    def checked(self) -> CheckResult:
        from argosy.features.check.service import check_paths

        return check_paths([str(self.root)], log=lambda _: None)

    def rendering(self, name: str) -> RenderedSource:
        __tracebackhide__ = True
        if name not in self._named:
            close_matches = difflib.get_close_matches(name, self._named, n=1)
            names = ", ".join(self._named) or "none"
            hint = f"did you mean {close_matches[0]}?" if close_matches else f"Applications: {names}"
            raise UserError(f"there is no Application or folder {name}; {hint}", where=str(self.root))
        return self._named[name]

    def homes(self, name: str) -> dict[str, Path]:
        """The repository URLs of an Application, each with the local folder that replaces it."""
        __tracebackhide__ = True
        rendering = self.rendering(name)
        if rendering.declaration is None or not rendering.folder:
            return {}
        sources = [source for source in rendering.declaration.app.sources if source.path or not source.alias]
        folder = Path(os.path.realpath(rendering.folder))
        repository_folder = (
            folder.parents[len(Path(sources[0].path).parts) - 1] if Path(sources[0].path).parts else folder
        )
        return {source.repo_url: repository_folder for source in rendering.declaration.app.sources}

    @cached_property
    def _surveyed(self) -> RepositoryView:
        return RepositoryScanner([str(self.root)], self._builder).build_repository()

    @cached_property
    def _named(self) -> dict[str, RenderedSource]:
        return {
            rendering.declaration.name: rendering for rendering in self._surveyed.renderings if rendering.declaration
        }

    def close(self) -> None:
        self._checkouts.close()


def format_finding(finding: Finding) -> str:
    violation = finding.violation
    return f"{violation.location}: {finding.rule.id} {finding.severity}: {violation.message}; {violation.fix}"


def _raise_if_failed(fault: RenderFailure | None, what: str) -> None:
    __tracebackhide__ = True
    if fault is not None:
        raise UserError(f"does not render: {fault.location}: {fault.message}; {fault.fix}", where=what)
