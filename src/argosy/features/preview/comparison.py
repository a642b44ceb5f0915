"""Compares two sides of a repository per Application.

In: both sides. Out: RepositoryComparison: changed Applications with their changed objects. Never: renders an
Application whose files are equal on both sides, unless it may define further Applications; writes.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError, UserError
from argosy.features.preview.applications_of_both_sides import (
    APPLICATION,
    ApplicationFinder,
    SideApplication,
    SideFileIndex,
    match_applications,
)
from argosy.features.preview.comparison_side_renderer import SideRender, SideRenderer
from argosy.features.preview.revision_range_trees import ComparisonSides, PreviewRepository
from argosy.features.preview.source_input_files import add_parent_folders, may_be_affected
from argosy.gitops.analysis.environment_names import detect_environment
from argosy.gitops.analysis.lost_generated_applications import LostApplications, find_lost_applications
from argosy.gitops.analysis.object_changes import ApplicationChange, compare_objects
from argosy.gitops.analysis.repository_view import ApplicationDeclaration, ManifestWithLocations
from argosy.gitops.analysis.rules.breaking_changes import find_lost_application_violations
from argosy.gitops.application import Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress

_MAX_LISTED_NAMES: Final = 3


@dataclass
class RepositoryComparison:
    """Both sides, and the changes between them."""

    sides: ComparisonSides
    touched: list[ApplicationChange]
    applications: list[SideApplication]  # after
    notes: list[str] = field(default_factory=list)
    lost: list[LostApplications] = field(default_factory=list)  # Applications that ApplicationSets no longer generate
    rendered: int = 0
    environments: Mapping[str, str] = field(default_factory=dict)  # application → environment, by argosy.yaml


def compare_sides(
    repository: PreviewRepository, sides: ComparisonSides, names: Sequence[str] = (), *, log: ShowProgress
) -> RepositoryComparison:
    comparison = RepositoryComparison(sides, [], [])
    if not sides.changed and not names:
        return comparison
    checkouts = CheckoutCache(show_progress=log)
    try:
        _SideComparisonRun(repository, sides, names, checkouts, comparison).run()
    finally:
        checkouts.close()
    return comparison


class _SideComparisonRun:
    def __init__(
        self,
        repository: PreviewRepository,
        sides: ComparisonSides,
        names: Sequence[str],
        checkouts: CheckoutCache,
        comparison: RepositoryComparison,
    ) -> None:
        self.sides, self.names, self.comparison = sides, names, comparison
        self.renderer = SideRenderer(repository, checkouts)
        self.index = SideFileIndex(sides, repository)
        self.before = ApplicationFinder(self.index, "base", self.renderer)
        self.after = ApplicationFinder(self.index, "head", self.renderer, self.before.source_reach)
        self.changed_paths = add_parent_folders(sides.changed)
        # Paths that may define further Applications.
        self.defining_paths = add_parent_folders(self.index.candidates["head"])
        self.read_files: set[str] = set()  # files of the head that renders read

    def run(self) -> None:
        before, after = self.before.list_applications(), self.after.list_applications()
        self.comparison.environments = self._read_environments()
        known_keys = {application.key for application in (*before, *after)}
        pairs = match_applications(before, after)
        folders: set[str] = set()
        while pairs:
            old, new = pairs.pop(0)
            self.comparison.applications += [new] if new else []
            folders |= {
                _normalize_path(source)
                for application in (old, new)
                if application
                for source in application.app.sources
            }
            render_results = self._compare_application(old, new)
            children = [
                [
                    application
                    for item in (side.items if side else ())
                    if item.key not in known_keys and (application := finder.read_declaration(item))
                ]
                for side, finder in zip(render_results, (self.before, self.after), strict=True)
            ]
            known_keys |= {application.key for side in children for application in side}
            pairs += match_applications(*children)
        self._check_names()
        self.comparison.touched = _add_files_to_duplicate_names(self.comparison.touched)
        if not self.names:
            self._compare_folders_without_application(folders)
            self._note_undeployed_files()
        self._compare_application_sets()
        self.comparison.notes += [*self.before.notes, *self.after.notes]

    def _compare_application_sets(self) -> None:
        if not self.after.application_sets:
            return
        names_text = ", ".join(sorted(item.key.name for item in self.after.application_sets)[:_MAX_LISTED_NAMES])
        self.comparison.notes.append(
            f"ApplicationSets are not expanded ({names_text}): their Applications are not compared"
        )
        sides = [
            [(item, self._list_generator_folders(item, finder)) for item in finder.application_sets]
            for finder in (self.before, self.after)
        ]
        self.comparison.lost = find_lost_applications(*sides)
        violations = find_lost_application_violations(self.comparison.lost)
        self.comparison.notes += [violation.message for violation in violations]

    def _list_generator_folders(self, item: ManifestWithLocations, finder: ApplicationFinder) -> frozenset[str]:
        """List the side's folders for Git generators; empty if the set uses another repository or revision."""
        git_generators = [
            generator["git"] for generator in item.get_list("spec", "generators") if _is_git_generator(generator)
        ]
        if not git_generators:
            return frozenset()
        refs = ("", "HEAD", *finder.side.branches)
        if not all(
            self.renderer.is_own_repository(str(generator.get("repoURL"))) and generator.get("revision", "") in refs
            for generator in git_generators
        ):
            return frozenset()
        return self.index.list_all_folders(finder.side_name)

    # -- Applications --

    def _compare_application(
        self, before: SideApplication | None, after: SideApplication | None
    ) -> tuple[SideRender | None, SideRender | None]:
        application = after or before
        assert application is not None
        is_selected = not self.names or application.app.name in self.names
        is_same = before is not None and after is not None and _has_equal_manifest(before, after)
        if is_same and not self._may_differ(application):
            return None, None
        self.comparison.rendered += 1
        new = self.renderer.render_application(self.sides.head, after.app, after.file, after.place) if after else None
        if new is not None:
            self._add_read_files(new)
        if (
            is_same
            and new is not None
            and self.renderer.has_same_inputs_on_side(new, application.app, self.sides.base, application.file)
        ):
            return new, new
        if is_same and new is not None and new.is_external:
            return None, None  # an external source, which this repository does not change
        old = (
            self.renderer.render_application(self.sides.base, before.app, before.file, before.place) if before else None
        )
        if is_selected and (fault := _find_unchanged_fault(old, new)):
            self.comparison.notes.append(f"{application.app.name}: cannot be rendered on either side: {fault}")
        elif is_selected:
            self._compare_renders(application.app.name, before, after, old, new)
        return old, new

    def _add_read_files(self, render: SideRender) -> None:
        self.read_files |= {
            render_input.path
            for _, _, render_result in render.renders
            for render_input in render_result.inputs
            if not render_input.scope
        }

    def _may_differ(self, application: SideApplication) -> bool:
        """True if files that it may read changed, or may define further Applications."""
        for source in application.app.sources:
            if source.chart:
                continue
            location = self.renderer.find_location(
                self.sides.head, source, application.file, application.app.name, SideRender()
            )
            if location is None:
                return True
            if location.ref:
                continue  # it tracks another ref, and the Application is unchanged
            reached = self.after.source_reach.find_reach(
                posixpath.join(location.root_folder, _normalize_path(source)), source
            )
            if may_be_affected(reached, self.changed_paths) or may_be_affected(reached, self.defining_paths):
                return True
        return False

    def _compare_renders(
        self,
        name: str,
        before: SideApplication | None,
        after: SideApplication | None,
        old: SideRender | None,
        new: SideRender | None,
    ) -> None:
        application = after or before
        for render_result in (old, new):
            if render_result is not None and render_result.note and render_result.note not in self.comparison.notes:
                self.comparison.notes.append(render_result.note)
        if any(
            render_result is not None and (render_result.note or render_result.is_external)
            for render_result in (old, new)
        ):
            return
        assert application is not None
        apps = (before.app if before else None, after.app if after else None)
        old_namespace, new_namespace = (app.destination.namespace if app else "" for app in apps)
        self._add_change(
            name,
            old or SideRender(),
            new or SideRender(),
            (old_namespace, new_namespace),
            ApplicationChange(name, *apps, file=application.file),
            application.declaration,
        )

    def _add_change(
        self,
        name: str,
        old: SideRender,
        new: SideRender,
        namespaces: tuple[str, str],
        touched: ApplicationChange,
        declaration: ApplicationDeclaration | None,
    ) -> None:
        is_broken = bool(old.fault or new.fault)
        is_moved = _has_new_cluster(touched)
        object_changes, unchanged = (
            ([], []) if is_broken else compare_objects([] if is_moved else old.items, new.items, namespaces)
        )
        environment_name = (
            find_environment_name(declaration, self.comparison.environments)
            if declaration
            else detect_environment(name)
        )
        refs = [location.ref for _, location, _ in new.renders if location.ref]
        notes = [f"tracks {refs[0]}, which this change does not affect"] if refs and object_changes else []
        notes += ["moves to another cluster; its objects in the old cluster stay"] if is_moved else []
        self.comparison.touched.append(
            replace(
                touched,
                changes=tuple(object_changes),
                unchanged=tuple(unchanged),
                render_failure=new.fault,
                render_failure_before=old.fault,
                environment=environment_name,
                notes=tuple(notes),
            )
        )

    def _check_names(self) -> None:
        known_names = {item.app.name for item in self.comparison.applications} | {
            item.name for item in self.comparison.touched
        }
        for name in self.names:
            if name not in known_names:
                import difflib

                suggestions = difflib.get_close_matches(name, known_names, n=1)
                hint = f"did you mean {suggestions[0]}?" if suggestions else "see argosy check, or git branch for a ref"
                hint = f"for a folder, use --repo {name}" if os.path.isdir(name) else hint
                raise UserError(f"not a ref and not an Application of this repository; {hint}", where=name)

    # -- folders without an Application --

    def _compare_folders_without_application(self, application_folders: set[str]) -> None:
        all_folders = self.before.reach_by_folder.keys() | self.after.reach_by_folder.keys()
        above = {posixpath.dirname(application.file) for application in self.comparison.applications}
        homes = {posixpath.join(home, path) for path in application_folders for home in above}
        for folder in sorted(all_folders):
            finders = [finder for finder in (self.before, self.after) if folder in finder.reach_by_folder]
            if (
                folder in application_folders
                or folder in homes
                or not any(may_be_affected(finder.reach_by_folder[folder], self.changed_paths) for finder in finders)
            ):
                continue
            if not all(finder.filter_root_folders([folder]) for finder in finders):
                continue
            old = self.before.render_folder(folder) if self.before in finders else SideRender()
            new = self.after.render_folder(folder) if self.after in finders else SideRender()
            self._add_read_files(new)
            if any(item.group_kind == APPLICATION for item in (*old.items, *new.items)):
                continue  # compared as Applications
            self.comparison.rendered += 1
            self.comparison.notes += [render.note for render in (old, new) if render.note]
            touched = ApplicationChange(folder or ".", None, None, is_folder=True)
            self._add_change(folder, old, new, ("", ""), touched, None)

    def _note_undeployed_files(self) -> None:
        """Note changed manifest files that no Application or kustomization reads."""
        if any(item.render_failure for item in self.comparison.touched):
            return  # the files of the failed render are unknown
        undeployed = [
            path
            for path, item in self.sides.changed.items()
            if item.exists_after
            and path.endswith((".yaml", ".yml"))
            and not any(part.startswith(".") for part in path.split("/"))
            and path not in self.read_files
            and path not in self.index.candidates["head"]
            and b"kind:" in _read_bytes_or_empty(self.sides.head.tree, path)
        ]
        if undeployed:
            names_text = ", ".join(sorted(undeployed)[:_MAX_LISTED_NAMES]) + (
                ", …" if len(undeployed) > _MAX_LISTED_NAMES else ""
            )
            self.comparison.notes.append(f"{names_text}: changed, but not deployed by any Application here")

    def _read_environments(self) -> dict[str, str]:
        text = _read_bytes_or_empty(self.sides.head.tree, "argosy.yaml")
        if not text:
            return {}
        from argosy.gitops.delivery_file.reader import read_delivery_file

        try:
            delivery = read_delivery_file(text, "argosy.yaml")
        except ArgosyError:
            return {}  # argosy check reports it
        return {
            declared.application: detect_environment(declared.name) or declared.name
            for declared in delivery.environments
        }


