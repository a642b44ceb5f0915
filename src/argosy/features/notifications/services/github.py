"""GitHub service: commit statuses, deployments, pull request comments, check runs and repository dispatches.

In: a delivery. Out: calls to the GitHub API, as a GitHub App or with a token. Never: sets a status on a commit that the
template does not name.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from argosy.errors import UserError
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery, parse_json_field
from argosy.http_client.github_app_jwt import build_app_jwt
from argosy.languages.notification_functions import repository_full_name

GITHUB_API_URL: Final = "https://api.github.com"
# GitHub: characters of a description, and of a comment.
MAX_DESCRIPTION_CHARACTERS, MAX_COMMENT_CHARACTERS = 140, 65_536
COMMENT_TAG_FORMAT: Final = "<!-- argocd-notifications {} -->"  # argo: the same tag, so that its comments are found


def send_github(delivery: MessageDelivery) -> None:
    fields = delivery.get_template_fields("github")
    senders = {"status": _send_status, "deployment": _send_deployment, "pullRequestComment": _send_comment,
             "checkRun": _send_check_run, "repositoryDispatch": _send_dispatch}  # fmt: skip
    used_fields = [name for name in senders if isinstance(fields.get(name), dict)]
    if not used_fields:
        raise UserError(f"github: the template has no github fields; add one of {', '.join(senders)} under github")
    name = repository_full_name(str(fields.get("repoURLPath") or ""))
    revision = str(fields.get("revisionPath") or "")
    if name.count("/") != 1 or "<no value>" in name or not revision or "<no value>" in revision:
        raise UserError("github: the template names no repository and commit; set github.repoURLPath and revisionPath")
    client = _GitHubClient(delivery, name, quote(revision, safe=""))
    for field_name in used_fields:
        senders[field_name](client, fields[field_name])


class _GitHubClient:
    def __init__(self, delivery: MessageDelivery, repository: str, revision: str) -> None:
        self.delivery, self.revision = delivery, revision
        self._root = delivery.get_option("enterpriseBaseURL", GITHUB_API_URL).rstrip("/")
        self._repository = f"{self._root}/repos/{quote(repository)}"
        self._token = delivery.get_option("token") or self._fetch_installation_token()

    def _fetch_installation_token(self) -> str:
        """Fetch the installation token of the GitHub App."""
        options = self.delivery
        app, installation = options.get_option("appID"), options.get_option("installationID")
        if not app or not installation.isdecimal():
            raise UserError("service.github needs appID, installationID and privateKey, or a token; set them")
        signed = build_app_jwt(app, options.get_option("privateKey"), options.now)
        url = f"{self._root}/app/installations/{installation}/access_tokens"
        document = options.post_json(url, {}, _build_headers(signed), "GitHub").read_json()
        return str(document.get("token") if isinstance(document, dict) else "")

    def call_api(self, method: str, path: str, document: Any = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        response = self.delivery.send_request(method, f"{self._repository}/{path}", body, _build_headers(self._token))
        return self.delivery.check_response(response, "GitHub").read_json()

    @property
    def description(self) -> str:
        return _truncate(" ".join(self.delivery.message.split()), MAX_DESCRIPTION_CHARACTERS)


def _build_headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}


def _truncate(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters - 3] + "..."


def _send_status(client: _GitHubClient, fields: dict[str, Any]) -> None:
    status = {"state": fields.get("state"), "context": fields.get("label"), "description": client.description}
    if fields.get("targetURL"):
        status["target_url"] = fields["targetURL"]
    client.call_api("POST", f"statuses/{client.revision}", status)


def _send_deployment(client: _GitHubClient, fields: dict[str, Any]) -> None:
    environment = str(fields.get("environment") or "")
    deployments = client.call_api("GET", f"deployments?ref={client.revision}&environment={quote(environment, safe='')}")
    if isinstance(deployments, list) and deployments:
        number = deployments[0].get("id")
    else:
        deployment = {
            "ref": fields.get("reference") or client.revision,
            "environment": environment,
            "required_contexts": fields.get("requiredContexts") or [],
            "auto_merge": fields.get("autoMerge", True),
            "transient_environment": fields.get("transientEnvironment", False),
        }
        number = (client.call_api("POST", "deployments", deployment) or {}).get("id")
    status = {
        "state": fields.get("state"),
        "log_url": fields.get("logURL"),
        "environment_url": fields.get("environmentURL"),
    }
    status |= {"description": client.description, "environment": environment}
    client.call_api("POST", f"deployments/{number}/statuses", {name: value for name, value in status.items() if value})


def _send_comment(client: _GitHubClient, fields: dict[str, Any]) -> None:
    tag = COMMENT_TAG_FORMAT.format(fields["commentTag"]) if fields.get("commentTag") else ""
    body = _truncate(str(fields.get("content") or client.delivery.message), MAX_COMMENT_CHARACTERS - 200) + (
        f"\n{tag}" if tag else ""
    )
    for request in client.call_api("GET", f"commits/{client.revision}/pulls") or ():
        number = int(request.get("number") or 0)
        comments = client.call_api("GET", f"issues/{number}/comments?per_page=100") or () if tag else ()
        comment_id = next((comment.get("id") for comment in comments if tag in str(comment.get("body"))), None)
        if comment_id:
            client.call_api("PATCH", f"issues/comments/{comment_id}", {"body": body})
        else:
            client.call_api("POST", f"issues/{number}/comments", {"body": body})


def _send_check_run(client: _GitHubClient, fields: dict[str, Any]) -> None:
    run = {"name": fields.get("name"), "head_sha": client.revision, "external_id": "argocd-notifications"}
    run |= {
        name: fields[name]
        for name in ("details_url", "status", "conclusion", "started_at", "completed_at", "output")
        if fields.get(name)
    }
    if run.get("conclusion") and not run.get("status"):
        run["status"] = "completed"
    client.call_api("POST", "check-runs", run)


def _send_dispatch(client: _GitHubClient, fields: dict[str, Any]) -> None:
    payload = (
        parse_json_field(str(fields.get("client_payload") or ""), "github.repositoryDispatch.client_payload") or {}
    )
    client.call_api("POST", "dispatches", {"event_type": fields.get("event_type"), "client_payload": payload})
