"""`argosy notebook run|validate`: one line per cell while it runs, then a summary."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import keep_exit_code, print_failure
from argosy.cli.exit_codes import EXIT_INTERRUPTED, EXIT_NEGATIVE, EXIT_OK
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.cli.tables import TerminalOutput, drop_control_characters, format_count
from argosy.features.notebooks.files.cli import comparison_to_wire, read_comparison
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.notebooks.files.notebook_file_run import FinishedRun, NotebookRunRequest
    from argosy.features.notebooks.files.per_cell_run_summary import NotebookRunSummary

TITLE_WIDTH = 42
MAX_STDERR_LINES = 20  # lines of standard error
CLEAR_LINE = "\r\x1b[K"  # clears the line on a terminal


def run(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.parameter_flags import collect_parameters

    parameters = collect_parameters(args.param, args.raw_param, args.params_file)
    try:
        finished_run = _run_notebook(args, _build_request(args, args.file, parameters, args.golden))
    except KeyboardInterrupt:
        return _report_early_interrupt(args.file)
    _copy_reports(args, finished_run)
    with keep_exit_code(
        EXIT_INTERRUPTED if finished_run.is_interrupted else EXIT_OK if finished_run.summary.passed else EXIT_NEGATIVE
    ) as code:
        if args.output == "json":
            print_document(_run_to_wire(finished_run, args), "json")
        else:
            _print_summary(finished_run, args)
        sys.stdout.flush()
        if finished_run.is_interrupted:
            _report_interrupt(finished_run, args)
        elif not finished_run.summary.passed:
            print_failure(
                f"{args.file} failed",
                drop_control_characters(finished_run.summary.error),
                _suggest_next_step(finished_run, args),
            )
    return code


def validate(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.junit import render_junit
    from argosy.features.notebooks.files.notebook_file import write_atomically

    finished_runs: list[FinishedRun] = []
    interrupted_early: Path | None = None
    for path in args.paths:
        try:
            finished_run = _run_notebook(args, _build_request(args, path, {}, path))
        except KeyboardInterrupt:
            interrupted_early = path
            break
        finished_runs.append(finished_run)
        if args.output == "text":
            _print_summary(finished_run, args)
        if finished_run.is_interrupted:
            break
    if args.junit:
        write_atomically(args.junit, render_junit([finished.summary for finished in finished_runs]))
    failed_runs = [finished for finished in finished_runs if not finished.summary.passed]
    is_interrupted = interrupted_early is not None or any(finished.is_interrupted for finished in finished_runs)
    with keep_exit_code(EXIT_INTERRUPTED if is_interrupted else EXIT_NEGATIVE if failed_runs else EXIT_OK) as code:
        if args.output == "json":
            items = [_run_to_wire(finished, args) for finished in finished_runs]
            print_document({"apiVersion": CLI_API_VERSION, "kind": "NotebookRunList", "items": items}, "json")
        sys.stdout.flush()
        if interrupted_early is not None:
            _report_early_interrupt(interrupted_early)
        elif is_interrupted:
            _report_interrupt(finished_runs[-1], args)
        elif failed_runs:
            summary_text = f"{len(failed_runs)} of {format_count(len(finished_runs), 'notebook')} failed"
            print_failure(
                summary_text,
                drop_control_characters(failed_runs[0].summary.error),
                _suggest_next_step(failed_runs[0], args),
            )
    return code


def _report_early_interrupt(path: Path) -> int:
    print(
        f"argosy: {drop_control_characters(str(path))} was interrupted before its first cell; nothing was saved",
        file=sys.stderr,
    )
    return EXIT_INTERRUPTED


def _report_interrupt(finished_run: FinishedRun, args: argparse.Namespace) -> None:
    """Say where the partial results are. A new run starts with the first cell."""
    summary_text = (
        f"{drop_control_characters(finished_run.summary.notebook)} was interrupted; partial results were saved"
    )
    advice = f"see {_choose_path(args, 'report', finished_run)}; a new run starts with the first cell"
    print_failure(summary_text, drop_control_characters(finished_run.summary.error), advice)


def _build_request(
    args: argparse.Namespace, path: Path, parameters: dict[str, Any], golden: Path | None
) -> NotebookRunRequest:
    from argosy.features.notebooks.files import run_records
    from argosy.features.notebooks.files.notebook_file_run import NotebookRunRequest
    from argosy.features.notebooks.go_durations import parse_duration

    read_comparison(args)
    return NotebookRunRequest(
        path,
        parameters,
        golden,
        comparison_to_wire(args),
        validation_to_wire(args),
        parse_duration(args.timeout, "--timeout"),
        parse_duration(args.cell_timeout, "--cell-timeout") if args.cell_timeout else 0.0,
        args.kernel,
        args.runs or run_records.DEFAULT_FOLDER,
    )


def validation_to_wire(args: argparse.Namespace) -> dict[str, Any]:
    """Validation settings in the format of the job spec."""
    return {
        "level": args.level,
        "strictMode": args.strict,
        "failOnStderr": args.fail_on_stderr,
        "failOnWarnings": args.fail_on_warnings,
        "detectSilentFailures": not args.no_silent_failures,
        "requireExplicitExitCodes": args.require_exit_codes,
        "checkOutputTypes": args.check_output_types,
        "verifyAssertions": args.verify_assertions,
    }


def _run_notebook(args: argparse.Namespace, request: NotebookRunRequest) -> FinishedRun:
    from argosy.features.notebooks.files.notebook_file import load_notebook
    from argosy.features.notebooks.files.notebook_file_run import run_notebook
    from argosy.features.notebooks.files.per_cell_run_summary import build_title

    if args.quiet:
        return run_notebook(request, datetime.now(), lambda event: None)
    titles = [build_title(cell) for cell in load_notebook(request.notebook)["cells"]]
    # Data goes to stdout, so these lines go to stderr if the output is data.
    printer = CellLinePrinter(titles, sys.stdout if args.output == "text" else sys.stderr)
    finished_run = run_notebook(request, datetime.now(), printer.on_event)
    printer.print_pending_cell()
    return finished_run


class CellLinePrinter:
    """Prints one line per cell, once the findings of the cell are known."""

    def __init__(self, titles: list[str], stream: Any) -> None:
        self._titles, self._stream, self._screen = titles, stream, TerminalOutput(stream)
        self._is_live = self._screen.width is not None and os.environ.get("TERM") != "dumb"
        self._done_count = self._code_cell_count = 0
        self._pending_event: dict[str, Any] | None = None
        self._findings: list[dict[str, Any]] = []

    def on_event(self, event: dict[str, Any]) -> None:
        name = event["event"]
        if name == "started":
            self._code_cell_count = int(event["code"])
        elif name == "finding":
            self._findings.append(event)
        elif name == "cell" and event["type"] == "code":
            self.print_pending_cell()
            self._pending_event = event
        elif name in ("begun", "finished"):
            self.print_pending_cell()
            if name == "begun" and self._is_live:
                self._print_running_cell(int(event["cell"]))

    def _print_running_cell(self, index: int) -> None:
        """Print a line that is overwritten when the cell ends; only on a terminal."""
        mark = self._screen.format_status("Progressing").replace(" Progressing", "")
        print(
            f"{CLEAR_LINE}{self._render_line(index, self._done_count + 1, mark)}", end="", file=self._stream, flush=True
        )

    def print_pending_cell(self) -> None:
        event, self._pending_event = self._pending_event, None
        if event is None:
            return
        self._done_count += 1
        index = event["cell"]
        cell_findings = [finding for finding in self._findings if finding["cell"] == index]
        time = f"{event['seconds']:.1f}s" if event["status"] != "Skipped" else "skipped"
        message_text = "; ".join(finding["message"] for finding in cell_findings) or event.get("errorMessage") or ""
        line = (
            f"{self._render_line(index, self._done_count, self._choose_mark(event, cell_findings))} {time:>8}  "
            f"{drop_control_characters(message_text)}"
        )
        print(f"{CLEAR_LINE if self._is_live else ''}{line.rstrip()}", file=self._stream, flush=True)

    def _render_line(self, index: int, number: int, mark: str) -> str:
        title = drop_control_characters(self._titles[index] if index < len(self._titles) else "")
        return (
            f" {number:>{len(str(self._code_cell_count))}}/{self._code_cell_count}  cell {index:<3} {mark} "
            f"{title:<{TITLE_WIDTH}}"
        )

    def _choose_mark(self, event: dict[str, Any], cell_findings: list[dict[str, Any]]) -> str:
        if event["status"] == "Failure":
            return self._screen.format_failure("").replace(" ", "")
        word = "Missing" if event["status"] == "Skipped" else "OutOfSync" if cell_findings else "Healthy"
        return self._screen.format_status(word).replace(f" {word}", "")


def _print_summary(finished_run: FinishedRun, args: argparse.Namespace) -> None:
    from argosy.features.notebooks.files.html_report import describe_golden_comparison

    summary, screen = finished_run.summary, TerminalOutput(sys.stdout)
    for line in _describe_failed_cells(finished_run):
        print(line)
    for finding in summary.notebook_findings:
        print(f"  {finding['severity']}: {drop_control_characters(finding['message'])}")
    for remark in summary.remarks:
        print_message(f"note: {drop_control_characters(remark)}")
    if summary.golden is not None and summary.golden.note:
        print_message(f"note: {summary.golden.note}")
    parts = [format_count(int(summary.statistics["code_cells"]), "code cell"), f"{summary.seconds:.1f}s"]
    if summary.findings:
        blocking = sum(summary.is_blocking(finding) for finding in summary.findings)
        parts.append(f"{format_count(len(summary.findings), 'finding')}{f', {blocking} blocking' if blocking else ''}")
    if line := describe_golden_comparison(summary):
        parts.append(f"golden: {drop_control_characters(line)}")
    result_word = (
        screen.format_status("Healthy").replace("Healthy", "PASSED")
        if summary.passed
        else screen.format_failure("FAILED")
    )
    print(f"{result_word}  {', '.join(parts)}")
    print(f"  report {_choose_path(args, 'report', finished_run)}   junit {_choose_path(args, 'junit', finished_run)}")
    print(f"  executed notebook {finished_run.run.executed}")


def _describe_failed_cells(finished_run: FinishedRun) -> list[str]:
    """The failing lines of the cell, the error, and the last lines of its standard error."""
    from argosy.features.notebooks.files.notebook_file import load_notebook
    from argosy.features.notebooks.files.per_cell_run_summary import list_failing_lines
    from argosy.features.notebooks.runner.cell_source_and_tags import read_stream

    lines: list[str] = []
    cells = load_notebook(finished_run.run.executed)["cells"]
    for cell_summary in finished_run.summary.cells:
        if cell_summary.status == "failed":
            cell = cells[cell_summary.index]
            lines += [
                "",
                *(f"  {drop_control_characters(line)}" for line in list_failing_lines(cell, cell_summary.traceback)),
                f"  {drop_control_characters(cell_summary.error)}",
            ]
            errors = read_stream(cell, "stderr").splitlines()[-MAX_STDERR_LINES:]
            lines += (
                ["  standard error:", *(f"    {drop_control_characters(line)}" for line in errors)] if errors else []
            )
            lines.append("")
    return lines


def _choose_path(args: argparse.Namespace, name: str, finished_run: FinishedRun) -> Path:
    chosen_path = getattr(args, name, None)
    return Path(chosen_path) if chosen_path and args.part == "run" else getattr(finished_run.run, name)


def _copy_reports(args: argparse.Namespace, finished_run: FinishedRun) -> None:
    from argosy.features.notebooks.files.notebook_file import write_atomically

    for target_path, source_path in ((args.report, finished_run.run.report), (args.junit, finished_run.run.junit)):
        if target_path:
            write_atomically(target_path, source_path.read_text(encoding="utf-8"))


def _suggest_next_step(finished_run: FinishedRun, args: argparse.Namespace) -> str:
    summary: NotebookRunSummary = finished_run.summary
    if summary.golden is not None and summary.golden.differences and "golden" in summary.error:
        cells = ",".join(str(entry.cell) for entry in summary.golden.differences[:10])
        return f"if this is intended: argosy notebook accept {Path(summary.notebook).stem} --cells {cells}"
    if missing := finished_run.results.get("packages_missing"):
        return f"pip install {' '.join(missing)} for the Python that runs argosy, or choose another --kernel"
    blocking_findings = [entry for entry in summary.findings if summary.is_blocking(entry) and entry.get("suggestion")]
    if blocking_findings:
        return drop_control_characters(str(blocking_findings[0]["suggestion"]))
    return f"see {_choose_path(args, 'report', finished_run)}"


def _run_to_wire(finished_run: FinishedRun, args: argparse.Namespace) -> dict[str, Any]:
    files = {
        "report": str(_choose_path(args, "report", finished_run)),
        "junit": str(_choose_path(args, "junit", finished_run)),
    }
    files["executed"] = str(finished_run.run.executed)
    return {"apiVersion": CLI_API_VERSION, "kind": "NotebookRun", **finished_run.results, "files": files}