def _has_new_cluster(touched: ApplicationChange) -> bool:
    """True if the destination cluster changed; a changed namespace shows in the objects' keys."""
    if touched.before is None or touched.after is None:
        return False
    old, new = touched.before.destination.with_in_cluster_alias, touched.after.destination.with_in_cluster_alias
    return (old.server, old.name) != (new.server, new.name)


def _find_unchanged_fault(old: SideRender | None, new: SideRender | None) -> str:
    """Return the fault that both sides have, so that it is not reported as a change."""
    faults = [drawn.fault.message for drawn in (old, new) if drawn and drawn.fault]
    return faults[0] if len(faults) == 2 and faults[0] == faults[1] else ""


def _add_files_to_duplicate_names(touched: list[ApplicationChange]) -> list[ApplicationChange]:
    """Add the file to the name of Applications that share a name, as in a repository of examples."""
    counts = Counter(change.name for change in touched)
    return [
        replace(change, name=f"{change.name} ({change.file})") if counts[change.name] > 1 else change
        for change in touched
    ]


def _is_git_generator(generator: object) -> bool:
    return isinstance(generator, dict) and isinstance(generator.get("git"), dict)


def _read_bytes_or_empty(tree: FileTree, path: str) -> bytes:
    try:
        return tree.read_file(path)
    except ArgosyError:
        return b""


def _has_equal_manifest(before: SideApplication, after: SideApplication) -> bool:
    """True if file and manifest are equal."""
    return before.file == after.file and before.declaration.item.manifest == after.declaration.item.manifest


def _normalize_path(source: Source) -> str:
    path = posixpath.normpath(source.path or ".")
    return "" if path == "." else path


def find_environment_name(declaration: ApplicationDeclaration, declared: Mapping[str, str]) -> str:
    if declaration.name in declared:
        return declared[declaration.name]
    labels = declaration.item.get_map("metadata", "labels")
    label_values = [str(labels.get(name, "")) for name in ("environment", "env")]
    paths = [posixpath.basename(_normalize_path(source)) for source in declaration.app.sources]
    return detect_environment(*label_values, declaration.name, declaration.app.destination.namespace, *paths)
