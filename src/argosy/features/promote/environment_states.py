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
from argosy.features.promote.environments import Way, declared, found, passed_by
from argosy.features.promote.file_edits import Kustomization, kustomization
from argosy.features.promote.moves import Moving, moving
from argosy.features.promote.promotion_log import BRINGS, MARK, Entry, entries, last
from argosy.features.promote.releases import TRAVELS, VERSIONS, Contents, Decoration, Release, contents
from argosy.gitops.application import Application, read_application, read_source
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.application.step_results import Checkout, Rendered
from argosy.gitops.delivery_file.values import FILE, Environment
from argosy.gitops.render import render
from argosy.gitops.workspace.checkouts import Checkouts, Talk
from argosy.gitops.workspace.git_repository import Clone, Repository
from argosy.kube.objects import load_all

MOST_SHOWN: Final = 20  # releases of the first environment
MOST_FILES: Final = 5000  # searched for Applications
MOST_BYTES: Final = 1 << 20


class NoEnvironments(UserError):
    """The repository has no argosy.yaml and no Applications of known environments."""


class EditedTree:
    """A file tree with some files replaced. Implements `FileTree`."""

    def __init__(self, tree: Tree, files: Mapping[str, bytes]) -> None:
        self._tree, self._files = tree, files

    def entry(self, path: str) -> TreeEntry | None:
        known = self._tree.entry(path)
        return known._replace(id="") if known and path in self._files else known

    def listing(self, path: str) -> Sequence[TreeEntry]:
        return self._tree.listing(path)

    def read(self, path: str) -> bytes:
        return self._files[path] if path in self._files else self._tree.read(path)


@dataclass(frozen=True)
class View:
    """An environment rendered at a commit."""

    environment: Environment
    rendered: Rendered
    contents: Contents
    file: Kustomization | None

    @cached_property
    def inputs(self) -> list[str]:
        """The files that the environment is rendered from."""
        own = (each.path for each, id in self.rendered.inputs.items() if not each.place and id not in ("", "folder"))
        return sorted({self.environment.path, *own})


