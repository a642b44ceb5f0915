"""Entry point of the runner in a Pod, called by `__main__` of the archive.

In: a JSON file with the run request, the ConfigMap to report to and the folders of volume claims. Out: log lines, a
progress report while the notebook runs, and the termination message. Never: imports a package before checking that the
image has it; prints the value of a Secret that the notebook was given.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from argosy.features.notebooks.runner import artefacts
from argosy.features.notebooks.runner.categories import CONFIGURATION, DEPENDENCY, EXECUTION
from argosy.features.notebooks.runner.order import Order, OrderError
from argosy.features.notebooks.runner.progress_report import MOST_BYTES, Report
from argosy.features.notebooks.runner.redaction import Cleaner
from argosy.features.notebooks.runner.termination_message import pack

LAST_WORDS: Final = "/dev/termination-log"
NEEDS: Final = ("nbclient", "nbformat", "ipykernel")
UNREADABLE, ASKED_TO_END = 2, 143
PACE: Final = 1.0  # seconds between two reports
SUMMARY: Final = "Results Summary:"


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _asked_to_end)  # otherwise the first process of a container ignores SIGTERM
    try:
        errand = json.loads(Path(arguments[0]).read_bytes())
        order = Order.load(json.dumps(errand["order"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        ours = isinstance(error, OrderError)
        said = str(error) if ours else f"cannot read the run configuration ({error}); run the job again"
        return _end(_refused(said, CONFIGURATION), Report(""))
    report, cleaner = Report(str(errand.get("report") or "")), Cleaner(errand.get("secrets") or ())
    if lacking := _lacking():
        return _end(_refused(lacking, DEPENDENCY), report)
    start = artefacts.RunStart()
    code = _run(order, report, cleaner)
    results = _results(order)
    if code == 0 and results is not None:
        claims = [(claim, claim) for claim in errand.get("claims") or ()]
        results["artefacts"] = artefacts.of(claims, start.earliest_file_time())
    found = results or _refused("the runner wrote no results; see the logs of the Pod", EXECUTION)
    return _end(cleaner.results(found), report)


def _asked_to_end(*_: object) -> None:
    """Exit at once, without a termination message: a Pod ended from outside has not validated the notebook. The kernel
    ends with it.
    """
    os._exit(ASKED_TO_END)


def _run(order: Order, report: Report, cleaner: Cleaner) -> int:
    """Run in another thread: in the main thread, nbclient would take the signals that ask this process to end."""
    from argosy.features.notebooks.runner.run import run

    codes: list[int] = []

    def work() -> None:
        try:
            codes.append(run(order))
        except OrderError as error:
            print(error, file=sys.stderr)

    thread = threading.Thread(target=work, daemon=True)
    with _following(order.events, report, cleaner):
        thread.start()
        thread.join()
    return codes[0] if codes else UNREADABLE


def _lacking() -> str:
    """Install missing packages if possible; returns why notebooks cannot run in this image, or ""."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    print(f"installing {', '.join(missing)}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--user", "--quiet", *missing]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    importlib.invalidate_caches()
    import site

    user = site.getusersitepackages()
    if os.path.isdir(user) and user not in sys.path:
        sys.path.append(user)  # created just now
    if done.returncode == 0 and all(importlib.util.find_spec(name) for name in missing):
        return ""
    return f"the image lacks {', '.join(missing)}, and installing them failed; use an image that contains them"


# -- while it runs


@contextlib.contextmanager
def _following(events: str, report: Report, cleaner: Cleaner) -> Iterator[None]:
    """Log and report events as they are written."""
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(events, report, cleaner, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=30.0)


def _follow(events: str, report: Report, cleaner: Cleaner, over: threading.Event) -> None:
    told, taken, last = 0, 0, False
    with open(f"{os.path.dirname(events)}/execution.log", "a", encoding="utf-8") as log:
        while not last:
            last = over.wait(PACE)
            with contextlib.suppress(OSError):
                text = Path(events).read_text(encoding="utf-8")
                whole = text[: text.rfind("\n") + 1]
                _show(cleaner.text(whole[told:]), log)
                told = len(whole)
                if taken != told and report.send({"events.jsonl": cleaner.text(_fitting(whole))}):
                    taken = told


def _fitting(lines: str, most: int = MOST_BYTES) -> str:
    """Shorten cell outputs until the events fit into a ConfigMap."""
    for short in (400, 40, 0):
        if len(lines) <= most:
            break
        events = [json.loads(line) for line in lines.splitlines()]
        cut = [{name: _cut(value, short) for name, value in event.items()} for event in events]
        lines = "".join(json.dumps(event) + "\n" for event in cut if event.get("event") != "begun")
    return lines


def _cut(value: Any, most: int) -> Any:
    return value[:most] if isinstance(value, str) and len(value) > 20 else value  # names and states are shorter


def _show(lines: str, log: IO[str]) -> None:
    for line in lines.splitlines():
        event = json.loads(line)
        if event.get("event") == "cell":
            why = f" {event['errorMessage']}" if event.get("errorMessage") else ""
            said = f"cell {event['cell']} {event['type']} {event['status']} {event['seconds']:.1f} s{why}"
        elif event.get("event") == "started":
            said = f"{event['cells']} cells, {event['code']} of them code"
        else:
            continue
        for file in (sys.stdout, log):
            print(said, file=file, flush=True)


# -- at its end


def _results(order: Order) -> dict[str, Any] | None:
    try:
        found = json.loads(Path(order.results).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _refused(error: str, category: str) -> dict[str, Any]:
    return {
        "status": "failed", "error": error, "error_category": category, "exit_code": UNREADABLE, "cells": [],
        "statistics": {"total_cells": 0, "code_cells": 0, "succeeded_cells": 0, "failed_cells": 0,
                       "success_rate": 0.0},
    }  # fmt: skip


def _end(results: dict[str, Any], report: Report) -> int:
    text = json.dumps(results)
    print(f"{SUMMARY}\n{text}", flush=True)
    report.send({"results.json": text})
    with contextlib.suppress(OSError):
        Path(os.environ.get("TERMINATION_LOG") or LAST_WORDS).write_text(pack(results), encoding="utf-8")
    return int(results["exit_code"])
