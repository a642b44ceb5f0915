"""Reads the environments of a repository at a commit: rendered manifests, input files and releases.

In: a repository. Out: RepositorySnapshot. Never: reads the working tree: uncommitted files cannot be promoted.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.errors import ArgosyError, LimitError, TransientError, UserError
from argosy.features.promote.classified_manifest_fields import (
    PROMOTED_KINDS,
    VERSION_KINDS,
    EnvironmentContents,
    NameDecoration,
    Release,
    read_contents,
)
from argosy.features.promote.file_edits import OverlayFile, find_overlay_file
from argosy.features.promote.promotion_changes import PromotionChanges, compute_changes
from argosy.features.promote.promotion_log_trailers import (
    COMMIT_MARK,
    RELEASE_CHANGING_ACTIONS,
    PromotionLogEntry,
    find_latest,
    read_entries,
)
from argosy.features.promote.promotion_pipeline import (
    PromotionPipeline,
    build_declared_pipeline,
    describe_undeployed_folder,
    infer_pipeline,
)
from argosy.gitops.application import Application, read_application, read_source
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.delivery_file.delivery_value_types import FILE_NAME, DeliveryEnvironment
from argosy.gitops.render import render
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress
from argosy.gitops.workspace.git_repository import GitRepository, UpstreamState
from argosy.kube.objects import read_yaml_documents

MAX_LISTED_RELEASES: Final = 20  # releases of the first environment
MAX_SCANNED_FILES: Final = 5000  # searched for Applications
MAX_FILE_BYTES: Final = 1 << 20


class NoEnvironments(UserError):
    """The repository has no argosy.yaml and no Applications of known environments."""


class EditedTree:
    """A file tree with some files replaced. Implements `FileTree`."""

    def __init__(self, tree: FileTree, files: Mapping[str, bytes]) -> None:
        self._tree, self._files = tree, files

    def find_entry(self, path: str) -> TreeEntry | None:
        entry = self._tree.find_entry(path)
        return entry._replace(id="") if entry and path in self._files else entry

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        return self._tree.list_folder(path)

    def read_file(self, path: str) -> bytes:
        return self._files[path] if path in self._files else self._tree.read_file(path)


@dataclass(frozen=True)
class EnvironmentSnapshot:
    """An environment rendered at a commit."""

    environment: DeliveryEnvironment
    rendered: RenderResult
    contents: EnvironmentContents
    kustomization: OverlayFile | None

    @cached_property
    def inputs(self) -> list[str]:
        """The files that the environment is rendered from."""
        paths = (
            render_input.path
            for render_input, id in self.rendered.inputs.items()
            if not render_input.scope and id not in ("", "folder")
        )
        return sorted({self.environment.path, *paths})


class RepositorySnapshot:
    """All environments at one commit; renders and releases are cached."""

    def __init__(self, repository: GitRepository, talk: ShowProgress) -> None:
        self.repository = repository
        self.head = repository.get_head()
        self._checkouts = CheckoutCache(show_progress=talk)
        self._views: dict[tuple[str, str], EnvironmentSnapshot] = {}
        self._releases: dict[tuple[str, str], Release] = {}

    def close(self) -> None:
        self._checkouts.close()

    @cached_property
    def tree(self) -> FileTree:
        return self.repository.open_tree(self.head)

    @cached_property
    def log(self) -> list[PromotionLogEntry]:
        return read_entries(self.repository.list_marked_commits(self.head, COMMIT_MARK))

    @cached_property
    def clone(self) -> UpstreamState:
        return self.repository.get_upstream_state()

    def describe_unpulled_entry(self, environment: DeliveryEnvironment) -> str:
        """Describe the newest fetched log entry about the environment that is upstream but not in this branch."""
        entries_upstream = [entry for entry in self._upstream_entries if entry.environment == environment.name]
        if not entries_upstream:
            return ""
        return (
            f"the upstream branch has a newer entry for {environment.name} that is not pulled: "
            f"{entries_upstream[0].action}"
        )

    @cached_property
    def _upstream_entries(self) -> list[PromotionLogEntry]:
        return read_entries(self.repository.list_upstream_marked_commits(self.head, COMMIT_MARK))

    @cached_property
    def pipeline(self) -> PromotionPipeline:
        folder = self.repository.paths.current_path
        while True:
            path = posixpath.join(folder, FILE_NAME)
            if (text := self.read_file(path)) is not None:
                from argosy.gitops.delivery_file.reader import read_delivery_file

                return build_declared_pipeline(read_delivery_file(text, path), path)
            if not folder:
                break
            folder = posixpath.dirname(folder)
        inferred = infer_pipeline(self._list_applications())
        if inferred is not None and (
            skipped_folder := describe_undeployed_folder(inferred, self._list_sibling_folders)
        ):
            raise UserError(f"{skipped_folder}; add one, or write {FILE_NAME} (docs/reference/argosy-yaml.md)")
        if inferred is None:
            message = f"no environments found: no {FILE_NAME}, and no Applications of dev, staging, production"
            raise NoEnvironments(f"{message}; write {FILE_NAME} (docs/reference/argosy-yaml.md), or use --repo DIR")
        return inferred

    def _list_applications(self) -> list[Application]:
        apps = []
        for path in _list_yaml_files(self.tree):
            text = self.read_file(path)
            if text is None or "kind: Application" not in text:
                continue
            try:
                documents = [
                    document for document in read_yaml_documents(text, where=path) if isinstance(document, dict)
                ]
                apps += [
                    read_application(document, path) for document in documents if document.get("kind") == "Application"
                ]
            except ArgosyError as error:
                if "{{" not in text and not _is_yaml(text):
                    problem = "invalid YAML, so an environment may be missing"
                    raise UserError(f"{problem}; correct it, or write {FILE_NAME}", where=path) from error
                continue  # a template, or a file that is not deployed: `argosy check` reports it
        return [app for app in apps if app.sources and self.tree.find_entry(app.sources[0].path.strip("/"))]

    def _list_sibling_folders(self, path: str) -> list[str]:
        return [entry.name for entry in self.tree.list_folder(posixpath.dirname(path)) if entry.kind == "folder"]

    def read_file(self, path: str, commit: str = "") -> str | None:
        tree = self.repository.open_tree(commit) if commit else self.tree
        entry = tree.find_entry(path)
        return tree.read_file(path).decode("utf-8", "replace") if entry and entry.kind == "file" else None

    # -- environments --

    def get_environment(self, environment: DeliveryEnvironment, commit: str = "") -> EnvironmentSnapshot:
        commit = commit or self.head
        key = environment.name, commit
        if key not in self._views:
            tree = self.tree if commit == self.head else self.repository.open_tree(commit)
            self._views[key] = self.render_environment(environment, tree, commit)
        return self._views[key]

    def render_environment(self, environment: DeliveryEnvironment, tree: FileTree, commit: str) -> EnvironmentSnapshot:
        app = Application(name=environment.application)
        source = read_source({"path": environment.path})
        try:
            render_result = render(
                Checkout(tree, commit),
                app,
                source,
                fetch=self._checkouts.fetch_tree,
                fetch_charts=self._checkouts.fetch_charts,
            )
        except (LimitError, TransientError):
            raise
        except ArgosyError as error:
            message = f"{environment.name} cannot be built at {commit[:7]}: {str(error).partition('; ')[0]}"
            advice = f"correct its files, or its path in {self.pipeline.defined_in}"
            raise UserError(f"{message}; {advice}, commit, and try again") from error
        file = find_overlay_file(environment.path, lambda path: _read_text(tree, path))
        decoration = file.decoration if file else _infer_decoration(environment.name, render_result)
        return EnvironmentSnapshot(environment, render_result, read_contents(render_result.manifests, decoration), file)

    def list_plain_manifest_files(self, environment_snapshot: EnvironmentSnapshot) -> list[str]:
        """List the files of a folder of plain manifests; empty if Kustomize, Helm or another tool renders it."""
        if environment_snapshot.kustomization is not None or environment_snapshot.rendered.tool != "Directory":
            return []
        entries_listed = self.tree.list_folder(environment_snapshot.environment.path)
        return [
            entry.name for entry in entries_listed if entry.kind == "file" and entry.name.endswith((".yaml", ".yml"))
        ]

    def compute_changes(self, source: EnvironmentSnapshot, target: EnvironmentSnapshot) -> PromotionChanges:
        """Compute the changes of a promotion, or of a rollback, which also restores parameters."""
        is_back = source.environment.name == target.environment.name
        promoted_contents = (
            target.contents if is_back else self._find_promoted_contents(source.environment, target.environment)
        )
        return compute_changes(source.contents, target.contents, promoted_contents)

    def _find_promoted_contents(
        self, source: DeliveryEnvironment, target: DeliveryEnvironment
    ) -> EnvironmentContents | None:
        """Find the source's contents at the last promotion to the target; None if unknown."""
        entry = next(
            (
                log_entry
                for log_entry in self.log
                if log_entry.environment == target.name and log_entry.action in RELEASE_CHANGING_ACTIONS
            ),
            None,
        )
        if entry is None or entry.source != source.name or entry.release is None:
            return None
        if not self.repository.find_commit(entry.release.commit):
            return None
        try:
            return self.get_environment(source, entry.release.commit).contents
        except ArgosyError:
            return None  # that old commit cannot be rendered any more

    # -- releases --

    def build_release(self, commit: str) -> Release:
        return Release(f"r{self.repository.count_first_parents(commit)}", commit)

    def list_changes(self, environment: DeliveryEnvironment) -> list[tuple[str, ...]]:
        """List the newest commits that changed the environment: time, release, author, commit, subject."""
        changes = self.repository.list_changes(self.head, self.get_environment(environment).inputs, MAX_LISTED_RELEASES)
        return [
            (when, self.build_release(commit).name, by, commit[:7], subject) for commit, when, by, subject in changes
        ]

    def get_release(self, environment: DeliveryEnvironment, commit: str = "") -> Release:
        """Return the environment's release at a commit (default: the head)."""
        commit = commit or self.head
        if commit != self.head and self.repository.has_same_files(
            commit, self.head, self.get_environment(environment).inputs
        ):
            commit = self.head
        key = environment.name, commit
        if key not in self._releases:
            self._releases[key] = self._find_release(environment, commit)
        return self._releases[key]

    def _find_release(self, environment: DeliveryEnvironment, commit: str) -> Release:
        view = self.get_environment(environment, commit)
        newest = self.repository.find_last_change(commit, view.inputs)
        if not environment.after:
            return self.build_release(newest)
        log = (
            self.log if commit == self.head else read_entries(self.repository.list_marked_commits(commit, COMMIT_MARK))
        )
        entry = find_latest(log, environment.name, *RELEASE_CHANGING_ACTIONS)
        if entry is not None and entry.release is not None:
            if self._matches_promotion(entry, view, newest):
                return entry.release
            return Release(self.build_release(newest).name, newest, is_by_hand=True)
        return self.build_release(newest)

    def has_unpromoted_versions(self, environment: DeliveryEnvironment) -> bool:
        """True if it has image or model versions that were not promoted and that the previous environment lacks."""
        before, entry = (
            self.pipeline.find_previous(environment),
            find_latest(self.log, environment.name, *RELEASE_CHANGING_ACTIONS),
        )
        if before is None or entry is None or not self.get_release(environment).is_by_hand:
            return False
        now = self.get_environment(environment)
        moves = self.compute_changes(self.get_environment(before), now).moves
        if not any(move.kind in VERSION_KINDS for move in moves):
            return False
        try:
            return self.get_environment(environment, entry.commit).contents.select_values(
                *VERSION_KINDS
            ) != now.contents.select_values(*VERSION_KINDS)
        except ArgosyError:
            return True  # the promoted versions are unknown

    def _matches_promotion(self, entry: PromotionLogEntry, view: EnvironmentSnapshot, newest: str) -> bool:
        if self.repository.contains(entry.commit, newest):
            return True
        try:
            promoted = self.get_environment(view.environment, entry.commit).contents
        except ArgosyError:
            return False
        return promoted.select_values(*PROMOTED_KINDS) == view.contents.select_values(*PROMOTED_KINDS)