class Survey:
    """All environments at one commit; renders and releases are cached."""

    def __init__(self, repository: Repository, talk: Talk) -> None:
        self.repository = repository
        self.head = repository.head()
        self._checkouts = Checkouts(talk=talk)
        self._views: dict[tuple[str, str], View] = {}
        self._releases: dict[tuple[str, str], Release] = {}

    def close(self) -> None:
        self._checkouts.close()

    @cached_property
    def tree(self) -> Tree:
        return self.repository.tree(self.head)

    @cached_property
    def log(self) -> list[Entry]:
        return entries(self.repository.log(self.head, MARK))

    @cached_property
    def clone(self) -> Clone:
        return self.repository.clone()

    def unseen(self, environment: Environment) -> str:
        """Describe the newest fetched log entry about the environment that is upstream but not in this branch."""
        news = [each for each in self._upstream if each.environment == environment.name]
        if not news:
            return ""
        return f"the upstream branch has a newer entry for {environment.name} that is not pulled: {news[0].action}"

    @cached_property
    def _upstream(self) -> list[Entry]:
        return entries(self.repository.log_upstream(self.head, MARK))

    @cached_property
    def way(self) -> Way:
        folder = self.repository.place.inner
        while True:
            path = posixpath.join(folder, FILE)
            if (text := self.read(path)) is not None:
                from argosy.gitops.delivery_file.reader import read_delivery

                return declared(read_delivery(text, path), path)
            if not folder:
                break
            folder = posixpath.dirname(folder)
        way = found(self._applications())
        if way is not None and (missed := passed_by(way, self._names_beside)):
            raise UserError(f"{missed}; add one, or write {FILE} (docs/reference/argosy-yaml.md)")
        if way is None:
            message = f"no environments found: no {FILE}, and no Applications of dev, staging, production"
            raise NoEnvironments(f"{message}; write {FILE} (docs/reference/argosy-yaml.md), or use --repo DIR")
        return way

    def _applications(self) -> list[Application]:
        apps = []
        for path in _files(self.tree):
            text = self.read(path)
            if text is None or "kind: Application" not in text:
                continue
            try:
                documents = [each for each in load_all(text, where=path) if isinstance(each, dict)]
                apps += [read_application(each, path) for each in documents if each.get("kind") == "Application"]
            except ArgosyError as error:
                if "{{" not in text and not _is_yaml(text):
                    told = "invalid YAML, so an environment may be missing"
                    raise UserError(f"{told}; correct it, or write {FILE}", where=path) from error
                continue  # a template, or a file that is not deployed: `argosy check` reports it
        return [app for app in apps if app.sources and self.tree.entry(app.sources[0].path.strip("/"))]

    def _names_beside(self, path: str) -> list[str]:
        return [each.name for each in self.tree.listing(posixpath.dirname(path)) if each.kind == "folder"]

    def read(self, path: str, commit: str = "") -> str | None:
        tree = self.repository.tree(commit) if commit else self.tree
        entry = tree.entry(path)
        return tree.read(path).decode("utf-8", "replace") if entry and entry.kind == "file" else None

    # -- environments --

    def view(self, environment: Environment, commit: str = "") -> View:
        commit = commit or self.head
        key = environment.name, commit
        if key not in self._views:
            tree = self.tree if commit == self.head else self.repository.tree(commit)
            self._views[key] = self.rendered(environment, tree, commit)
        return self._views[key]

    def rendered(self, environment: Environment, tree: Tree, commit: str) -> View:
        app = Application(name=environment.application)
        source = read_source({"path": environment.path})
        try:
            done = render(Checkout(tree, commit), app, source, fetch=self._checkouts.fetch)
        except (LimitError, TransientError):
            raise
        except ArgosyError as error:
            message = f"{environment.name} cannot be built at {commit[:7]}: {str(error).partition('; ')[0]}"
            advice = f"correct its files, or its path in {self.way.told_by}"
            raise UserError(f"{message}; {advice}, commit, and try again") from error
        file = kustomization(environment.path, lambda path: _text(tree, path))
        decoration = file.decoration if file else _by_habit(environment.name, done)
        return View(environment, done, contents(done.manifests, decoration), file)

    def plain(self, view: View) -> list[str]:
        """List the files of a folder of plain manifests; empty if Kustomize, Helm or another tool renders it."""
        if view.file is not None or view.rendered.tool != "Directory":
            return []
        listed = self.tree.listing(view.environment.path)
        return [each.name for each in listed if each.kind == "file" and each.name.endswith((".yaml", ".yml"))]

    def moving(self, source: View, target: View) -> Moving:
        """Compute the changes of a promotion, or of a rollback, which also restores parameters."""
        is_back = source.environment.name == target.environment.name
        was = target.contents if is_back else self._was(source.environment, target.environment)
        return moving(source.contents, target.contents, was)

    def _was(self, source: Environment, target: Environment) -> Contents | None:
        """Find the source's contents at the last promotion to the target; None if unknown."""
        entry = next((each for each in self.log if each.environment == target.name and each.action in BRINGS), None)
        if entry is None or entry.source != source.name or entry.release is None:
            return None
        if not self.repository.commit_of(entry.release.commit):
            return None
        try:
            return self.view(source, entry.release.commit).contents
        except ArgosyError:
            return None  # that old commit cannot be rendered any more

    # -- releases --

    def named(self, commit: str) -> Release:
        return Release(f"r{self.repository.number(commit)}", commit)

    def commits(self, environment: Environment) -> list[tuple[str, ...]]:
        """List the newest commits that changed the environment: time, release, author, commit, subject."""
        found = self.repository.changes(self.head, self.view(environment).inputs, MOST_SHOWN)
        return [(when, self.named(commit).name, by, commit[:7], subject) for commit, when, by, subject in found]

    def release(self, environment: Environment, commit: str = "") -> Release:
        """Return the environment's release at a commit (default: the head)."""
        commit = commit or self.head
        if commit != self.head and self.repository.is_same(commit, self.head, self.view(environment).inputs):
            commit = self.head
        key = environment.name, commit
        if key not in self._releases:
            self._releases[key] = self._release(environment, commit)
        return self._releases[key]

    def _release(self, environment: Environment, commit: str) -> Release:
        view = self.view(environment, commit)
        newest = self.repository.last_change(commit, view.inputs)
        if not environment.after:
            return self.named(newest)
        log = self.log if commit == self.head else entries(self.repository.log(commit, MARK))
        entry = last(log, environment.name, *BRINGS)
        if entry is not None and entry.release is not None:
            if self._is_as_brought(entry, view, newest):
                return entry.release
            return Release(self.named(newest).name, newest, is_by_hand=True)
        return self.named(newest)

    def is_from_nowhere(self, environment: Environment) -> bool:
        """True if it has image or model versions that were not promoted and that the previous environment lacks."""
        before, entry = self.way.before(environment), last(self.log, environment.name, *BRINGS)
        if before is None or entry is None or not self.release(environment).is_by_hand:
            return False
        now = self.view(environment)
        moved = self.moving(self.view(before), now).moves
        if not any(each.kind in VERSIONS for each in moved):
            return False
        try:
            return self.view(environment, entry.commit).contents.of(*VERSIONS) != now.contents.of(*VERSIONS)
        except ArgosyError:
            return True  # the promoted versions are unknown

    def _is_as_brought(self, entry: Entry, view: View, newest: str) -> bool:
        if self.repository.contains(entry.commit, newest):
            return True
        try:
            then = self.view(view.environment, entry.commit).contents
        except ArgosyError:
            return False
        return then.of(*TRAVELS) == view.contents.of(*TRAVELS)


def _by_habit(name: str, done: Rendered) -> Decoration:
    """Plain manifests whose names all start with the environment's name are decorated with that prefix."""
    prefix = f"{name}-"
    names = [str(each["metadata"].get("name", "")) for each in done.manifests]
    return Decoration(prefix) if names and all(each.startswith(prefix) for each in names) else Decoration()


def _files(tree: Tree, folder: str = "") -> list[str]:
    """List the YAML files of a tree, without links and hidden folders."""
    paths, waiting = list[str](), [folder]
    while waiting and len(paths) < MOST_FILES:
        here = waiting.pop(0)
        for entry in tree.listing(here):
            path = posixpath.join(here, entry.name)
            if entry.kind == "folder" and not entry.name.startswith("."):
                waiting.append(path)
            elif entry.kind == "file" and entry.name.endswith((".yaml", ".yml")):
                paths.append(path)
    return paths


def _is_yaml(text: str) -> bool:
    try:
        load_all(text)
    except ArgosyError:
        return False
    return True


def _text(tree: Tree, path: str) -> str | None:
    entry = tree.entry(path)
    return tree.read(path).decode("utf-8", "replace") if entry and entry.kind == "file" else None
