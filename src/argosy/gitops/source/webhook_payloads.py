"""Reads push events from the webhook payloads of each Git host.

In: a verified payload as JSON data. Out: Pushes, none for other events; or a ManifestError that names the field.
Never: trusts a list of files that may be truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.kube.objects.strict_typed_field_reader import FieldReader

MAX_LISTED_COMMITS: Final = 2048  # GitHub lists no more of a push
MAX_LISTED_FILES: Final = 50_000


@dataclass(frozen=True, slots=True)
class Push:
    """A branch or tag that was moved, created or deleted."""

    urls: tuple[str, ...]  # all URLs that the host lists for the repository
    ref: str  # full name: refs/heads/main
    before: str = ""
    after: str = ""  # empty if the ref was deleted
    changed_files: frozenset[str] | None = None  # files; None if the list may be incomplete
    default_branch: str = ""  # empty if the host does not send it

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""

    @property
    def tag(self) -> str:
        return self.ref.removeprefix("refs/tags/") if self.ref.startswith("refs/tags/") else ""


def read_github_pushes(event: str, payload: FieldReader) -> Iterator[Push]:
    if event != "push":
        return
    repository = payload.read_map("repository")
    is_complete = not any(payload.read_bool(name) for name in ("forced", "created", "deleted"))
    yield Push(
        _read_texts(repository, "clone_url", "ssh_url", "html_url"),
        payload.read_text("ref"),
        _read_commit_id(payload.read_text("before")),
        _read_commit_id(payload.read_text("after")),
        _list_changed_files(payload.read_map_list("commits")) if is_complete else None,
        repository.read_text("default_branch"),
    )


def read_gitea_pushes(event: str, payload: FieldReader) -> Iterator[Push]:
    """Read events of Gitea, Gogs and Forgejo. Creating or deleting a branch is a separate event there."""
    if event == "push":
        repository, commits = payload.read_map("repository"), payload.read_map_list("commits")
        before, after = _read_commit_id(payload.read_text("before")), _read_commit_id(payload.read_text("after"))
        is_complete = before and after and payload.read_int("total_commits") <= len(commits)
        yield Push(
            _read_texts(repository, "clone_url", "ssh_url", "html_url"),
            payload.read_text("ref"),
            before,
            after,
            _list_changed_files(commits) if is_complete else None,
            repository.read_text("default_branch"),
        )
    elif event in ("create", "delete"):
        repository = payload.read_map("repository")
        ref_type = "tags" if payload.read_text("ref_type") == "tag" else "heads"
        ref = payload.read_text("ref").removeprefix(f"refs/{ref_type}/")
        yield Push(
            _read_texts(repository, "clone_url", "ssh_url", "html_url"),
            f"refs/{ref_type}/{ref}",
            after=_read_commit_id(payload.read_text("sha")),
            default_branch=repository.read_text("default_branch"),
        )


def read_gitlab_pushes(event: str, payload: FieldReader) -> Iterator[Push]:
    """Read hooks of a project, and of a whole instance, whose events are all named System Hook."""
    kind = payload.read_text("object_kind") or payload.read_text("event_name")
    if event not in ("Push Hook", "Tag Push Hook", "System Hook") or kind not in ("push", "tag_push"):
        return
    project, commits = payload.read_map("project"), payload.read_map_list("commits")
    before, after = _read_commit_id(payload.read_text("before")), _read_commit_id(payload.read_text("after"))
    is_complete = before and after and payload.read_int("total_commits_count") <= len(commits)
    yield Push(
        _read_texts(project, "git_http_url", "git_ssh_url", "web_url"),
        payload.read_text("ref"),
        before,
        after,
        _list_changed_files(commits) if is_complete else None,
        project.read_text("default_branch"),
    )


def read_bitbucket_pushes(event: str, payload: FieldReader) -> Iterator[Push]:
    if event != "repo:push":
        return
    repository = payload.read_map("repository")
    urls = _read_texts(repository.read_map("links").read_map("html"), "href")
    for change in payload.read_map("push").read_map_list("changes"):
        old, new = change.find_map("old"), change.find_map("new")
        if ref := new or old:
            ref_type = "tags" if ref.read_text("type") == "tag" else "heads"
            yield Push(
                urls, f"refs/{ref_type}/{ref.read_text('name')}", _read_target_commit(old), _read_target_commit(new)
            )


def read_bitbucket_server_pushes(event: str, payload: FieldReader) -> Iterator[Push]:
    if event != "repo:refs_changed":
        return
    links = payload.read_map("repository").read_map("links")
    urls = tuple(url for link in links.read_map_list("clone") if (url := link.read_text("href")))
    for change in payload.read_map_list("changes"):
        ref = change.read_map("ref").read_text("id") or change.read_text("refId")
        yield Push(
            urls, ref, _read_commit_id(change.read_text("fromHash")), _read_commit_id(change.read_text("toHash"))
        )


def read_azure_pushes(_activity: str, payload: FieldReader) -> Iterator[Push]:
    if payload.read_text("eventType") != "git.push":
        return
    resource = payload.read_map("resource")
    repository = resource.read_map("repository")
    urls = _read_texts(repository, "remoteUrl")
    default_branch = repository.read_text("defaultBranch").removeprefix("refs/heads/")
    for change in resource.read_map_list("refUpdates"):
        old, new = _read_commit_id(change.read_text("oldObjectId")), _read_commit_id(change.read_text("newObjectId"))
        yield Push(urls, change.read_text("name"), old, new, default_branch=default_branch)


def _read_texts(fields: FieldReader, *names: str) -> tuple[str, ...]:
    return tuple(text for name in names if (text := fields.read_text(name)))


def _read_commit_id(text: str) -> str:
    """Return the commit id, or an empty string for the all-zero id."""
    return text if text.strip("0") else ""


def _read_target_commit(change: FieldReader | None) -> str:
    return change.read_map("target").read_text("hash") if change else ""


def _list_changed_files(commits: Sequence[FieldReader]) -> frozenset[str] | None:
    """Return the files of all commits; None if no commit is listed, or so many that the list may be truncated."""
    files: set[str] = set()
    for commit in commits:
        for name in ("added", "modified", "removed"):
            files.update(commit.read_text_list(name))
    return frozenset(files) if 0 < len(commits) < MAX_LISTED_COMMITS and len(files) <= MAX_LISTED_FILES else None
