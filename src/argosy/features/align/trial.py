"""Applies changes to an Application in memory, renders it with edited files, and compares it with the live state.

In: a reader, an Application, changes. Out: AppState. Never: writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.annotations import SYNC_OPTIONS
from argosy.errors import ArgosyError, UserError
from argosy.gitops.analysis.alignment.manifest_edits import altered, edits_of
from argosy.gitops.analysis.alignment.observation import RECREATE
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.selector_labels import selector_edits
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.application_client.reader import Reader, Unseen
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.desired_state import Assembled, Wanted
from argosy.gitops.reconciler.unknown_state import invalid
from argosy.gitops.source.repositories import Repositories
from argosy.kube.objects import load, load_all
from argosy.kube.objects.yaml_edits import Edit, edited


@dataclass(frozen=True)
class PatchedTree:
    """A file tree with some files replaced. It is sent to another process, so it holds nothing else."""

    inner: Tree
    files: Mapping[str, bytes]

    def entry(self, path: str) -> TreeEntry | None:
        found = self.inner.entry(path)
        below = sorted(name for name in self.files if name == path or name.startswith(f"{path}/" if path else ""))
        return found._replace(id=self._id(found.id, below)) if found and below else found

    def listing(self, path: str) -> Sequence[TreeEntry]:
        above = f"{path}/" if path else ""
        found = (self.entry(f"{above}{each.name}") for each in self.inner.listing(path))
        return [each for each in found if each is not None]

    def read(self, path: str) -> bytes:
        return self.files[path] if path in self.files else self.inner.read(path)

    def _id(self, old: str, names: Iterable[str]) -> str:
        made = hashlib.sha1(old.encode(), usedforsecurity=False)
        for name in names:
            made.update(name.encode() + b"\0" + self.files[name])
        return made.hexdigest()


class _PatchedRepositories(Repositories):
    """Returns checkouts of one repository with patched files."""

    def __init__(self, inner: Repositories, url: str, files: Mapping[str, bytes]) -> None:
        self._inner, self._url, self._files = inner, url, files

    async def checkout(self, url: str, ref: str, **how: Any) -> Checkout:
        found = await self._inner.checkout(url, ref, **how)
        return replace(found, tree=PatchedTree(found.tree, self._files)) if url == self._url else found


@dataclass(frozen=True)
class Trial:
    """An Application with changes applied, and edited files of its source."""

    app: Application
    files: Mapping[str, bytes] = field(default_factory=dict)
    bases: Mapping[str, bytes] = field(default_factory=dict)  # content of those files at the tracked ref

    @property
    def url(self) -> str:
        return self.app.sources[0].repo_url if self.app.sources else ""


async def tree_of(reader: Reader, trial: Trial) -> Tree:
    """Load the patched file tree of the first source."""
    source = trial.app.sources[0]
    found = await reader.rules.repositories.checkout(source.repo_url, source.ref or "HEAD", project=trial.app.project)
    return PatchedTree(found.tree, trial.files) if trial.files else found.tree


async def changed(reader: Reader, trial: Trial, proposals: Sequence[Proposal]) -> Trial:
    """Apply the proposals. Raises UserError if a file cannot be edited."""
    manifest = altered(trial.app.wire, edits_of(trial.app.wire, proposals))
    made = replace(trial, app=read_application(manifest, f"Application {trial.app.name}"))
    for each in proposals:
        if each.file:
            content = (await tree_of(reader, made)).read(each.file)
            text = edited_file(content.decode("utf-8", "replace"), each)
            bases = {each.file: content} | dict(made.bases)
            made = replace(made, files={**made.files, each.file: text.encode()}, bases=bases)
    return made


def edited_file(text: str, proposal: Proposal) -> str:
    """Return the file's text with the proposal applied; unchanged if nothing applies."""
    if proposal.kind is ProposalKind.SELECTORS:
        kustomization = load(text, where=proposal.file)
        found = kustomization if isinstance(kustomization, dict) else {}
        edits = selector_edits(found, proposal.labels, on_pods=proposal.on_pods)
        return edited(text, edits, where=proposal.file) if edits else text
    if proposal.kind is ProposalKind.RECREATE:
        return _annotated(text, proposal)
    return text


def _annotated(text: str, proposal: Proposal) -> str:
    documents = [each for each in load_all(text, where=proposal.file) if each is not None]
    number = _place(documents, proposal)
    if number is None:
        return text
    metadata = documents[number].get("metadata") or {}
    words = [word for word in str((metadata.get("annotations") or {}).get(SYNC_OPTIONS) or "").split(",") if word]
    wanted = ",".join([*words, *(word for word in RECREATE.split(",") if word not in words)])
    edit = Edit(("metadata", "annotations", SYNC_OPTIONS), wanted)
    return edited(text, [edit], document=number, where=proposal.file)


def _place(documents: Sequence[Any], proposal: Proposal) -> int | None:
    """Find the document by name, else by a part of the name, because a kustomization may add a prefix or suffix.

    Raises UserError if it is ambiguous, because the annotated object is deleted and created again.
    """
    _, kind, name = proposal.target
    named = {
        number: str((each.get("metadata") or {}).get("name") or "")
        for number, each in enumerate(documents)
        if isinstance(each, dict) and each.get("kind") == kind
    }
    found = [number for number, own in named.items() if own == name]
    found = found or [number for number, own in named.items() if own and own in name]
    if len(found) > 1:
        told = f"which {kind} becomes {name} is not certain; annotate it by hand: {SYNC_OPTIONS}: {RECREATE}"
        raise UserError(told, where=proposal.file)
    return found[0] if found else None


async def look(reader: Reader, trial: Trial) -> Look:
    """Compare the trial. Raises Unseen if its spec is invalid or objects are not readable and would look missing."""
    if wrong := invalid(trial.app, reader.rules.projects.get(trial.app.project), reader.rules):
        raise Unseen(f"{wrong[0].message}; correct its spec, or what its project allows", where=trial.app.name)
    found = await reader.look_at(trial.app, await _assembled(reader, trial))
    if hidden := reader.hidden(trial.app, found):
        told = f"cannot be compared from here: you may not read its {', '.join(hidden)}"
        raise Unseen(f"{told}; ask for get and list of them", where=trial.app.name)
    return found


async def _assembled(reader: Reader, trial: Trial) -> Assembled:
    app = trial.app
    if not trial.files:
        return await reader.assemble(app)
    rules = replace(reader.rules, repositories=_PatchedRepositories(reader.rules.repositories, trial.url, trial.files))
    wanted = Wanted(app.sources, tuple(source.ref for source in app.sources), afresh=True)
    try:
        return await reader.assembler.assemble(app, reader.project(app), wanted, rules, await reader.cluster.kinds())
    finally:
        reader.assembler.forget(app.key)  # the cached render has patched files


async def kustomizations(reader: Reader, trial: Trial, found: Assembled) -> dict[str, Mapping[str, Any]]:
    """Load the kustomizations that its sources were rendered with, by path."""
    names = {
        each.path
        for part in found.rendered
        for each, id_ in part.inputs.items()
        if id_ and not each.place and each.path.rpartition("/")[2] in ("kustomization.yaml", "kustomization.yml")
    }
    if not names:
        return {}
    tree = await tree_of(reader, trial)
    read: dict[str, Mapping[str, Any]] = {}
    for name in sorted(names):
        try:
            value = load(tree.read(name), where=name)
        except ArgosyError:
            continue
        if isinstance(value, dict):
            read[name] = value
    return read
