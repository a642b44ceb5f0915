"""Upgrades and downgrades as a rolling update of a Deployment: a new controller starts, then an old one stops.

`ARGOSY_PREVIOUS`: a folder with the modules of the previous version, such as `src` of a checkout. Without it, both
versions are the current one.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.deadlines import HANG_SECONDS
from support.sharded_controllers import Controller, SharedWork, shared_work

pytestmark = pytest.mark.tier("all")
PREVIOUS = os.environ.get("ARGOSY_PREVIOUS", "")
APPLICATIONS = 30


@contextmanager
def changes(work: SharedWork) -> Iterator[None]:
    """Push commits and request syncs while the block runs."""
    is_over, rng = threading.Event(), random.Random(3)

    def keep_changing() -> None:
        number = 0
        while not is_over.wait(1.0):
            number += 1
            work.push(f"change {number}")
            work.sync(rng.choice(work.apps))

    thread = threading.Thread(target=keep_changing)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=HANG_SECONDS):
            return True
    except OSError:  # not listening yet, or 503
        return False


def replaced(work: SharedWork, old: Controller, members: int) -> float:
    """Start a new controller; when it is ready, stop the old one.

    Return the seconds from the end of the old one until other controllers had claimed all its Applications.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    work.start("--shards", "auto", "--port", str(port))
    work.until(HANG_SECONDS, lambda: is_ready(port), "the new one is ready")
    assert len(work.members()) == members + 1
    had = {app: len(app_claims) for app in work.apps if (app_claims := list(work.claims(app)))[-1].member == old.name}

    def taken() -> list[float]:
        """Times of the first claim by another controller, for the Applications that have one."""
        others = (
            [claim for claim in work.claims(app)[claim_count:] if claim.member != old.name]
            for app, claim_count in had.items()
        )
        return [claims[0].done for claims in others if claims]

    old.end(signal.SIGTERM)
    work.until(HANG_SECONDS, lambda: len(taken()) == len(had), "what it had is another's")
    assert old.process.wait(HANG_SECONDS) == 0
    work.until(HANG_SECONDS, lambda: work.are_shared(members), "the others share the work")
    return max([*taken(), old.ended_at]) - old.ended_at


def check(work: SharedWork, gaps: list[float]) -> None:
    head = work.push("the last change")
    work.until(HANG_SECONDS, lambda: work.are_synced(head), "everything is as Git asks")
    print("gaps of " + ", ".join(f"{gap:.2f} s" for gap in gaps))
    assert not work.faults()
    assert not work.hooks_made_twice()


def test_rolling_update_hands_over_applications_without_repeating_hooks(tmp_path: Path) -> None:
    with shared_work(tmp_path, APPLICATIONS, source=PREVIOUS) as work:
        old = list(work.controllers)
        with changes(work):
            gaps = [replaced(work, controller, len(old)) for controller in old]
        check(work, gaps)
        assert not any(controller in old for controller in work.living)


def test_replacing_a_single_controller_repeats_no_hooks(tmp_path: Path) -> None:
    with shared_work(tmp_path, APPLICATIONS, controllers=1, source=PREVIOUS) as work:
        with changes(work):
            gaps = [replaced(work, work.controllers[0], 1)]
        check(work, gaps)


def test_downgraded_controller_takes_over_from_newer_version(tmp_path: Path) -> None:
    """The previous version reads what the new version wrote."""
    with shared_work(tmp_path, APPLICATIONS, controllers=1) as work:
        new = work.controllers[0]
        with changes(work):
            work.start(source=PREVIOUS)
            work.until(HANG_SECONDS, lambda: work.are_shared(2), "the old one is a member")
            new.end(signal.SIGTERM)
            work.until(HANG_SECONDS, lambda: work.are_shared(1), "it is alone")
        check(work, [0.0])
