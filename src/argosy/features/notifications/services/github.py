"""GitHub service: commit statuses, deployments, pull request comments, check runs and repository dispatches.

In: a delivery. Out: calls to the GitHub API, as a GitHub App or with a token. Never: sets a status on a commit that the
template does not name.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from argosy.errors import UserError
from argosy.features.notifications.services.delivery import Delivery, json_part
from argosy.http_client.github_app_token import app_token
from argosy.languages.notification_functions import full_name

API: Final = "https://api.github.com"
SHORT, LONG = 140, 65_536  # GitHub: characters of a description, and of a comment
TAG: Final = "<!-- argocd-notifications {} -->"  # argo: the same tag, so that its comments are found


def send_github(delivery: Delivery) -> None:
    said = delivery.part("github")
    parts = {"status": _status, "deployment": _deployment, "pullRequestComment": _comment,
             "checkRun": _check_run, "repositoryDispatch": _dispatch}  # fmt: skip
    chosen = [name for name in parts if isinstance(said.get(name), dict)]
    if not chosen:
        raise UserError(f"github: the template has no github fields; add one of {', '.join(parts)} under github")
    name = full_name(str(said.get("repoURLPath") or ""))
    revision = str(said.get("revisionPath") or "")
    if name.count("/") != 1 or "<no value>" in name or not revision or "<no value>" in revision:
        raise UserError("github: the template names no repository and commit; set github.repoURLPath and revisionPath")
    client = _Client(delivery, name, quote(revision, safe=""))
    for each in chosen:
        parts[each](client, said[each])


class _Client:
    def __init__(self, delivery: Delivery, repository: str, revision: str) -> None:
        self.delivery, self.revision = delivery, revision
        self._root = delivery.option("enterpriseBaseURL", API).rstrip("/")
        self._repository = f"{self._root}/repos/{quote(repository)}"
        self._token = delivery.option("token") or self._installed()

    def _installed(self) -> str:
        """Fetch the installation token of the GitHub App."""
        options = self.delivery
        app, installation = options.option("appID"), options.option("installationID")
        if not app or not installation.isdecimal():
            raise UserError("service.github needs appID, installationID and privateKey, or a token; set them")
        signed = app_token(app, options.option("privateKey"), options.now)
        url = f"{self._root}/app/installations/{installation}/access_tokens"
        found = options.post_json(url, {}, _headers(signed), "GitHub").document()
        return str(found.get("token") if isinstance(found, dict) else "")

    def call(self, method: str, path: str, document: Any = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        answered = self.delivery.ask(method, f"{self._repository}/{path}", body, _headers(self._token))
        return self.delivery.taken(answered, "GitHub").document()

    @property
    def description(self) -> str:
        return _cut(" ".join(self.delivery.message.split()), SHORT)


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _status(client: _Client, said: dict[str, Any]) -> None:
    status = {"state": said.get("state"), "context": said.get("label"), "description": client.description}
    if said.get("targetURL"):
        status["target_url"] = said["targetURL"]
    client.call("POST", f"statuses/{client.revision}", status)


def _deployment(client: _Client, said: dict[str, Any]) -> None:
    place = str(said.get("environment") or "")
    known = client.call("GET", f"deployments?ref={client.revision}&environment={quote(place, safe='')}")
    if isinstance(known, list) and known:
        number = known[0].get("id")
    else:
        made = {
            "ref": said.get("reference") or client.revision,
            "environment": place,
            "required_contexts": said.get("requiredContexts") or [],
            "auto_merge": said.get("autoMerge", True),
            "transient_environment": said.get("transientEnvironment", False),
        }
        number = (client.call("POST", "deployments", made) or {}).get("id")
    status = {"state": said.get("state"), "log_url": said.get("logURL"), "environment_url": said.get("environmentURL")}
    status |= {"description": client.description, "environment": place}
    client.call("POST", f"deployments/{number}/statuses", {name: value for name, value in status.items() if value})


def _comment(client: _Client, said: dict[str, Any]) -> None:
    tag = TAG.format(said["commentTag"]) if said.get("commentTag") else ""
    body = _cut(str(said.get("content") or client.delivery.message), LONG - 200) + (f"\n{tag}" if tag else "")
    for request in client.call("GET", f"commits/{client.revision}/pulls") or ():
        number = int(request.get("number") or 0)
        comments = client.call("GET", f"issues/{number}/comments?per_page=100") or () if tag else ()
        known = next((each.get("id") for each in comments if tag in str(each.get("body"))), None)
        if known:
            client.call("PATCH", f"issues/comments/{known}", {"body": body})
        else:
            client.call("POST", f"issues/{number}/comments", {"body": body})


def _check_run(client: _Client, said: dict[str, Any]) -> None:
    run = {"name": said.get("name"), "head_sha": client.revision, "external_id": "argocd-notifications"}
    run |= {name: said[name] for name in ("details_url", "status", "conclusion", "started_at", "completed_at", "output")
            if said.get(name)}  # fmt: skip
    if run.get("conclusion") and not run.get("status"):
        run["status"] = "completed"
    client.call("POST", "check-runs", run)


def _dispatch(client: _Client, said: dict[str, Any]) -> None:
    payload = json_part(str(said.get("client_payload") or ""), "github.repositoryDispatch.client_payload") or {}
    client.call("POST", "dispatches", {"event_type": said.get("event_type"), "client_payload": payload})
