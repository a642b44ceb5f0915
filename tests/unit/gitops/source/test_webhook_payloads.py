"""Webhooks: verification of the sender, parsing of pushes, and which sources a push affects."""

from __future__ import annotations

import hmac
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.errors import LimitError, ManifestError, SourceRefused, UserError
from argosy.gitops.source.webhook_verification import (
    Push,
    WebhookSecrets,
    affects_source,
    read_pushes,
    read_webhook_secrets,
)

OLD, NEW, NONE = "1" * 40, "2" * 40, "0" * 40
KEY = "open sesame"
URLS = ("https://git.example/ml/models.git", "git@git.example:ml/models.git", "https://git.example/ml/models")
COMMITS = [{"added": ["a.yaml"], "modified": ["b.yaml"], "removed": []}, {"removed": ["c.yaml"], "added": None}]
FILES = frozenset({"a.yaml", "b.yaml", "c.yaml"})
REPOSITORY = {"clone_url": URLS[0], "ssh_url": URLS[1], "html_url": URLS[2], "default_branch": "main"}
GITHUB = {"ref": "refs/heads/main", "before": OLD, "after": NEW, "repository": REPOSITORY, "commits": COMMITS}
GITLAB = {
    "object_kind": "push",
    "ref": "refs/heads/main",
    "before": OLD,
    "after": NEW,
    "project": {"git_http_url": URLS[0], "git_ssh_url": URLS[1], "web_url": URLS[2], "default_branch": "main"},
    "commits": COMMITS,
    "total_commits_count": 2,
}
BITBUCKET = {
    "repository": {"full_name": "ml/models", "links": {"html": {"href": "https://bitbucket.example/ml/models"}}},
    "push": {
        "changes": [
            {"new": {"type": "branch", "name": "main", "target": {"hash": NEW}},
             "old": {"type": "branch", "name": "main", "target": {"hash": OLD}}},
            {"new": None, "old": {"type": "tag", "name": "v1", "target": {"hash": OLD}}},
        ]
    },
}  # fmt: skip
SERVER = {
    "repository": {"links": {"clone": [{"href": "https://bb.example/scm/ml/models.git"},
                                       {"href": "ssh://git@bb.example:7999/ml/models.git"}]}},
    "changes": [{"ref": {"id": "refs/heads/main"}, "fromHash": OLD, "toHash": NEW},
                {"refId": "refs/tags/v1", "fromHash": NONE, "toHash": NEW}],
}  # fmt: skip
ALL = WebhookSecrets(
    {
        "webhook.github.secret": KEY,
        "webhook.gitlab.secret": KEY,
        "webhook.gogs.secret": KEY,
        "webhook.bitbucket.uuid": KEY,
        "webhook.bitbucketserver.secret": KEY,
    }
)


def signed(body: bytes, algorithm: str = "sha256", key: str = KEY) -> str:
    return hmac.new(key.encode(), body, algorithm).hexdigest()


