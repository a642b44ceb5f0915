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
from argosy.features.check.rendering import Builder
from argosy.features.check.repository_model import Survey
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.repository import Fault, Rendering, Repository
from argosy.gitops.analysis.violation import Place, Severity
from argosy.gitops.application import Application, read_source
from argosy.gitops.workspace.checkouts import Checkouts
from argosy.gitops.workspace.manifest_files import shown, top_of
from argosy.kube.objects import Manifest
from argosy.testing.manifests import Manifests

if TYPE_CHECKING:
    from argosy.features.check.service import Checked


class Repo:
    """Read on first use and cached: changes of files during the test run are not seen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not root.is_dir():
            raise UserError("is not a folder; correct argosy_path or --argosy-path", where=str(root))
        self._checkouts = Checkouts(talk=lambda _: None)
        self._builder = Builder(self._checkouts)

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
        written = self.rendering(name).written
        assert written is not None
        return written.item.manifest

    def render(self, what: str) -> Manifests:
        """Render an Application by its name, or a folder of the repository by its path."""
        __tracebackhide__ = True
        if what in self._named or not (self.root / what).is_dir():
            found = self.rendering(what)
            _raise(found.fault, what)
            return Manifests(found.items, source=what, namespace=found.namespace)
        folder = os.path.realpath(self.root / what)
        top = top_of(folder, [str(self.root)])
        inner = os.path.relpath(folder, top)
        app = Application(name=os.path.basename(folder))
        built = self._builder.build(top, app, [read_source({"path": inner})], Place(shown(folder)))
        _raise(built.fault, what)
        return Manifests(built.items, source=what)

    def findings(self, at_least: str = "warning", *, application: str = "") -> list[str]:
        """Findings of `argosy check`, one line each; empty if there are none."""
        least = Severity(at_least).weight
        return [
            told(each)
            for each in self.checked.findings
            if each.severity.weight >= least and (not application or self.is_about(each, application))
        ]

    def is_about(self, finding: Finding, application: str) -> bool:
        """True if the finding is in a file that defines this Application or that it renders."""
        found = self.rendering(application)
        files = {item.at().file for item in found.items} | {found.written.at().file if found.written else ""}
        file = finding.place.file
        return file in files or (bool(found.folder) and file.startswith(f"{found.folder}/"))

    @cached_property
    def checked(self) -> Checked:
        from argosy.features.check.service import check

        return check([str(self.root)], talk=lambda _: None)

    def rendering(self, name: str) -> Rendering:
        __tracebackhide__ = True
        if name not in self._named:
            near = difflib.get_close_matches(name, self._named, n=1)
            known = ", ".join(self._named) or "none"
            hint = f"did you mean {near[0]}?" if near else f"Applications: {known}"
            raise UserError(f"there is no Application or folder {name}; {hint}", where=str(self.root))
        return self._named[name]

    def homes(self, name: str) -> dict[str, Path]:
        """The repository URLs of an Application, each with the local folder that replaces it."""
        __tracebackhide__ = True
        found = self.rendering(name)
        if found.written is None or not found.folder:
            return {}
        sources = [each for each in found.written.app.sources if each.path or not each.alias]
        folder = Path(os.path.realpath(found.folder))
        home = folder.parents[len(Path(sources[0].path).parts) - 1] if Path(sources[0].path).parts else folder
        return {each.repo_url: home for each in found.written.app.sources}

    @cached_property
    def _surveyed(self) -> Repository:
        return Survey([str(self.root)], self._builder).repository()

    @cached_property
    def _named(self) -> dict[str, Rendering]:
        return {each.written.name: each for each in self._surveyed.renderings if each.written}

    def close(self) -> None:
        self._checkouts.close()


def told(finding: Finding) -> str:
    sight = finding.sight
    return f"{sight.place}: {finding.rule.id} {finding.severity}: {sight.message}; {sight.fix}"


def _raise(fault: Fault | None, what: str) -> None:
    __tracebackhide__ = True
    if fault is not None:
        raise UserError(f"does not render: {fault.place}: {fault.message}; {fault.fix}", where=what)
