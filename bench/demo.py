"""How long people wait in the demo: for it, for a change that they pushed, for a rollback, for its end.

Prints a table, each figure with its limit. Exits 1 where one is not kept. All is typed as people type it, the start of
each command included.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.demo import Demo, demo

OVERLAYS = "llmops-via-argocd/deploy_model/overlays"
LIMIT = "limits/cpu\n        value: "
GOOD = ("Synced", "Healthy")
LIMITS = {
    "`argosy demo` to ready": 5.0,
    "`git push` to dev Synced and Healthy": 5.0,
    "`argosy app sync` of production, the first": 10.0,
    "`argosy app rollback` of production": 5.0,
    "`kill -9`, and started again to ready": 5.0,
    "Ctrl-C to its end": 2.0,
}


def timed(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def pushed(running: Demo, work: Path, tier: str, old: str, new: str) -> str:
    file = work / OVERLAYS / tier / "kustomization.yaml"
    file.write_text(file.read_text().replace(f'{LIMIT}"{old}"', f'{LIMIT}"{new}"'))
    running.git("-C", str(work), "commit", "-qam", f"{tier}: {new} CPUs")
    running.git("-C", str(work), "push", "-q")
    return running.git("-C", str(work), "rev-parse", "HEAD").strip()


def followed(running: Demo, name: str, commit: str) -> bool:
    return running.words(name) == GOOD and running.apps()[name]["status"]["sync"]["revision"] == commit


def released(running: Demo, work: Path) -> float:
    """Production twice, and back."""
    name = "llmops-production"
    first = timed(lambda: running.argosy("app", "sync", name))
    running.until(lambda: running.words(name) == GOOD)
    pushed(running, work, "production", "4", "6")
    running.until(lambda: running.words(name)[0] == "OutOfSync")
    running.argosy("app", "sync", name)
    return first


def measured(folder: Path) -> list[float]:
    home, work, options = folder / "home", folder / "work", ("--data-dir", str(folder / "kept"), "--api-port", "0")
    with demo(home, *options) as running:
        ready = read_ready_seconds(running)
        running.git("clone", "-q", running.where["repository"], str(work))
        commit = pushed(running, work, "dev", "2", "3")
        push = timed(lambda: running.until(lambda: followed(running, "llmops-dev", commit)))
        sync = released(running, work)
        rollback = timed(lambda: running.argosy("app", "rollback", "llmops-production"))
        running.process.kill()
        running.process.wait()
    with demo(home, *options) as running:
        return [ready, push, sync, rollback, read_ready_seconds(running), timed(lambda: running.end(signal.SIGINT))]


def read_ready_seconds(running: Demo) -> float:
    """The seconds of `demo ready in 3.4 s`."""
    return float(running.printed.split("ready in ")[1].split()[0])


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        seconds_by_name = dict(zip(LIMITS, measured(Path(folder)), strict=True))
    print("| what | seconds | limit |\n|---|---|---|")
    for name, seconds in seconds_by_name.items():
        print(f"| {name} | {seconds:.1f} | {LIMITS[name]:g} |")
    return int(any(seconds > LIMITS[name] for name, seconds in seconds_by_name.items()))


if __name__ == "__main__":
    sys.exit(main())
