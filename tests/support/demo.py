"""Starts the real `argosy demo` for tests, and runs commands against it.

In: a home and flags. Out: a Demo. Never: leaves a process behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.clusters import KUBECTL, Endpoint, environment
from support.deadlines import HANG_SECONDS
from support.failure_report import record_log
from support.forked_commands import Started, run, start


class Demo:
    def __init__(self, process: Started | subprocess.Popen[str], printed: str, home: Path, log: Path) -> None:
        self.process, self.printed, self.home, self.log = process, printed, home, log
        self.where: dict[str, Any] = json.loads(self.argosy("demo", "status", "-o", "json"))

    def argosy(self, *words: str, code: int = 0) -> str:
        """Run a command and return its stdout. Like a user's second shell, it shares only the home."""
        done = run(words, env=own(self.home), timeout=HANG_SECONDS)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def argosy_said(self, *words: str, code: int = 0) -> str:
        """Run a command and return its stderr."""
        done = run(words, env=own(self.home), timeout=HANG_SECONDS)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr

    def kubectl(self, *words: str, editor: str = "") -> str:
        """`editor` is a command that edits the file like a user in an editor."""
        more = {"KUBE_EDITOR": editor} if editor else {}
        done = self._run([str(KUBECTL), "--kubeconfig", self.where["kubeconfig"], *words], **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def git(self, *words: str) -> str:
        author_flags = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        done = self._run(["git", *author_flags, *words])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        env = {**own(self.home), **more}
        return subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=HANG_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def apps(self) -> dict[str, dict[str, Any]]:
        """The Applications by name; read without starting a process, because tests poll this."""
        endpoint = Endpoint.of_kubeconfig(Path(self.where["kubeconfig"]).read_text())
        items = endpoint.request("GET", "/apis/argoproj.io/v1alpha1/applications").json()["items"]
        return {application["metadata"]["name"]: application for application in items}

    def words(self, name: str) -> tuple[str, str]:
        """Sync and health status."""
        status = self.apps()[name].get("status") or {}
        return status.get("sync", {}).get("status", ""), status.get("health", {}).get("status", "")

    def until(self, holds: Callable[[], Any]) -> Any:
        ends = time.monotonic() + HANG_SECONDS
        while time.monotonic() < ends:
            with contextlib.suppress(LookupError):
                if result := holds():
                    return result
            time.sleep(0.1)
        raise AssertionError(f"it never came true; {json.dumps(self.apps(), indent=1)[-6000:]}")

    def end(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)
        self.process.wait(HANG_SECONDS)


def own(home: Path) -> dict[str, str]:
    """The environment with the tested code, if that is not the installed one."""
    path = os.environ.get("PYTHONPATH")
    return {**environment(home), **({"PYTHONPATH": path} if path else {})}


@contextlib.contextmanager
def demo(home: Path, *flags: str) -> Iterator[Demo]:
    """Start a demo, wait until it is ready, and stop it afterwards."""
    home.mkdir(exist_ok=True)
    log = record_log(home / "demo.log")
    with log.open("a") as errors:
        process = start(["demo", *flags], env=own(home), stderr=errors.fileno())
    try:
        yield Demo(process, printed(process, log), home, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def printed(process: Started | subprocess.Popen[str], log: Path) -> str:
    """Its output up to the line that says how to stop it."""
    assert process.stdout is not None
    output = ""
    watchdog = threading.Timer(HANG_SECONDS, process.kill)
    watchdog.start()
    try:
        while "Ctrl-C" not in output:
            line = process.stdout.readline()
            assert line, f"the demo did not become ready: {log.read_text()[-3000:]}"
            output += line
    finally:
        watchdog.cancel()
    return output
