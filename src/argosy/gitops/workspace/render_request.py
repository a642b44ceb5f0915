"""Resolves a render request into parts with open file trees.

In: paths, Applications, flags. Out: parts, each with its sources and their trees. Never: renders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from argosy.errors import SourceRefused, Unreachable, UserError
from argosy.gitops.application import Application, Destination, Source, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.checkouts import Checkouts, Talk
from argosy.gitops.workspace.git_heads import is_checked_out
from argosy.gitops.workspace.kustomize_bases import locate_with_bases
from argosy.gitops.workspace.paths import enclosing, remotes
from argosy.gitops.workspace.source_flags import with_options


class Request(NamedTuple):
    """The arguments of a render command."""

    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # with Applications
    repo: str = ""
    revision: str | None = None  # None: the working tree
    roots: tuple[Path, ...] = ()
    settings: tuple[Path, ...] = ()  # files with argocd-cm and argosy-cm
    name: str = ""
    namespace: str = ""
    options: Mapping[str, Any] = {}


class Opened(NamedTuple):
    """The sources of one part in order, each with its tree, and the trees that value files may refer to."""

    sources: Sequence[tuple[Checkout, Source]]
    refs: Mapping[str, Checkout]


class Part(NamedTuple):
    """One unit of rendering: a path or an Application."""

    path: str
    app: Application
    open: Callable[[], Opened]
    file: str = ""  # the file of the Application

    @property
    def lead(self) -> str:
        """Prefix of its messages."""
        return f"{self.app.name} ({self.file}): " if self.app.name and self.file else ""


def parts_of(request: Request, checkouts: Checkouts, talk: Talk) -> Iterator[Part]:
    if request.revision == "":
        raise UserError("is empty; pass a branch, tag or commit, or omit it", where="--revision")
    if not request.files:
        if not request.paths:
            raise UserError("nothing to render; pass a folder, or a file with an Application after -f")
        opener = _Opener(request, checkouts, talk)
        for path in request.paths:
            name = request.name or os.path.basename(os.path.normpath(path)).strip(".") or "app"
            app = Application(name=name, destination=Destination(namespace=request.namespace))
            yield Part(path, app, partial(opener.path, path, Source()))
        return
    if request.repo and not request.paths:
        raise UserError("an Application has its own repositories; omit --repo, or pass a path in it")
    for file in request.files:
        yield from _parts_of_file(request, file, checkouts, talk)


def _parts_of_file(request: Request, file: str, checkouts: Checkouts, talk: Talk) -> Iterator[Part]:
    from argosy.gitops.workspace.application_files import STDIN, content_of, read_applications

    shown = "standard input" if file == STDIN else file
    folder = os.path.realpath(os.curdir if file == STDIN else os.path.dirname(file) or os.curdir)
    opener = _Opener(request, checkouts, talk, enclosing(folder))
    try:
        found = read_applications(content_of(file), shown)
    except UserError as error:
        yield Part(file, Application(), partial(_raise, error), shown)
        return
    for app, notes, fault, missing in found:
        for note in notes:
            talk(f"warning: {note}")
        if fault := fault or (None if request.paths else missing):
            yield Part(file, app, partial(_raise, fault), shown)
            continue
        for path in request.paths:
            yield Part(path, app, partial(opener.application, app, path), shown)
        if not request.paths:
            path = next((each.path or each.chart for each in app.sources if each.path or each.chart), ".")
            yield Part(path, app, partial(opener.application, app, ""), shown)


def _raise(error: UserError) -> NoReturn:
    raise error


class _Opener:
    """Opens the trees of a request. `root`: the working tree that contains the Application files."""

    def __init__(self, request: Request, checkouts: Checkouts, talk: Talk, root: str | None = None) -> None:
        self.request = request
        self.checkouts = checkouts
        self.root = root
        self._talk = talk
        self._told: set[str] = set()

    def path(self, path: str, source: Source) -> Opened:
        return Opened([self._placed(path, source)], {})

    def application(self, app: Application, path: str) -> Opened:
        refs = {each.alias: self._checkout(each, app) for each in app.sources if each.alias}
        # argo: a source with an alias and no path only provides files to the others.
        rendered = [each for each in app.sources if each.path or each.chart or not each.alias]
        if path:
            if len(rendered) != 1:
                message = f"has {len(rendered)} sources with manifests, and the path replaces one; omit the path"
                raise UserError(message, where=app.name)
            return Opened([self._placed(path, rendered[0])], refs)
        return Opened([(self._checkout(each, app), self._read(each, {})) for each in rendered], refs)

    def _placed(self, path: str, source: Source) -> tuple[Checkout, Source]:
        """Open a source whose path was typed."""
        asked = self.request
        if asked.repo:
            checkout = self._repository(asked.repo, asked.revision or source.ref)
            fields = {"repoURL": asked.repo, "path": path, "targetRevision": asked.revision or ""}
            return checkout, self._read(source, fields)
        root, inner = locate_with_bases(path)
        fields = {"path": inner or ".", "targetRevision": asked.revision or ""}
        if not source.repo_url:
            fields["repoURL"] = remotes(root).get("origin", "")
        if asked.revision and enclosing(root) is None:
            raise UserError("is not in a Git repository; omit --revision, or pass one with --repo", where=path)
        checkout = self.checkouts.within(root, asked.revision) if asked.revision else self.checkouts.working(root)
        return checkout, self._read(source, fields)

    def _repository(self, typed: str, ref: str) -> Checkout:
        """Open a typed repository; a local path that the user types may be read."""
        from argosy.gitops.application.repository_url import parse_url

        folder = os.path.realpath(typed.removeprefix("file://"))
        if "://" not in typed.removeprefix("file://") and os.path.isdir(folder):
            if os.path.exists(os.path.join(folder, ".git")):
                return self.checkouts.within(folder, ref or "HEAD")
            if not os.path.exists(os.path.join(folder, "HEAD")):
                raise UserError("is not a Git repository; pass one, or omit --repo", where=typed)
            return self.checkouts.at(folder, ref, also=(Path(folder),))
        if typed.startswith(("/", ".", "file://")) or ":" not in typed:
            message = "no such folder; correct the path, or pass a full URL"
            raise UserError(message, where=f"--repo {typed}")
        try:
            parse_url(typed)
        except SourceRefused as error:
            raise UserError(error.message, where="--repo") from None
        return self.checkouts.at(typed, ref)

    def _checkout(self, source: Source, app: Application) -> Checkout:
        """Open a source as declared in its Application."""
        if source.chart:  # checked first: as a Git repository, a chart repository seems to require credentials
            from argosy.gitops.render import chart_error

            raise chart_error(source)
        root = self.root if self.root and is_of(source.repo_url, self.root) else None
        revision = (self.request.revision or "") if root or len(app.sources) == 1 else ""
        if root and not revision:
            other = (
                ""
                if is_checked_out(root, source.ref)
                else (f", as it is, instead of {source.ref}; for that: --revision {source.ref}")
            )
            self._tell(f"{source.repo_url} is read from the working tree in {root}{other}")
            return self.checkouts.working(root)
        if root:
            self._tell(f"{source.repo_url} is read from the repository in {root}, at {revision}")
            return self.checkouts.within(root, revision)
        try:
            return self.checkouts.at(source.repo_url, revision or source.ref, tag_prefix=source.tag_prefix)
        except SourceRefused as error:
            if source.repo_url.startswith(("/", "file:")):
                message = "is not an allowed repository; pass it, or a parent folder, with --root"
                raise SourceRefused(message, where=source.repo_url) from error
            raise self._hinted(error, source.repo_url) from error
        except Unreachable as error:
            raise self._hinted(error, source.repo_url) from error

    def _hinted(self, error: UserError, url: str) -> UserError:
        """Add a hint if the repository may be the local working tree under another URL."""
        if not self.root:
            return error
        from argosy.gitops.workspace.hints import advised

        advised(error, in_git=True)
        text = error.message
        hint = f"if it is the one in {self.root}: git remote add upstream {url}"
        return type(error)(f"{text}{', or ' if '; ' in text else '; '}{hint}", where=error.where, line=error.line)

    def _read(self, source: Source, fields: Mapping[str, str]) -> Source:
        given = {name: value for name, value in fields.items() if value}
        return read_source(with_options({**source.wire, **given}, self.request.options))

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._talk(sentence)


def is_of(url: str, root: str) -> bool:
    """True if this is a URL of the repository: of any of its remotes, with any protocol."""
    from argosy.gitops.application.repository_url import parse_url

    def identity(text: str) -> tuple[str, tuple[str, ...]] | None:
        try:
            parsed = parse_url(text)
        except SourceRefused:
            return None
        return parsed.host, parsed.segments

    wanted = identity(url)
    return wanted is not None and wanted in [identity(each) for each in (root, *remotes(root).values())]