def _infer_decoration(name: str, render_result: RenderResult) -> NameDecoration:
    """Plain manifests whose names all start with the environment's name are decorated with that prefix."""
    prefix = f"{name}-"
    names = [str(item["metadata"].get("name", "")) for item in render_result.manifests]
    return NameDecoration(prefix) if names and all(item.startswith(prefix) for item in names) else NameDecoration()


def _list_yaml_files(tree: FileTree, folder: str = "") -> list[str]:
    """List the YAML files of a tree, without links and hidden folders."""
    paths, queue = list[str](), [folder]
    while queue and len(paths) < MAX_SCANNED_FILES:
        current = queue.pop(0)
        for entry in tree.list_folder(current):
            path = posixpath.join(current, entry.name)
            if entry.kind == "folder" and not entry.name.startswith("."):
                queue.append(path)
            elif entry.kind == "file" and entry.name.endswith((".yaml", ".yml")):
                paths.append(path)
    return paths


def _is_yaml(text: str) -> bool:
    try:
        read_yaml_documents(text)
    except ArgosyError:
        return False
    return True


def _read_text(tree: FileTree, path: str) -> str | None:
    entry = tree.find_entry(path)
    return tree.read_file(path).decode("utf-8", "replace") if entry and entry.kind == "file" else None
