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
from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.kustomize_selector_labels import build_selector_exclusion_edits
from argosy.gitops.analysis.alignment.observed_application import RECREATE_OPTIONS
from argosy.gitops.analysis.alignment.proposed_application_manifest_edits import apply_edits, build_edits
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.application_client.app_state_reader import ApplicationReader, DestinationUnreadable
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.unknown_state import validate_application
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.objects import read_yaml, read_yaml_documents
from argosy.kube.objects.yaml_edits import YamlEdit, edited


@dataclass(frozen=True)
class PatchedTree:
    """A file tree with some files replaced. It is sent to another process, so it holds nothing else."""

    inner: FileTree
    files: Mapping[str, bytes]

    def find_entry(self, path: str) -> TreeEntry | None:
        entry = self.inner.find_entry(path)
        below = sorted(name for name in self.files if name == path or name.startswith(f"{path}/" if path else ""))
        return entry._replace(id=self._hash_content(entry.id, below)) if entry and below else entry

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        above = f"{path}/" if path else ""
        entries = (self.find_entry(f"{above}{item.name}") for item in self.inner.list_folder(path))
        return [item for item in entries if item is not None]

    def read_file(self, path: str) -> bytes:
        return self.files[path] if path in self.files else self.inner.read_file(path)

    def _hash_content(self, old: str, names: Iterable[str]) -> str:
        digest = hashlib.sha1(old.encode(), usedforsecurity=False)
        for name in names:
            digest.update(name.encode() + b"\0" + self.files[name])
        return digest.hexdigest()


class _PatchedRepositories(Repositories):
    """Returns checkouts of one repository with patched files."""

    def __init__(self, inner: Repositories, url: str, files: Mapping[str, bytes]) -> None:
        self._inner, self._url, self._files = inner, url, files

    async def checkout(self, url: str, ref: str, **how: Any) -> Checkout:
        checkout = await self._inner.checkout(url, ref, **how)
        return replace(checkout, tree=PatchedTree(checkout.tree, self._files)) if url == self._url else checkout


@dataclass(frozen=True)
class ApplicationTrial:
    """An Application with changes applied, and edited files of its source."""

    app: Application
    files: Mapping[str, bytes] = field(default_factory=dict)
    bases: Mapping[str, bytes] = field(default_factory=dict)  # content of those files at the tracked ref

    @property
    def url(self) -> str:
        return self.app.sources[0].repo_url if self.app.sources else ""


async def load_tree(reader: ApplicationReader, trial: ApplicationTrial) -> FileTree:
    """Load the patched file tree of the first source."""
    source = trial.app.sources[0]
    checkout = await reader.reconciler_settings.repositories.checkout(
        source.repo_url, source.ref or "HEAD", project=trial.app.project
    )
    return PatchedTree(checkout.tree, trial.files) if trial.files else checkout.tree


async def apply_proposals(
    reader: ApplicationReader, trial: ApplicationTrial, proposals: Sequence[Proposal]
) -> ApplicationTrial:
    """Apply the proposals. Raises UserError if a file cannot be edited."""
    manifest = apply_edits(trial.app.wire, build_edits(trial.app.wire, proposals))
    result = replace(trial, app=read_application(manifest, f"Application {trial.app.name}"))
    for proposal in proposals:
        if proposal.file:
            content = (await load_tree(reader, result)).read_file(proposal.file)
            text = edit_file(content.decode("utf-8", "replace"), proposal)
            bases = {proposal.file: content} | dict(result.bases)
            result = replace(result, files={**result.files, proposal.file: text.encode()}, bases=bases)
    return result


def edit_file(text: str, proposal: Proposal) -> str:
    """Return the file's text with the proposal applied; unchanged if nothing applies."""
    if proposal.kind is ProposalKind.SELECTORS:
        kustomization = read_yaml(text, where=proposal.file)
        fields = kustomization if isinstance(kustomization, dict) else {}
        edits = build_selector_exclusion_edits(fields, proposal.labels, on_pods=proposal.on_pods)
        return edited(text, edits, where=proposal.file) if edits else text
    if proposal.kind is ProposalKind.RECREATE:
        return _annotate_for_recreation(text, proposal)
    return text


