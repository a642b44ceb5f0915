"""Kill the process that sends notifications at random moments: no message arrives twice."""

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
from support.message_servers import Inbox, http_inbox

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
    data = {
        "service.webhook.chat": f"url: {url}",
        # once per degradation: the one that ships sends once per commit that was synced
        "trigger.on-health-degraded": "[{when: app.status.health.status == 'Degraded', send: [app-health-degraded]}]",
        "template.app-health-degraded": json.dumps(TEMPLATE),
    }
    settings = {"metadata": {"name": "argocd-notifications-cm"}, "data": data}
    create(running, "/api/v1/namespaces/argocd/configmaps", settings)
    create(running, APPS, application("wine"))


def application(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "annotations": {SUBSCRIBED: ""}},
        "spec": {"project": "default", "source": {"repoURL": "x", "path": "."}, "destination": {}},
    }


def change(running: Sandbox, health: str, revision: str, name: str = "wine") -> None:
    status = {"health": {"status": health}, "sync": {"status": "Synced", "revision": revision}}
    answer = running.request("PATCH", f"{APPS}/{name}", {"status": status}, "application/merge-patch+json")
    assert answer.code == 200, answer.body


def has_ended(running: Sandbox) -> bool:
    """True if the notified annotation is gone, so the next degradation sends a new message."""
    return NOTIFIED not in (running.request("GET", f"{APPS}/wine").json()["metadata"].get("annotations") or {})


def has_arrived(inbox: Inbox, revision: str) -> bool:
    return any(letter.body.decode() == revision for letter in inbox.letters)


def wait_for_a_look(running: Sandbox, inbox: Inbox, life: int) -> None:
    """Wait until this process has checked all Applications: it notifies about one that is newer than the others."""
    name = f"newest-{life}"
    create(running, APPS, application(name))
    change(running, "Degraded", name, name)
    wait_until(lambda: has_arrived(inbox, name), f"the message of {name}")


def change_for_a_while(running: Sandbox, rng: random.Random, number: int) -> int:
    """Toggle between Healthy and Degraded until a random moment, possibly while Degraded; return the last number."""
    ends = time.monotonic() + rng.random() * 1.5
    is_killed_while_bad = rng.random() < 0.5
    while True:
        number += 1
        change(running, "Degraded", f"r{number}")
        change(running, "Degraded", f"r{number}")  # the same change again
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.05)
        if time.monotonic() >= ends and is_killed_while_bad:
            return number
        change(running, "Healthy", f"r{number}")
        while time.monotonic() < ends and not has_ended(running):
            time.sleep(0.005)
        if time.monotonic() >= ends:
            return number


def prove(home: Path, rng: random.Random, lives: range, bug: str = "") -> Counter[str]:
    """Kill the sender once per life: at a random moment in odd lives, as soon as a message arrives in even lives.
    Return how often each message arrived."""
    number, kills = 0, len(lives)
    flags = ("--port", "0", "--addons", "notifications")
    with http_inbox() as inbox:
        for life in lives:
            with sandbox(home / "data", *flags, bug=bug) as running:
                prepare(running, inbox.url)
                wait_for_a_look(running, inbox, life)
                change(running, "Healthy", "")
                wait_until(lambda running=running: has_ended(running), "the last time has ended")
                if life % 2:
                    number = change_for_a_while(running, rng, number)
                else:
                    number += 1
                    change(running, "Degraded", f"r{number}")
                    wait_until(lambda revision=f"r{number}": has_arrived(inbox, revision), f"the message of r{number}")
                running.process.send_signal(signal.SIGKILL)
                running.process.wait(HANG_SECONDS)
        with sandbox(home / "data", *flags, bug=bug) as running:
            wait_for_a_look(running, inbox, lives.stop)
            change(running, "Healthy", "")
            wait_until(lambda: has_ended(running), "the last time has ended")
        arrived = Counter(letter.body.decode() for letter in inbox.letters)
    twice = {revision: count for revision, count in arrived.items() if count > 1}
    assert not twice, f"arrived more than once: {twice} of {number} in {kills} lives"
    assert arrived, "nothing arrived at all"
    print(f"{kills} kills, {number} changes, {len(arrived)} arrived, none twice")
    return arrived


def test_no_message_arrives_twice_after_kill_9_of_the_sender(
    tmp_path: Path, rng: random.Random, size: Callable[..., int]
) -> None:
    prove(tmp_path, rng, range(1, 1 + size(60, test=1)))


FORGETFUL = """
from argosy.features.notifications.notification_pass_state import NotificationPass

async def forget(self, cluster):
    pass

NotificationPass.write_annotations = forget
"""


@pytest.mark.tier("all", "prove")
def test_proof_detects_a_sender_that_does_not_record_deliveries(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(AssertionError, match="arrived more than once: "):
        prove(tmp_path, rng, range(1), bug=FORGETFUL)
