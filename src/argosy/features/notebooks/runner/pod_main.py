"""The runner in a Pod: what `__main__` of the archive calls.

In: an errand, a file of JSON: an order, where to tell of it, which folders are claims. Out: lines for who reads the
Pod's log, a report while it runs, and last words. Never: imports what an image may lack before it has looked for it;
tells a value of a Secret that the notebook was given.
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
    signal.signal(signal.SIGTERM, _asked_to_end)  # else the first process of a container ignores it
    try:
        errand = json.loads(Path(arguments[0]).read_bytes())
        order = Order.load(json.dumps(errand["order"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        ours = isinstance(error, OrderError)
        said = str(error) if ours else f"the errand cannot be read ({error}); run the job again"
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
    found = results or _refused("the runner left no results; see the Pod's log", EXECUTION)
    return _end(cleaner.results(found), report)


def _asked_to_end(*_: object) -> None:
    """At once, and without last words: who ends a Pod from outside has not judged the notebook. The kernel follows."""
    os._exit(ASKED_TO_END)


def _run(order: Order, report: Report, cleaner: Cleaner) -> int:
    """In a thread of its own: in the first one, nbclient would take the signals that ask this process to end."""
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
    """Why notebooks cannot run in this image; what is missing is installed first, where that is possible."""
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
        sys.path.append(user)  # it was made just now
    if done.returncode == 0 and all(importlib.util.find_spec(name) for name in missing):
        return ""
    return f"the image has no {', '.join(missing)}, and they could not be installed; take an image that has them"


# -- while it runs


@contextlib.contextmanager
def _following(events: str, report: Report, cleaner: Cleaner) -> Iterator[None]:
    """Tells of events as they are written."""
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
    """With less of each cell's output, where all of it is too much for a ConfigMap."""
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