def github(body: bytes, event: str = "push") -> dict[str, str]:
    return {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={signed(body)}"}


def github_old(body: bytes, event: str = "push") -> dict[str, str]:
    return {"X-GitHub-Event": event, "X-Hub-Signature": f"sha1={signed(body, 'sha1')}"}


def gitea(body: bytes, event: str = "push") -> dict[str, str]:
    """Gitea sends the event headers of Gogs and GitHub, too."""
    return {"X-Gitea-Event": event, "X-Gitea-Signature": signed(body), "X-Gogs-Event": event, "X-GitHub-Event": event}


def gogs(body: bytes, event: str = "push") -> dict[str, str]:
    return {"X-Gogs-Event": event, "X-Gogs-Signature": signed(body)}


def gitlab(body: bytes, event: str = "Push Hook") -> dict[str, str]:
    return {"X-Gitlab-Event": event, "X-Gitlab-Token": KEY}


def bitbucket(body: bytes, event: str = "repo:push") -> dict[str, str]:
    return {"X-Event-Key": event, "X-Hook-UUID": KEY}


def server(body: bytes, event: str = "repo:refs_changed") -> dict[str, str]:
    return {"X-Event-Key": event, "X-Hub-Signature": f"sha256={signed(body)}"}


MOVED = Push(URLS, "refs/heads/main", OLD, NEW, FILES, "main")
HOSTS: dict[str, tuple[Any, dict[str, Any], tuple[Push, ...]]] = {
    "github": (github, GITHUB, (MOVED,)),
    "github with sha1": (github_old, GITHUB, (MOVED,)),
    "gitea": (gitea, {**GITHUB, "total_commits": 2}, (MOVED,)),
    "gogs": (gogs, GITHUB, (MOVED,)),
    "gitlab": (gitlab, GITLAB, (MOVED,)),
    "bitbucket": (
        bitbucket,
        BITBUCKET,
        (
            Push(("https://bitbucket.example/ml/models",), "refs/heads/main", OLD, NEW),
            Push(("https://bitbucket.example/ml/models",), "refs/tags/v1", OLD, ""),
        ),
    ),
    "bitbucket server": (
        server,
        SERVER,
        tuple(
            Push(("https://bb.example/scm/ml/models.git", "ssh://git@bb.example:7999/ml/models.git"), ref, before, NEW)
            for ref, before in (("refs/heads/main", OLD), ("refs/tags/v1", ""))
        ),
    ),
}
EVERY_HOST = pytest.mark.parametrize(("head", "payload", "pushes"), HOSTS.values(), ids=HOSTS)


@EVERY_HOST
def test_push_is_parsed(head: Any, payload: dict[str, Any], pushes: tuple[Push, ...]) -> None:
    body = json.dumps(payload).encode()
    assert read_pushes(head(body), body, ALL) == pushes


@EVERY_HOST
def test_wrong_secret_is_refused(head: Any, payload: dict[str, Any], pushes: tuple[Push, ...]) -> None:
    body = json.dumps(payload).encode()
    others = WebhookSecrets(dict.fromkeys(ALL.values, "another"))
    with pytest.raises(SourceRefused, match="missing or wrong") as refused:
        read_pushes(head(body), body, others)
    assert "another" not in str(refused.value) and KEY not in str(refused.value)


@EVERY_HOST
def test_missing_signature_is_refused(head: Any, payload: dict[str, Any], pushes: tuple[Push, ...]) -> None:
    body = json.dumps(payload).encode()
    bare = {name: text for name, text in head(body).items() if name.endswith(("Event", "Event-Key"))}
    with pytest.raises(SourceRefused, match="missing or wrong"):
        read_pushes(bare, body, ALL)


@pytest.mark.parametrize("head", [github, github_old, gitea, gogs, server])
def test_modified_body_is_refused(head: Any) -> None:
    with pytest.raises(SourceRefused):
        read_pushes(head(b"{}"), b'{"a":1}', ALL)


def test_sha1_signature_does_not_replace_a_wrong_sha256_signature() -> None:
    body = json.dumps(GITHUB).encode()
    with pytest.raises(SourceRefused):
        read_pushes({**github_old(body), "X-Hub-Signature-256": "sha256=00"}, body, ALL)


@EVERY_HOST
def test_every_sender_is_accepted_if_no_secret_is_set(head: Any, payload: dict[str, Any], pushes: Any) -> None:
    body = json.dumps(payload).encode()
    assert read_pushes(head(body), body, WebhookSecrets()) == pushes


def test_host_without_a_secret_is_refused_if_another_host_has_one() -> None:
    body = json.dumps(GITHUB).encode()
    only = read_webhook_secrets({"webhook.github.secret": f"{KEY}\n", "webhook.gitlab.secret": " ", "other": "x"})
    assert read_pushes(github(body), body, only) == (MOVED,)
    with pytest.raises(SourceRefused, match=r"add webhook\.gogs\.secret to argocd-secret"):
        read_pushes(gogs(body), body, only)


def test_webhook_secrets_are_not_in_the_repr() -> None:
    assert KEY not in repr(ALL)


def test_unknown_sender_is_refused() -> None:
    with pytest.raises(SourceRefused, match=r"unknown sender; supported are webhooks of Gitea, .*Azure DevOps"):
        read_pushes({"Content-Type": "application/json"}, b"{}", ALL)


@pytest.mark.parametrize(
    ("head", "event"),
    [(github, "ping"), (gitea, "issues"), (gitlab, "Issue Hook"), (bitbucket, "issue:created"),
     (server, "diagnostics:ping")],
)  # fmt: skip
def test_other_events_contain_no_push(head: Any, event: str) -> None:
    assert read_pushes(head(b"{}", event), b"{}", ALL) == ()


def test_gitlab_system_hook_may_contain_no_push() -> None:
    pushed, created = json.dumps(GITLAB).encode(), b'{"event_name":"project_create"}'
    assert read_pushes(gitlab(pushed, "System Hook"), pushed, ALL) == (MOVED,)
    assert read_pushes(gitlab(created, "System Hook"), created, ALL) == ()


@pytest.mark.parametrize(
    ("event", "payload", "push"),
    [
        ("create", {"ref": "v1", "ref_type": "tag", "sha": NEW}, ("refs/tags/v1", NEW)),
        ("delete", {"ref": "refs/heads/old", "ref_type": "branch"}, ("refs/heads/old", "")),
    ],
)
def test_gitea_create_and_delete_events_are_pushes(event: str, payload: dict[str, Any], push: tuple[str, str]) -> None:
    body = json.dumps({**payload, "repository": REPOSITORY}).encode()
    assert [(push_event.ref, push_event.after) for push_event in read_pushes(gitea(body, event), body, ALL)] == [push]


@pytest.mark.parametrize(
    ("head", "payload"),
    [
        (github, {**GITHUB, "forced": True}),
        (github, {**GITHUB, "created": True, "before": NONE}),
        (github, {**GITHUB, "commits": []}),
        (github, {**GITHUB, "commits": [{"added": ["a"]}] * 2048}),
        (github, {**GITHUB, "commits": [{"added": [str(index) for index in range(50_001)]}]}),
        (gitea, {**GITHUB, "total_commits": 3}),
        (gitea, {**GITHUB, "before": NONE}),
        (gitlab, {**GITLAB, "total_commits_count": 21}),
        (gitlab, {**GITLAB, "after": NONE}),
    ],
)
def test_changed_files_are_unknown_if_the_list_may_be_truncated(head: Any, payload: dict[str, Any]) -> None:
    body = json.dumps(payload).encode()
    assert [push.changed_files for push in read_pushes(head(body), body, ALL)] == [None]


def test_payload_may_be_form_encoded() -> None:
    body = urlencode({"payload": json.dumps(GITHUB)}).encode()
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert read_pushes({**github(body), **form}, body, ALL) == (MOVED,)
    for broken in (b"", b"a=1", b"payload=%7B%7D&payload=1", b"\xff"):
        with pytest.raises(ManifestError, match="no field payload"):
            read_pushes({**github(broken), **form}, broken, ALL)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"x" * 101, LimitError),
        (b"[" * 60 + b"]" * 60, ManifestError),
        (b"{", ManifestError),
        (b'{"ref": 1}', ManifestError),
        (b'{"repository": []}', ManifestError),
        (b'{"commits": [1]}', ManifestError),
        (b"null", ManifestError),
    ],
)
def test_invalid_payload_is_an_error(body: bytes, error: type[UserError]) -> None:
    with pytest.raises(error):
        read_pushes(github(body), body, ALL, max_bytes=128 if len(body) != 101 else 100)


