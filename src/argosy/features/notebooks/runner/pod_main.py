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

from argosy.features.notebooks.runner import written_file_digests
from argosy.features.notebooks.runner.failure_category_names import CONFIGURATION, DEPENDENCY, EXECUTION
from argosy.features.notebooks.runner.mounted_secrets import read_mounted_secrets
from argosy.features.notebooks.runner.progress_config_map_report import MAX_REPORT_BYTES, ProgressReporter
from argosy.features.notebooks.runner.run_request import RunRequest, RunRequestError
from argosy.features.notebooks.runner.termination_message import pack_results
from argosy.observability.redaction.text_redaction import ValueRedactor

TERMINATION_LOG_PATH: Final = "/dev/termination-log"
REQUIRED_PACKAGES: Final = ("nbclient", "nbformat", "ipykernel")
UNREADABLE_EXIT_CODE, SIGTERM_EXIT_CODE = 2, 143
REPORT_INTERVAL_SECONDS: Final = 1.0  # seconds between two reports
RESULTS_HEADING: Final = "Results Summary:"


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _on_sigterm)  # otherwise the first process of a container ignores SIGTERM
    try:
        pod_input = json.loads(Path(arguments[0]).read_bytes())
        request = RunRequest.from_json(json.dumps(pod_input["order"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        is_request_error = isinstance(error, RunRequestError)
        message = str(error) if is_request_error else f"cannot read the run configuration ({error}); run the job again"
        return _finish(_build_failed_results(message, CONFIGURATION), ProgressReporter(""))
    report = ProgressReporter(str(pod_input.get("report") or ""))
    redactor = ValueRedactor(read_mounted_secrets(pod_input.get("secrets") or ()))
    if missing_error := _install_missing_packages():
        return _finish(_build_failed_results(missing_error, DEPENDENCY), report)
    run_start = written_file_digests.RunStart()
    code = _run_in_thread(request, report, redactor)
    results = _load_results(request)
    if code == 0 and results is not None:
        claims = [(claim, claim) for claim in pod_input.get("claims") or ()]
        results["artefacts"] = written_file_digests.list_written_files(claims, run_start.earliest_file_time())
    final_results = results or _build_failed_results("the runner wrote no results; see the logs of the Pod", EXECUTION)
    return _finish(redactor.redact_strings(final_results), report)


def _on_sigterm(*_: object) -> None:
    """Exit at once, without a termination message: a Pod ended from outside has not validated the notebook. The kernel
    ends with it.
    """
    os._exit(SIGTERM_EXIT_CODE)


def _run_in_thread(request: RunRequest, report: ProgressReporter, redactor: ValueRedactor) -> int:
    """Run in another thread: in the main thread, nbclient would take the signals that ask this process to end."""
    from argosy.features.notebooks.runner.run_of_notebook import execute_request

    codes: list[int] = []

    def execute_in_thread() -> None:
        try:
            codes.append(execute_request(request))
        except RunRequestError as error:
            print(error, file=sys.stderr)

    thread = threading.Thread(target=execute_in_thread, daemon=True)
    with _follow_events(request.events, report, redactor):
        thread.start()
        thread.join()
    return codes[0] if codes else UNREADABLE_EXIT_CODE


def _install_missing_packages() -> str:
    """Install missing packages if possible; returns why notebooks cannot run in this image, or ""."""
    missing = [name for name in REQUIRED_PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    print(f"installing {', '.join(missing)}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--user", "--quiet", *missing]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    importlib.invalidate_caches()
    import site

    user_site = site.getusersitepackages()
    if os.path.isdir(user_site) and user_site not in sys.path:
        sys.path.append(user_site)  # created just now
    if completed.returncode == 0 and all(importlib.util.find_spec(name) for name in missing):
        return ""
    return f"the image lacks {', '.join(missing)}, and installing them failed; use an image that contains them"


# -- while it runs


@contextlib.contextmanager
def _follow_events(events: str, report: ProgressReporter, redactor: ValueRedactor) -> Iterator[None]:
    """Log and report events as they are written."""
    is_over = threading.Event()
    thread = threading.Thread(target=_follow_file, args=(events, report, redactor, is_over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(timeout=30.0)


def _follow_file(events: str, report: ProgressReporter, redactor: ValueRedactor, is_over: threading.Event) -> None:
    logged_characters, reported_characters, is_last = 0, 0, False
    with open(f"{os.path.dirname(events)}/execution.log", "a", encoding="utf-8") as log:
        while not is_last:
            is_last = is_over.wait(REPORT_INTERVAL_SECONDS)
            with contextlib.suppress(OSError):
                text = Path(events).read_text(encoding="utf-8")
                complete_lines = text[: text.rfind("\n") + 1]
                _log_events(redactor.redact_text(complete_lines[logged_characters:]), log)
                logged_characters = len(complete_lines)
                if reported_characters != logged_characters and report.send(
                    {"events.jsonl": redactor.redact_text(_fit_into_report(complete_lines))}
                ):
                    reported_characters = logged_characters


def _fit_into_report(lines: str, max_bytes: int = MAX_REPORT_BYTES) -> str:
    """Shorten cell outputs until the events fit into a ConfigMap."""
    for max_characters in (400, 40, 0):
        if len(lines) <= max_bytes:
            break
        events = [json.loads(line) for line in lines.splitlines()]
        shortened_events = [
            {name: _truncate(value, max_characters) for name, value in event.items()} for event in events
        ]
        lines = "".join(json.dumps(event) + "\n" for event in shortened_events if event.get("event") != "begun")
    return lines


def _truncate(value: Any, max_characters: int) -> Any:
    # Names and states have at most 20 characters.
    return value[:max_characters] if isinstance(value, str) and len(value) > 20 else value


def _log_events(lines: str, log: IO[str]) -> None:
    for line in lines.splitlines():
        event = json.loads(line)
        if event.get("event") == "cell":
            error_text = f" {event['errorMessage']}" if event.get("errorMessage") else ""
            message = f"cell {event['cell']} {event['type']} {event['status']} {event['seconds']:.1f} s{error_text}"
        elif event.get("event") == "started":
            message = f"{event['cells']} cells, {event['code']} of them code"
        else:
            continue
        for file in (sys.stdout, log):
            print(message, file=file, flush=True)


# -- at its end


def _load_results(request: RunRequest) -> dict[str, Any] | None:
    try:
        results = json.loads(Path(request.results).read_bytes())
    except (OSError, ValueError):
        return None
    return results if isinstance(results, dict) else None


def _build_failed_results(error: str, category: str) -> dict[str, Any]:
    return {
        "status": "failed", "error": error, "error_category": category, "exit_code": UNREADABLE_EXIT_CODE, "cells": [],
        "statistics": {"total_cells": 0, "code_cells": 0, "succeeded_cells": 0, "failed_cells": 0,
                       "success_rate": 0.0},
    }  # fmt: skip


def _finish(results: dict[str, Any], report: ProgressReporter) -> int:
    text = json.dumps(results)
    print(f"{RESULTS_HEADING}\n{text}", flush=True)
    report.send({"results.json": text})
    with contextlib.suppress(OSError):
        Path(os.environ.get("TERMINATION_LOG") or TERMINATION_LOG_PATH).write_text(
            pack_results(results), encoding="utf-8"
        )
    return int(results["exit_code"])
