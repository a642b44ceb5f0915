"""The process that sends messages is killed at random moments: no message arrives twice."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.clusters import Sandbox, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.message_servers import http_inbox

pytestmark = pytest.mark.tier("test", "prove")

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
SUBSCRIBED = "notifications.argoproj.io/subscribe.on-health-degraded.chat"
NOTIFIED = "notified.notifications.argoproj.io"
TEMPLATE = {"message": "", "webhook": {"chat": {"method": "POST", "body": "{{.app.status.sync.revision}}"}}}


def create(running: Sandbox, path: str, manifest: dict[str, Any]) -> None:
    answer = running.request("POST", path, manifest)
    assert answer.code in (201, 409), answer.body


def prepare(running: Sandbox, url: str) -> None:
    create(running, "/api/v1/namespaces", {"metadata": {"name": "argocd"}})
    data = {"service.webhook.chat": f"url: {url}", "template.app-health-degraded": json.dumps(TEMPLATE)}
    settings = {"metadata": {"name": "argocd-notifications-cm"}, "data": data}
    create(running, "/api/v1/namespaces/argocd/configmaps", settings)
    app = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "wine", "annotations": {SUBSCRIBED: ""}},
        "spec": {"project": "default", "source": {"repoURL": "x", "path": "."}, "destination": {}},
    }
    create(running, APPS, app)


def change(running: Sandbox, health: str, revision: str) -> None:
    status = {"health": {"status": health}, "sync": {"status": "Synced", "revision": revision}}
    answer = running.request("PATCH", f"{APPS}/wine", {"status": status}, "application/merge-patch+json")
    assert answer.code == 200, answer.body


def has_ended(running: Sandbox) -> bool:
    """Whether it is known that the last time is over."""
    return NOTIFIED not in (running.request("GET", f"{APPS}/wine").json()["metadata"].get("annotations") or {})


def test_no_message_arrives_twice_however_often_the_sender_is_killed(
    tmp_path: Path, rng: random.Random, size: Callable[[int], int]
) -> None:
    kills = size(60)
    with http_inbox() as inbox:
        number = 0
        for life in range(kills):
            with sandbox(tmp_path / "data", "--port", "0", "--addons", "notifications") as running:
                prepare(running, inbox.url)
                if life == 0:  # one at least arrives
                    change(running, "Degraded", "r0")
                    wait_until(lambda: inbox.letters, "the first message")
                    change(running, "Healthy", "r0")
                ends = time.monotonic() + rng.random() * 1.5
                while time.monotonic() < ends:
                    number += 1
                    change(running, "Degraded", f"r{number}")
                    change(running, "Degraded", f"r{number}")  # the same once more
                    if rng.random() < 0.5:
                        time.sleep(rng.random() * 0.05)
                    change(running, "Healthy", f"r{number}")
                    while time.monotonic() < ends and not has_ended(running):
                        time.sleep(0.005)
                running.process.send_signal(signal.SIGKILL)
                running.process.wait(HANG_SECONDS)
        with sandbox(tmp_path / "data", "--port", "0", "--addons", "notifications") as running:
            change(running, "Healthy", "")
            wait_until(lambda: has_ended(running), "the last time has ended")
        arrived = Counter(letter.body.decode() for letter in inbox.letters)
    twice = {revision: count for revision, count in arrived.items() if count > 1}
    assert not twice, f"{twice} of {number} in {kills} lives"
    assert arrived, "nothing arrived at all"
    print(f"{kills} kills, {number} changes, {len(arrived)} arrived, none twice")
