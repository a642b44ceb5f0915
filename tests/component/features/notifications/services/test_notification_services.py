"""Messages that arrive at real servers on loopback, for each type of notification service."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.errors import PolicyError, TransientError, UserError
from argosy.features.notifications.services import MessageDelivery, deliver
from argosy.http_client.allowed_host_request import DeliveryUnknown
from argosy.http_client.allowed_hosts import HostRules
from support.message_servers import Letter, http_inbox, smtp_inbox

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def delivery(kind: str, options: dict[str, Any], said: dict[str, Any], to: str = "", **more: Any) -> MessageDelivery:
    return MessageDelivery(kind, more.pop("service", kind), to, options, said, "mark-1", NOW, **more)


def test_webhook_gets_method_path_body_headers_and_idempotency_key() -> None:
    with http_inbox() as inbox:
        options = {
            "url": f"{inbox.url}/hooks/",
            "headers": [{"name": "X-Token", "value": "abc"}],
            "basicAuth": {"username": "u", "password": "p"},
        }
        own = {"method": "POST", "path": "/a b?x=1", "body": "said"}
        deliver(delivery("webhook", options, {"message": "m", "webhook": {"ours": own}}, service="ours"))
        deliver(delivery("webhook", options, {"message": "plain"}, service="ours"))
    first, second = inbox.letters
    assert (first.method, first.path, first.body) == ("POST", "/hooks/a%20b?x=1", b"said")
    assert first.headers["x-token"] == "abc" and first.headers["idempotency-key"] == "mark-1"
    assert base64.b64decode(first.headers["authorization"].removeprefix("Basic ")) == b"u:p"
    assert (second.method, second.body) == ("GET", b"plain")


def test_slack_gets_text_attachments_and_a_thread_per_group() -> None:
    def answer(letter: Letter) -> tuple[int, bytes]:
        return 200, b'{"ok": true, "channel": "C1", "ts": "1.5"}'

    with http_inbox(answer) as inbox:
        options = {"token": "xoxb-1", "apiURL": f"{inbox.url}/api", "username": "argosy", "icon": ":ship:"}
        message = {"message": "hello", "slack": {"attachments": '[{"title": "t"}]', "groupingKey": inbox.url}}
        deliver(delivery("slack", options, message, "general"))
        deliver(delivery("slack", options, message, "general"))
        message["slack"] |= {"deliveryPolicy": "Update"}  # type: ignore[operator]
        deliver(delivery("slack", options, message, "general"))
    first, second, third = inbox.letters
    assert first.path == "/api/chat.postMessage" and first.headers["authorization"] == "Bearer xoxb-1"
    document = first.document()
    assert document["text"] == "hello" and document["channel"] == "general" and document["icon_emoji"] == ":ship:"
    assert document["attachments"] == [{"title": "t"}] and "thread_ts" not in document
    assert second.document()["thread_ts"] == "1.5"
    assert third.path == "/api/chat.update" and third.document()["ts"] == "1.5"


@pytest.mark.parametrize(("why", "kind"), [("channel_not_found", UserError), ("ratelimited", TransientError)])
def test_slack_errors_are_permanent_or_transient(why: str, kind: type[Exception]) -> None:
    body = f'{{"ok": false, "error": "{why}"}}'.encode()
    with http_inbox(lambda letter: (200, body)) as inbox, pytest.raises(kind) as caught:
        deliver(delivery("slack", {"token": "xoxb-1", "apiURL": inbox.url}, {"message": "m"}, "general"))
    assert "xoxb-1" not in str(caught.value)


def test_email_has_subject_body_and_recipient_and_its_sender_logs_in() -> None:
    with smtp_inbox() as box:
        options = {"host": "127.0.0.1", "port": box.port, "username": "me", "password": "secret", "from": "a@b.c"}
        message = {"message": "plain", "email": {"subject": "a\nsubject é", "body": "the body\n.dot"}}
        deliver(delivery("email", options, message, "you@b.c"))
    assert any(line.startswith("AUTH PLAIN") for line in box.lines)
    assert "rcpt TO:<you@b.c>" in box.lines
    (mail,) = box.mails
    assert "To: you@b.c" in mail and "the body" in mail and "subject" in mail.partition("\r\n\r\n")[0]


def test_refused_email_recipient_is_a_user_error() -> None:
    with smtp_inbox(refuses="nobody") as box, pytest.raises(UserError, match="refused"):
        options = {"host": "127.0.0.1", "port": box.port, "from": "a@b.c"}
        deliver(delivery("email", options, {"message": "m"}, "nobody@b.c"))


def test_teams_gets_a_message_card_with_facts() -> None:
    with http_inbox(lambda letter: (200, b"1")) as inbox:
        message = {
            "message": "m",
            "teams": {"title": "t", "facts": '[{"name": "n", "value": "v"}]', "themeColor": "#1"},
        }
        deliver(delivery("teams", {"recipientUrls": {"ours": inbox.url}}, message, "ours"))
    card = inbox.letters[0].document()
    assert card["@type"] == "MessageCard" and card["title"] == "t" and card["text"] == "m"
    assert card["sections"] == [{"facts": [{"name": "n", "value": "v"}]}]


def test_github_gets_a_status_a_deployment_and_one_comment_per_tag() -> None:
    def answer(letter: Letter) -> tuple[int, bytes]:
        if letter.method == "GET":
            if letter.path.endswith("/pulls"):
                return 200, b'[{"number": 7}]'
            comments = b'[{"id": 5, "body": "x <!-- argocd-notifications t -->"}]'
            return 200, comments if "comments" in letter.path else b"[]"
        return 201, b'{"id": 9}'

    with http_inbox(answer) as inbox:
        message = {
            "message": "m " * 200,
            "github": {
                "repoURLPath": "https://github.com/team/wine.git",
                "revisionPath": "abc",
                "status": {"state": "success", "label": "argosy/wine", "targetURL": "https://x"},
                "deployment": {"state": "success", "environment": "dev"},
                "pullRequestComment": {"content": "c", "commentTag": "t"},
            },
        }
        deliver(delivery("github", {"token": "ghp", "enterpriseBaseURL": inbox.url}, message))
    requests = [(request.method, request.path) for request in inbox.letters]
    assert requests == [
        ("POST", "/repos/team/wine/statuses/abc"),
        ("GET", "/repos/team/wine/deployments?ref=abc&environment=dev"),
        ("POST", "/repos/team/wine/deployments"),
        ("POST", "/repos/team/wine/deployments/9/statuses"),
        ("GET", "/repos/team/wine/commits/abc/pulls"),
        ("GET", "/repos/team/wine/issues/7/comments?per_page=100"),
        ("PATCH", "/repos/team/wine/issues/comments/5"),
    ]
    status = inbox.letters[0].document()
    assert status["context"] == "argosy/wine" and len(status["description"]) == 140
    assert inbox.letters[0].headers["authorization"] == "Bearer ghp"


def test_github_app_requests_an_installation_token() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    with http_inbox(lambda letter: (201, b'{"token": "installed"}')) as inbox:
        options = {"appID": 12, "installationID": 34, "privateKey": pem, "enterpriseBaseURL": inbox.url}
        github = {"repoURLPath": "git@github.com:a/b.git", "revisionPath": "abc", "status": {"state": "success"}}
        deliver(delivery("github", options, {"message": "m", "github": github}))
    first, second = inbox.letters
    assert first.path == "/app/installations/34/access_tokens"
    head, body, _ = first.headers["authorization"].removeprefix("Bearer ").split(".")
    assert b'"RS256"' in base64.urlsafe_b64decode(head + "==")
    assert b'"iss":"12"' in base64.urlsafe_b64decode(body + "==")
    assert second.headers["authorization"] == "Bearer installed"


@pytest.mark.parametrize(
    ("code", "kind"), [(503, TransientError), (429, TransientError), (401, UserError), (0, DeliveryUnknown)]
)
def test_response_codes_are_mapped_to_error_types(code: int, kind: type[Exception]) -> None:
    with http_inbox(lambda letter: (code, b"why")) as inbox, pytest.raises(kind):
        deliver(delivery("webhook", {"url": f"{inbox.url}/token-in-path"}, {"message": "m"}))


def test_a_redirect_is_not_followed() -> None:
    with http_inbox(lambda letter: (302, b"")) as inbox, pytest.raises(UserError, match="302"):
        deliver(delivery("webhook", {"url": inbox.url}, {"message": "m"}))
    assert len(inbox.letters) == 1


def test_host_outside_the_allowed_hosts_is_rejected() -> None:
    with http_inbox() as inbox, pytest.raises(PolicyError, match=r"notifications\.hosts"):
        deliver(delivery("webhook", {"url": inbox.url}, {"message": "m"}, hosts=HostRules(("*.slack.com",))))
    assert inbox.letters == []


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[fe80::1]/x", "http://[::ffff:169.254.1.1]/"])
def test_cloud_metadata_addresses_are_rejected(url: str) -> None:
    with pytest.raises(PolicyError):
        deliver(delivery("webhook", {"url": url}, {"message": "m"}))


def test_error_does_not_contain_the_path_of_the_url() -> None:
    with pytest.raises(TransientError) as caught:
        deliver(delivery("teams", {"recipientUrls": {"a": "http://127.0.0.1:1/secret-path"}}, {"message": "m"}, "a"))
    assert "secret-path" not in str(caught.value)


def test_header_with_a_line_break_is_rejected() -> None:
    with http_inbox() as inbox, pytest.raises(UserError, match="header"):
        options = {"url": inbox.url, "headers": [{"name": "X", "value": "a\r\nEvil: b"}]}
        deliver(delivery("webhook", options, {"message": "m"}))
    assert inbox.letters == []