def _annotate_for_recreation(text: str, proposal: Proposal) -> str:
    documents = [document for document in read_yaml_documents(text, where=proposal.file) if document is not None]
    number = _find_document(documents, proposal)
    if number is None:
        return text
    metadata = documents[number].get("metadata") or {}
    options = [word for word in str((metadata.get("annotations") or {}).get(SYNC_OPTIONS) or "").split(",") if word]
    new_options = ",".join([*options, *(word for word in RECREATE_OPTIONS.split(",") if word not in options)])
    edit = YamlEdit(("metadata", "annotations", SYNC_OPTIONS), new_options)
    return edited(text, [edit], document_index=number, where=proposal.file)


def _find_document(documents: Sequence[Any], proposal: Proposal) -> int | None:
    """Find the document by name, else by a part of the name, because a kustomization may add a prefix or suffix.

    Raises UserError if it is ambiguous, because the annotated object is deleted and created again.
    """
    _, kind, name = proposal.target
    name_by_index = {
        number: str((document.get("metadata") or {}).get("name") or "")
        for number, document in enumerate(documents)
        if isinstance(document, dict) and document.get("kind") == kind
    }
    indexes = [number for number, document_name in name_by_index.items() if document_name == name]
    indexes = indexes or [
        number for number, document_name in name_by_index.items() if document_name and document_name in name
    ]
    if len(indexes) > 1:
        problem = f"which {kind} becomes {name} is not certain; annotate it by hand: {SYNC_OPTIONS}: {RECREATE_OPTIONS}"
        raise UserError(problem, where=proposal.file)
    return indexes[0] if indexes else None


async def compare_trial(reader: ApplicationReader, trial: ApplicationTrial) -> AppState:
    """Compare the trial. Raises Unseen if its spec is invalid or objects are not readable and would look missing."""
    if conditions := validate_application(
        trial.app, reader.reconciler_settings.projects.get(trial.app.project), reader.reconciler_settings
    ):
        raise DestinationUnreadable(
            f"{conditions[0].message}; correct its spec, or what its project allows", where=trial.app.name
        )
    app_state = await reader.compare_desired_state(trial.app, await _render_trial(reader, trial))
    if hidden := reader.list_unreadable_kinds(trial.app, app_state):
        problem = f"cannot be compared from here: you may not read its {', '.join(hidden)}"
        raise DestinationUnreadable(f"{problem}; ask for get and list of them", where=trial.app.name)
    return app_state


async def _render_trial(reader: ApplicationReader, trial: ApplicationTrial) -> DesiredState:
    app = trial.app
    if not trial.files:
        return await reader.render_desired_state(app)
    rules = replace(
        reader.reconciler_settings,
        repositories=_PatchedRepositories(reader.reconciler_settings.repositories, trial.url, trial.files),
    )
    source_request = DesiredStateRequest(app.sources, tuple(source.ref for source in app.sources), ignores_cache=True)
    try:
        return await reader.desired_states.build(
            app, reader.get_project(app), source_request, rules, await reader.cluster.kinds()
        )
    finally:
        reader.memos.forget(app.key)  # the cached render has patched files


async def load_kustomizations(
    reader: ApplicationReader, trial: ApplicationTrial, desired_state: DesiredState
) -> dict[str, Mapping[str, Any]]:
    """Load the kustomizations that its sources were rendered with, by path."""
    names = {
        render_input.path
        for part in desired_state.rendered
        for render_input, id_ in part.inputs.items()
        if id_
        and not render_input.scope
        and render_input.path.rpartition("/")[2] in ("kustomization.yaml", "kustomization.yml")
    }
    if not names:
        return {}
    tree = await load_tree(reader, trial)
    read: dict[str, Mapping[str, Any]] = {}
    for name in sorted(names):
        try:
            value = read_yaml(tree.read_file(name), where=name)
        except ArgosyError:
            continue
        if isinstance(value, dict):
            read[name] = value
    return read
