"""Resolves a render request into parts with open file trees.

In: paths, Applications, flags. Out: parts, each with its sources and their trees. Never: renders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from argosy.errors import SourceRefused, SourceUnreachable, UserError
from argosy.gitops.application import Application, Destination, Source, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.checked_out_head import is_checked_out
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress
from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository, load_remotes
from argosy.gitops.workspace.helm_kustomize_render_flags import with_options
from argosy.gitops.workspace.kustomize_root_folder import locate_with_bases


class WorkspaceRenderRequest(NamedTuple):
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


class OpenSources(NamedTuple):
    """The sources of one part in order, each with its tree, and the trees that value files may refer to."""

    sources: Sequence[tuple[Checkout, Source]]
    refs: Mapping[str, Checkout]


class RenderPart(NamedTuple):
    """One unit of rendering: a path or an Application."""

    path: str
    app: Application
    open: Callable[[], OpenSources]
    file: str = ""  # the file of the Application

    @property
    def message_prefix(self) -> str:
        """Prefix of its messages."""
        return f"{self.app.name} ({self.file}): " if self.app.name and self.file else ""


def list_parts(
    request: WorkspaceRenderRequest, checkouts: CheckoutCache, show_progress: ShowProgress
) -> Iterator[RenderPart]:
    if request.revision == "":
        raise UserError("is empty; pass a branch, tag or commit, or omit it", where="--revision")
    if not request.files:
        if not request.paths:
            raise UserError("nothing to render; pass a folder, or a file with an Application after -f")
        opener = _SourceOpener(request, checkouts, show_progress)
        for path in request.paths:
            name = request.name or os.path.basename(os.path.normpath(path)).strip(".") or "app"
            app = Application(name=name, destination=Destination(namespace=request.namespace))
            yield RenderPart(path, app, partial(opener.open_path, path, Source()))
        return
    if request.repo and not request.paths:
        raise UserError("an Application has its own repositories; omit --repo, or pass a path in it")
    for file in request.files:
        yield from _list_file_parts(request, file, checkouts, show_progress)


def _list_file_parts(
    request: WorkspaceRenderRequest, file: str, checkouts: CheckoutCache, show_progress: ShowProgress
) -> Iterator[RenderPart]:
    from argosy.gitops.workspace.application_manifest_parser import STDIN, load_content, read_applications

    display_name = "standard input" if file == STDIN else file
    folder = os.path.realpath(os.curdir if file == STDIN else os.path.dirname(file) or os.curdir)
    opener = _SourceOpener(request, checkouts, show_progress, find_enclosing_repository(folder))
    try:
        parsed = read_applications(load_content(file), display_name)
    except UserError as error:
        yield RenderPart(file, Application(), partial(_raise, error), display_name)
        return
    for app, notes, fault, missing in parsed:
        for note in notes:
            show_progress(f"warning: {note}")
        if fault := fault or (None if request.paths else missing):
            yield RenderPart(file, app, partial(_raise, fault), display_name)
            continue
        for path in request.paths:
            yield RenderPart(path, app, partial(opener.open_application, app, path), display_name)
        if not request.paths:
            path = next((source.path or source.chart for source in app.sources if source.path or source.chart), ".")
            yield RenderPart(path, app, partial(opener.open_application, app, ""), display_name)


def _raise(error: UserError) -> NoReturn:
    raise error


class _SourceOpener:
    """Opens the trees of a request. `root`: the working tree that contains the Application files."""

    def __init__(
        self,
        request: WorkspaceRenderRequest,
        checkouts: CheckoutCache,
        show_progress: ShowProgress,
        root: str | None = None,
    ) -> None:
        self.request = request
        self.checkouts = checkouts
        self.root = root
        self._show_progress = show_progress
        self._shown_messages: set[str] = set()

    def open_path(self, path: str, source: Source) -> OpenSources:
        return OpenSources([self._open_typed_path(path, source)], {})

    def open_application(self, app: Application, path: str) -> OpenSources:
        refs = {source.alias: self._open_declared_source(source, app) for source in app.sources if source.alias}
        # argo: a source with an alias and no path only provides files to the others.
        rendered = [source for source in app.sources if source.path or source.chart or not source.alias]
        if path:
            if len(rendered) != 1:
                message = f"has {len(rendered)} sources with manifests, and the path replaces one; omit the path"
                raise UserError(message, where=app.name)
            return OpenSources([self._open_typed_path(path, rendered[0])], refs)
        return OpenSources(
            [(self._open_declared_source(source, app), self._read_source(source, {})) for source in rendered], refs
        )

    def _open_typed_path(self, path: str, source: Source) -> tuple[Checkout, Source]:
        """Open a source whose path was typed."""
        request = self.request
        if request.repo:
            checkout = self._open_repository(request.repo, request.revision or source.ref)
            fields = {"repoURL": request.repo, "path": path, "targetRevision": request.revision or ""}
            return checkout, self._read_source(source, fields)
        root, inner_path = locate_with_bases(path)
        fields = {"path": inner_path or ".", "targetRevision": request.revision or ""}
        if not source.repo_url:
            fields["repoURL"] = load_remotes(root).get("origin", "")
        if request.revision and find_enclosing_repository(root) is None:
            raise UserError("is not in a Git repository; omit --revision, or pass one with --repo", where=path)
        checkout = (
            self.checkouts.open_local_revision(root, request.revision)
            if request.revision
            else self.checkouts.open_working_tree(root)
        )
        return checkout, self._read_source(source, fields)

    def _open_repository(self, typed: str, ref: str) -> Checkout:
        """Open a typed repository; a local path that the user types may be read."""
        from argosy.gitops.application.repository_url_parser import parse_url

        folder = os.path.realpath(typed.removeprefix("file://"))
        if "://" not in typed.removeprefix("file://") and os.path.isdir(folder):
            if os.path.exists(os.path.join(folder, ".git")):
                return self.checkouts.open_local_revision(folder, ref or "HEAD")
            if not os.path.exists(os.path.join(folder, "HEAD")):
                raise UserError("is not a Git repository; pass one, or omit --repo", where=typed)
            return self.checkouts.open_revision(folder, ref, extra_roots=(Path(folder),))
        if typed.startswith(("/", ".", "file://")) or ":" not in typed:
            message = "no such folder; correct the path, or pass a full URL"
            raise UserError(message, where=f"--repo {typed}")
        try:
            parse_url(typed)
        except SourceRefused as error:
            raise UserError(error.message, where="--repo") from None
        return self.checkouts.open_revision(typed, ref)

    def _open_declared_source(self, source: Source, app: Application) -> Checkout:
        """Open a source as declared in its Application."""
        if source.chart:
            return self.checkouts.open_chart(source)
        root = self.root if self.root and is_url_of_repository(source.repo_url, self.root) else None
        revision = (self.request.revision or "") if root or len(app.sources) == 1 else ""
        if root and not revision:
            ref_text = (
                ""
                if is_checked_out(root, source.ref)
                else (f", as it is, instead of {source.ref}; for that: --revision {source.ref}")
            )
            self._show_once(f"{source.repo_url} is read from the working tree in {root}{ref_text}")
            return self.checkouts.open_working_tree(root)
        if root:
            self._show_once(f"{source.repo_url} is read from the repository in {root}, at {revision}")
            return self.checkouts.open_local_revision(root, revision)
        try:
            return self.checkouts.open_revision(source.repo_url, revision or source.ref, tag_prefix=source.tag_prefix)
        except SourceRefused as error:
            if source.repo_url.startswith(("/", "file:")):
                message = "is not an allowed repository; pass it, or a parent folder, with --root"
                raise SourceRefused(message, where=source.repo_url) from error
            raise self._add_remote_hint(error, source.repo_url) from error
        except SourceUnreachable as error:
            raise self._add_remote_hint(error, source.repo_url) from error

    def _add_remote_hint(self, error: UserError, url: str) -> UserError:
        """Add a hint if the repository may be the local working tree under another URL."""
        if not self.root:
            return error
        from argosy.gitops.workspace.cli_error_advice_adaptation import adapt_advice_to_cli

        adapt_advice_to_cli(error, in_git=True)
        text = error.message
        hint = f"if it is the one in {self.root}: git remote add upstream {url}"
        return type(error)(f"{text}{', or ' if '; ' in text else '; '}{hint}", where=error.where, line=error.line)

    def _read_source(self, source: Source, fields: Mapping[str, str]) -> Source:
        set_fields = {name: value for name, value in fields.items() if value}
        return read_source(with_options({**source.wire, **set_fields}, self.request.options))

    def _show_once(self, sentence: str) -> None:
        if sentence not in self._shown_messages:
            self._shown_messages.add(sentence)
            self._show_progress(sentence)


def is_url_of_repository(url: str, root: str) -> bool:
    """True if this is a URL of the repository: of any of its remotes, with any protocol."""
    from argosy.gitops.application.repository_url_parser import parse_url

    def identity(text: str) -> tuple[str, tuple[str, ...]] | None:
        try:
            parsed = parse_url(text)
        except SourceRefused:
            return None
        return parsed.host, parsed.segments

    url_identity = identity(url)
    return url_identity is not None and url_identity in [
        identity(known_url) for known_url in (root, *load_remotes(root).values())
    ]