def test_deeply_nested_payload_is_refused() -> None:
    body = b'{"a":' * 150 + b"1" + b"}" * 150
    with pytest.raises(LimitError):
        read_pushes(github(body), body, ALL)


def test_unsigned_body_is_not_parsed() -> None:
    with pytest.raises(SourceRefused):
        read_pushes({"X-GitHub-Event": "push"}, b"{", ALL)


@given(st.binary(max_size=200), st.sampled_from([github, gitea, gogs, gitlab, bitbucket, server]))
def test_arbitrary_body_raises_only_user_errors(body: bytes, head: Any) -> None:
    try:
        assert isinstance(read_pushes(head(body), body, ALL), tuple)
    except UserError:
        pass


@given(st.text(max_size=20))
def test_arbitrary_text_is_not_a_valid_signature(text: str) -> None:
    names = ("X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Gogs-Signature", "X-Gitlab-Token")
    for event in ("X-GitHub-Event", "X-Gitea-Event", "X-Gitlab-Event", "X-Event-Key"):
        with pytest.raises(SourceRefused):
            read_pushes({event: "push", **dict.fromkeys(names, text)}, b"{}", ALL)


TAGGED = Push(URLS, "refs/tags/v1.2.3", default_branch="main")
OTHER = Push(URLS, "refs/heads/feature/x", default_branch="main")
SILENT = Push(URLS, "refs/heads/trunk")
MINE = "https://git.example/ml/models"


