"""Webhook deliveries of Git hosts, and an ASGI application that receives them without a socket.

In: payloads. Out: status codes. Never: waits for a clock.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

OLD, NEW = "1" * 40, "2" * 40
KEY = "open sesame, please"
CLONE = "https://git.example/ml/models.git"
COMMITS = [{"added": ["a.yaml"], "modified": ["b.yaml"], "removed": []}]
REPOSITORY = {"clone_url": CLONE, "ssh_url": "git@git.example:ml/models.git", "default_branch": "main"}
GITHUB = {"ref": "refs/heads/main", "before": OLD, "after": NEW, "repository": REPOSITORY, "commits": COMMITS}
GITLAB = {
    "object_kind": "push",
    "ref": "refs/heads/main",
    "before": OLD,
    "after": NEW,
    "project": {"git_http_url": CLONE, "git_ssh_url": "git@git.example:ml/models.git", "default_branch": "main"},
    "commits": COMMITS,
    "total_commits_count": 1,
}
BRANCH = {"type": "branch", "name": "main", "target": {"hash": NEW}}
BITBUCKET = {
    "repository": {"links": {"html": {"href": "https://git.example/ml/models"}}},
    "push": {"changes": [{"new": BRANCH, "old": BRANCH}]},
}
SERVER = {
    "repository": {"links": {"clone": [{"href": CLONE}]}},
    "changes": [{"ref": {"id": "refs/heads/main"}, "fromHash": OLD, "toHash": NEW}],
}
AZURE = {
    "eventType": "git.push",
    "resource": {
        "refUpdates": [{"name": "refs/heads/main", "oldObjectId": OLD, "newObjectId": NEW}],
        "repository": {"remoteUrl": CLONE, "defaultBranch": "refs/heads/main"},
    },
}
# name → header that names the event, and the payload
PROVIDERS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "GitHub": ({"x-github-event": "push"}, GITHUB),
    "GitLab": ({"x-gitlab-event": "Push Hook"}, GITLAB),
    "Gitea": ({"x-gitea-event": "push"}, GITHUB),
    "Forgejo": ({"x-forgejo-event": "push"}, GITHUB),
    "Gogs": ({"x-gogs-event": "push"}, GITHUB),
    "Bitbucket": ({"x-event-key": "repo:push", "x-hook-uuid": KEY}, BITBUCKET),
    "Bitbucket Server": ({"x-event-key": "repo:refs_changed"}, SERVER),
    "Azure DevOps": ({"x-vss-activityid": "5f7e"}, AZURE),
}
SECRETS = {
    "webhook.github.secret": KEY,
    "webhook.gitlab.secret": KEY,
    "webhook.gogs.secret": KEY,
    "webhook.bitbucket.uuid": KEY,
    "webhook.bitbucketserver.secret": KEY,
    "webhook.azuredevops.username": "hook",
    "webhook.azuredevops.password": KEY,
}


def signature(name: str, body: bytes) -> dict[str, str]:
    digest = hmac.new(KEY.encode(), body, "sha256").hexdigest()
    return {
        "GitHub": {"x-hub-signature-256": f"sha256={digest}"},
        "GitLab": {"x-gitlab-token": KEY},
        "Gitea": {"x-gitea-signature": digest},
        "Forgejo": {"x-forgejo-signature": digest},
        "Gogs": {"x-gogs-signature": digest},
        "Bitbucket": {},
        "Bitbucket Server": {"x-hub-signature": f"sha256={digest}"},
        "Azure DevOps": {"authorization": "Basic " + base64.b64encode(f"hook:{KEY}".encode()).decode()},
    }[name]


def delivery(name: str, document: Any = None) -> tuple[dict[str, str], bytes]:
    headers, payload = PROVIDERS[name]
    return dict(headers), json.dumps(payload if document is None else document).encode()


async def post(entry: Any, body: bytes, headers: Mapping[str, str], sender: str, *, chunk: int = 1 << 16) -> int:
    """Send one ASGI request; return the status code."""
    every = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body)), **headers}
    scope = {
        "type": "http", "method": "POST", "path": "/api/webhook", "raw_path": b"/api/webhook", "query_string": b"",
        "headers": [(name.encode("latin-1"), text.encode("latin-1")) for name, text in every.items()],
        "client": (sender, 1), "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    offsets = list(range(0, len(body), chunk))
    codes: list[int] = []

    async def receive() -> dict[str, Any]:
        at = offsets.pop(0) if offsets else len(body)
        return {"type": "http.request", "body": body[at : at + chunk], "more_body": bool(offsets)}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            codes.append(message["status"])

    await entry(scope, receive, send)
    return codes[0]
