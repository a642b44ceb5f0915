"""`argosy notifications …` commands, and at-most-once delivery when the sending process is killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.clusters import Sandbox, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.forked_commands import Done, run
from support.message_servers import Letter, http_inbox

APPLICATION = """
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: wine
  namespace: argocd
  annotations: {notifications.argoproj.io/subscribe.on-health-degraded.chat: ""}
spec: {project: default, source: {repoURL: "https://git/x", path: .}, destination: {}}
status: {health: {status: Degraded}, sync: {status: Synced, revision: abc}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-notifications-secret, namespace: argocd}
stringData: {chat-token: very-secret-token}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-notifications-cm, namespace: argocd}
data:
  service.webhook.chat: |
    url: INBOX/hooks/very-secret-token
    headers: [{name: Authorization, value: Bearer $chat-token}]
"""


def typed(running: Sandbox, *words: str) -> Done:
    return run([*words, "--data-dir", running.folder], env=os.environ, timeout=HANG_SECONDS)


def load(running: Sandbox, folder: Path, text: str, *, dies: bool = False) -> None:
    file = folder / "objects.yaml"
    file.write_text(text)
    done = typed(running, "sandbox", "load", "-f", str(file))
    assert dies or done.returncode == 0, done.stderr


def history(running: Sandbox) -> list[dict[str, Any]]:
    done = typed(running, "notifications", "history", "-o", "json")
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout)["items"])


def test_notifications_are_listed_tested_and_sent_without_leaking_the_token(home: Path) -> None:
    with http_inbox() as inbox, sandbox(home / "data", "--port", "0", "--addons", "notifications") as running:
        load(running, home, APPLICATION.replace("INBOX", inbox.url))
        wait_until(lambda: inbox.letters)
        wait_until(lambda: b"NotificationSent" in running.request("GET", "/api/v1/events").body)
        assert history(running)
        listed = typed(running, "notifications", "triggers")
        assert "on-drift" in listed.stdout and "notebook-validation-failed" in listed.stdout
        assert "app-drift" in typed(running, "notifications", "templates").stdout
        assert yaml.safe_load(typed(running, "notifications", "templates", "app-drift").stdout)["message"]
        held = typed(running, "notifications", "test", "on-health-degraded", "wine")
        assert held.returncode == 0 and "holds" in held.stdout and "Application wine has degraded." in held.stdout
        other = typed(running, "notifications", "test", "on-deployed", "wine")
        assert other.returncode == 1 and "does not hold" in other.stdout
        assert len(inbox.letters) == 1
        sent = typed(running, "notifications", "test", "on-deployed", "wine", "--to", "chat:", "--send")
        assert sent.returncode == 0 and "sent to chat:" in sent.stdout
        wrong = typed(running, "notifications", "test", "on-deplyed", "wine")
        assert wrong.returncode == 2 and "did you mean on-deployed?" in wrong.stderr
        inbox.answer = lambda letter: (401, b"no very-secret-token")
        refused = typed(running, "notifications", "test", "on-deployed", "wine", "--to", "chat:", "--send")
        assert refused.returncode == 2 and "401" in refused.stderr
        assert "very-secret-token" not in refused.stderr + refused.stdout
    (row,) = history_rows(inbox.letters[:1])
    assert row == ("GET", "/hooks/very-secret-token", "Bearer very-secret-token")


@pytest.mark.tier("all")
def test_missing_subscribers_missing_services_and_broken_triggers_are_reported(home: Path) -> None:
    broken = '  trigger.broken: "[{when: app.status.health.status ==, send: [app-deployed]}]"\n'
    objects = APPLICATION.replace("INBOX", "http://127.0.0.1:1").replace("-degraded.chat", "-degraded.absent") + broken
    with sandbox(home / "data", "--port", "0", "--addons", "notifications") as running:
        load(running, home, objects)
        nobody = typed(running, "notifications", "test", "on-deployed", "wine")
        assert nobody.returncode == 1 and "to nobody" in nobody.stdout and "webhook" not in nobody.stdout
        assert "on-deployed has no subscribers, so nothing is sent" in nobody.stderr
        data = typed(running, "notifications", "test", "on-deployed", "wine", "-o", "json")
        assert [message["to"] for message in json.loads(data.stdout)["messages"]] == [""]
        absent = typed(running, "notifications", "test", "on-health-degraded", "wine")
        assert absent.returncode == 2 and "service absent not found" in absent.stderr
        named = typed(running, "notifications", "test", "on-health-degraded", "wine", "--to", "slack:later")
        assert named.returncode == 0 and "to slack:later" in named.stdout
        wrong = typed(running, "notifications", "test", "broken", "wine")
        assert wrong.returncode == 2 and "trigger.broken: unexpected end of the expression" in wrong.stderr
        assert "not found" not in wrong.stderr
        assert "trigger.broken" not in typed(running, "notifications", "history").stderr


def history_rows(letters: list[Letter]) -> list[tuple[str, str, str]]:
    return [(letter.method, letter.path, letter.headers["authorization"]) for letter in letters]


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(True, id="before the answer is noted"),
        pytest.param(False, id="before the answer"),
    ],
)
def test_message_is_not_sent_twice_after_the_sender_was_killed(home: Path, answers: bool) -> None:
    """The receiver kills the sender: the claim is written, the message has arrived, the result is not recorded."""
    data = home / "data"
    victims: list[Sandbox] = []

    def answer(letter: Letter) -> tuple[int, bytes]:
        if victims:
            victims.pop().process.send_signal(signal.SIGKILL)
        return (200, b"") if answers else (0, b"")

    with http_inbox(answer) as inbox:
        with sandbox(data, "--port", "0", "--addons", "notifications") as running:
            victims.append(running)
            load(running, home, APPLICATION.replace("INBOX", inbox.url), dies=True)
            running.process.wait(HANG_SECONDS)
        with sandbox(data, "--port", "0", "--addons", "notifications") as again:
            application = again.request("GET", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/wine").json()
            annotations = application["metadata"]["annotations"]
            assert "notified.notifications.argoproj.io" in annotations
            assert "argosy.dev/notifying" in annotations
            load(again, home, APPLICATION.replace("INBOX", inbox.url).replace("revision: abc", "revision: def"))
            held = typed(again, "notifications", "test", "on-health-degraded", "wine")
            assert held.returncode == 0
        assert len(inbox.letters) == 1