@pytest.mark.parametrize(
    ("push", "url", "ref", "is_concerned"),
    [
        (MOVED, MINE, "main", True),
        (MOVED, MINE, "", True),
        (MOVED, MINE, "HEAD", True),
        (MOVED, MINE, "refs/heads/main", True),
        (MOVED, MINE, "heads/main", True),
        (MOVED, MINE, "mai", False),
        (MOVED, MINE, "refs/tags/main", False),
        (MOVED, MINE, NEW, False),
        (MOVED, MINE, "v1.2.3", False),
        (MOVED, MINE, "*", False),
        (OTHER, MINE, "HEAD", False),
        (OTHER, MINE, "feature/x", True),
        (OTHER, MINE, "x", False),
        (SILENT, MINE, "HEAD", True),
        (TAGGED, MINE, "HEAD", False),
        (TAGGED, MINE, "v1.2.3", True),
        (TAGGED, MINE, "refs/tags/v1.2.3", True),
        (TAGGED, MINE, "1.2.x", True),
        (TAGGED, MINE, "^1", True),
        (TAGGED, MINE, ">=2", False),
        (TAGGED, MINE, "main", False),
        (MOVED, "https://git.example/ml/models.git/", "main", True),
        (MOVED, "HTTPS://GIT.example:8443/ML/models", "main", True),
        (MOVED, "http://git.example/ml/models", "main", True),
        (MOVED, "ssh://git@git.example:2222/ml/models.git", "main", True),
        (MOVED, "ssh://git@ssh.git.example:443/ml/models.git", "main", True),
        (MOVED, "git@altssh.git.example:ml/models", "main", True),
        (MOVED, "https://ssh.git.example/ml/models", "main", False),
        (MOVED, "https://git.example/ml/models-two", "main", False),
        (MOVED, "https://git.example/ml", "main", False),
        (MOVED, "https://git.example.evil.example/ml/models", "main", False),
        (MOVED, "https://user:secret@git.example/ml/models", "main", False),
        (MOVED, "no address", "main", False),
        (Push(("nonsense", ""), "refs/heads/main"), "nonsense", "main", False),
    ],
)
def test_push_affects_sources_of_its_repository_and_ref(push: Push, url: str, ref: str, is_concerned: bool) -> None:
    assert affects_source(push, url, ref) is is_concerned


def test_tag_prefix_limits_the_affected_sources() -> None:
    tagged = Push(URLS, "refs/tags/models/1.4.0")
    assert affects_source(tagged, MINE, "1.x", tag_prefix="models/")
    assert not affects_source(tagged, MINE, "1.x", tag_prefix="data/")
    assert not affects_source(tagged, MINE, "1.x")
