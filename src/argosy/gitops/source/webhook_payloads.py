"""Reads push events from the webhook payloads of each Git host.

In: a verified payload as JSON data. Out: Pushes, none for other events; or a ManifestError that names the field.
Never: trusts a list of files that may be truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.kube.objects.field_reader import Fields

MOST_COMMITS: Final = 2048  # GitHub lists no more of a push
MOST_FILES: Final = 50_000


@dataclass(frozen=True, slots=True)
class Push:
    """A branch or tag that was moved, created or deleted."""

    urls: tuple[str, ...]  # all URLs that the host lists for the repository
    ref: str  # full name: refs/heads/main
    before: str = ""
    after: str = ""  # empty if the ref was deleted
    changed: frozenset[str] | None = None  # files; None if the list may be incomplete
    default_branch: str = ""  # empty if the host does not send it

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""

    @property
    def tag(self) -> str:
        return self.ref.removeprefix("refs/tags/") if self.ref.startswith("refs/tags/") else ""


def github_pushes(event: str, payload: Fields) -> Iterator[Push]:
    if event != "push":
        return
    repository = payload.fields("repository")
    is_sure = not any(payload.flag(name) for name in ("forced", "created", "deleted"))
    yield Push(
        _texts(repository, "clone_url", "ssh_url", "html_url"),
        payload.text("ref"),
        _commit(payload.text("before")),
        _commit(payload.text("after")),
        _files(payload.all_fields("commits")) if is_sure else None,
        repository.text("default_branch"),
    )


def gitea_pushes(event: str, payload: Fields) -> Iterator[Push]:
    """Read events of Gitea, Gogs and Forgejo. Creating or deleting a branch is a separate event there."""
    if event == "push":
        repository, commits = payload.fields("repository"), payload.all_fields("commits")
        before, after = _commit(payload.text("before")), _commit(payload.text("after"))
        is_sure = before and after and payload.count("total_commits") <= len(commits)
        yield Push(
            _texts(repository, "clone_url", "ssh_url", "html_url"),
            payload.text("ref"),
            before,
            after,
            _files(commits) if is_sure else None,
            repository.text("default_branch"),
        )
    elif event in ("create", "delete"):
        repository = payload.fields("repository")
        folder = "tags" if payload.text("ref_type") == "tag" else "heads"
        ref = payload.text("ref").removeprefix(f"refs/{folder}/")
        yield Push(
            _texts(repository, "clone_url", "ssh_url", "html_url"),
            f"refs/{folder}/{ref}",
            after=_commit(payload.text("sha")),
            default_branch=repository.text("default_branch"),
        )


def gitlab_pushes(event: str, payload: Fields) -> Iterator[Push]:
    """Read hooks of a project, and of a whole instance, whose events are all named System Hook."""
    kind = payload.text("object_kind") or payload.text("event_name")
    if event not in ("Push Hook", "Tag Push Hook", "System Hook") or kind not in ("push", "tag_push"):
        return
    project, commits = payload.fields("project"), payload.all_fields("commits")
    before, after = _commit(payload.text("before")), _commit(payload.text("after"))
    is_sure = before and after and payload.count("total_commits_count") <= len(commits)
    yield Push(
        _texts(project, "git_http_url", "git_ssh_url", "web_url"),
        payload.text("ref"),
        before,
        after,
        _files(commits) if is_sure else None,
        project.text("default_branch"),
    )


def bitbucket_pushes(event: str, payload: Fields) -> Iterator[Push]:
    if event != "repo:push":
        return
    repository = payload.fields("repository")
    urls = _texts(repository.fields("links").fields("html"), "href")
    for change in payload.fields("push").all_fields("changes"):
        old, new = change.optional("old"), change.optional("new")
        if named := new or old:
            folder = "tags" if named.text("type") == "tag" else "heads"
            yield Push(urls, f"refs/{folder}/{named.text('name')}", _target(old), _target(new))


def bitbucket_server_pushes(event: str, payload: Fields) -> Iterator[Push]:
    if event != "repo:refs_changed":
        return
    links = payload.fields("repository").fields("links")
    urls = tuple(url for each in links.all_fields("clone") if (url := each.text("href")))
    for change in payload.all_fields("changes"):
        ref = change.fields("ref").text("id") or change.text("refId")
        yield Push(urls, ref, _commit(change.text("fromHash")), _commit(change.text("toHash")))


def azure_pushes(_activity: str, payload: Fields) -> Iterator[Push]:
    if payload.text("eventType") != "git.push":
        return
    resource = payload.fields("resource")
    repository = resource.fields("repository")
    urls = _texts(repository, "remoteUrl")
    default = repository.text("defaultBranch").removeprefix("refs/heads/")
    for change in resource.all_fields("refUpdates"):
        old, new = _commit(change.text("oldObjectId")), _commit(change.text("newObjectId"))
        yield Push(urls, change.text("name"), old, new, default_branch=default)


def _texts(given: Fields, *names: str) -> tuple[str, ...]:
    return tuple(text for name in names if (text := given.text(name)))


def _commit(text: str) -> str:
    """Return the commit id, or an empty string for the all-zero id."""
    return text if text.strip("0") else ""


def _target(change: Fields | None) -> str:
    return change.fields("target").text("hash") if change else ""


def _files(commits: Sequence[Fields]) -> frozenset[str] | None:
    """Return the files of all commits; None if no commit is listed, or so many that the list may be truncated."""
    found: set[str] = set()
    for commit in commits:
        for name in ("added", "modified", "removed"):
            found.update(commit.all_texts(name))
    return frozenset(found) if 0 < len(commits) < MOST_COMMITS and len(found) <= MOST_FILES else None
