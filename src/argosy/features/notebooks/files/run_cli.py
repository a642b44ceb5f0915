"""`argosy notebook run|validate`: one line per cell while it runs, then a summary."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import answering, say
from argosy.cli.exit_codes import DONE, INTERRUPTED, NO
from argosy.cli.tables import Screen, counted, plain
from argosy.cli.verbs import print_data, talk
from argosy.features.notebooks.files.read_cli import comparison, comparison_of

if TYPE_CHECKING:
    from argosy.features.notebooks.files.service import Played, Request
    from argosy.features.notebooks.files.summary import Summary

WIDTH = 42
LAST_LINES = 20  # lines of standard error
CLEAR = "\r\x1b[K"  # clears the line on a terminal


def run(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.parameter_values import given

    parameters = given(chosen.param, chosen.raw_param, chosen.params_file)
    try:
        played = _perform(chosen, _request(chosen, chosen.file, parameters, chosen.golden))
    except KeyboardInterrupt:
        return _interrupted_early(chosen.file)
    _copy(chosen, played)
    with answering(INTERRUPTED if played.is_interrupted else DONE if played.summary.passed else NO) as code:
        if chosen.output == "json":
            print_data(_data(played, chosen), "json")
        else:
            _print_summary(played, chosen)
        sys.stdout.flush()
        if played.is_interrupted:
            _say_interrupted(played, chosen)
        elif not played.summary.passed:
            say(f"{chosen.file} failed", plain(played.summary.error), _advice(played, chosen))
    return code


def validate(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.junit import junit
    from argosy.features.notebooks.files.notebook_file import write

    done: list[Played] = []
    interrupted_early: Path | None = None
    for path in chosen.paths:
        try:
            played = _perform(chosen, _request(chosen, path, {}, path))
        except KeyboardInterrupt:
            interrupted_early = path
            break
        done.append(played)
        if chosen.output == "text":
            _print_summary(played, chosen)
        if played.is_interrupted:
            break
    if chosen.junit:
        write(chosen.junit, junit([each.summary for each in done]))
    bad = [each for each in done if not each.summary.passed]
    is_interrupted = interrupted_early is not None or any(each.is_interrupted for each in done)
    with answering(INTERRUPTED if is_interrupted else NO if bad else DONE) as code:
        if chosen.output == "json":
            items = [_data(each, chosen) for each in done]
            print_data({"apiVersion": "cli.argosy.dev/v1", "kind": "NotebookRunList", "items": items}, "json")
        sys.stdout.flush()
        if interrupted_early is not None:
            _interrupted_early(interrupted_early)
        elif is_interrupted:
            _say_interrupted(done[-1], chosen)
        elif bad:
            what = f"{len(bad)} of {counted(len(done), 'notebook')} failed"
            say(what, plain(bad[0].summary.error), _advice(bad[0], chosen))
    return code


def _interrupted_early(path: Path) -> int:
    print(f"argosy: {plain(str(path))} was interrupted before its first cell; nothing was saved", file=sys.stderr)
    return INTERRUPTED


def _say_interrupted(played: Played, chosen: argparse.Namespace) -> None:
    """Say where the partial results are. A new run starts with the first cell."""
    what = f"{plain(played.summary.notebook)} was interrupted; partial results were saved"
    advice = f"see {_place(chosen, 'report', played)}; a new run starts with the first cell"
    say(what, plain(played.summary.error), advice)


def _request(chosen: argparse.Namespace, path: Path, parameters: dict[str, Any], golden: Path | None) -> Request:
    from argosy.features.notebooks.durations import seconds_of
    from argosy.features.notebooks.files import run_folder
    from argosy.features.notebooks.files.service import Request

    comparison(chosen)
    return Request(
        path,
        parameters,
        golden,
        comparison_of(chosen),
        _validation_of(chosen),
        seconds_of(chosen.timeout, "--timeout"),
        seconds_of(chosen.cell_timeout, "--cell-timeout") if chosen.cell_timeout else 0.0,
        chosen.kernel,
        chosen.runs or run_folder.FOLDER,
    )


def _validation_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Validation settings in the format of the job spec."""
    return {
        "level": chosen.level,
        "strictMode": chosen.strict,
        "failOnStderr": chosen.fail_on_stderr,
        "failOnWarnings": chosen.fail_on_warnings,
        "detectSilentFailures": not chosen.no_silent_failures,
        "requireExplicitExitCodes": chosen.require_exit_codes,
        "checkOutputTypes": chosen.check_output_types,
        "verifyAssertions": chosen.verify_assertions,
    }


def _perform(chosen: argparse.Namespace, request: Request) -> Played:
    from argosy.features.notebooks.files.notebook_file import read
    from argosy.features.notebooks.files.service import perform
    from argosy.features.notebooks.files.summary import title_of

    if chosen.quiet:
        return perform(request, datetime.now(), lambda event: None)
    titles = [title_of(cell) for cell in read(request.notebook)["cells"]]
    # Data goes to stdout, so these lines go to stderr if the output is data.
    lines = Lines(titles, sys.stdout if chosen.output == "text" else sys.stderr)
    played = perform(request, datetime.now(), lines.hear)
    lines.end()
    return played


class Lines:
    """Prints one line per cell, once the findings of the cell are known."""

    def __init__(self, titles: list[str], stream: Any) -> None:
        self._titles, self._stream, self._screen = titles, stream, Screen(stream)
        self._is_live = self._screen.width is not None and os.environ.get("TERM") != "dumb"
        self._done = self._code = 0
        self._waiting: dict[str, Any] | None = None
        self._findings: list[dict[str, Any]] = []

    def hear(self, event: dict[str, Any]) -> None:
        name = event["event"]
        if name == "started":
            self._code = int(event["code"])
        elif name == "finding":
            self._findings.append(event)
        elif name == "cell" and event["type"] == "code":
            self.end()
            self._waiting = event
        elif name in ("begun", "finished"):
            self.end()
            if name == "begun" and self._is_live:
                self._begin(int(event["cell"]))

    def _begin(self, index: int) -> None:
        """Print a line that is overwritten when the cell ends; only on a terminal."""
        mark = self._screen.mark("Progressing").replace(" Progressing", "")
        print(f"{CLEAR}{self._line(index, self._done + 1, mark)}", end="", file=self._stream, flush=True)

    def end(self) -> None:
        event, self._waiting = self._waiting, None
        if event is None:
            return
        self._done += 1
        index = event["cell"]
        mine = [each for each in self._findings if each["cell"] == index]
        time = f"{event['seconds']:.1f}s" if event["status"] != "Skipped" else "skipped"
        told = "; ".join(each["message"] for each in mine) or event.get("errorMessage") or ""
        line = f"{self._line(index, self._done, self._mark(event, mine))} {time:>8}  {plain(told)}"
        print(f"{CLEAR if self._is_live else ''}{line.rstrip()}", file=self._stream, flush=True)

    def _line(self, index: int, number: int, mark: str) -> str:
        title = plain(self._titles[index] if index < len(self._titles) else "")
        return f" {number:>{len(str(self._code))}}/{self._code}  cell {index:<3} {mark} {title:<{WIDTH}}"

    def _mark(self, event: dict[str, Any], mine: list[dict[str, Any]]) -> str:
        if event["status"] == "Failure":
            return self._screen.bad("").replace(" ", "")
        word = "Missing" if event["status"] == "Skipped" else "OutOfSync" if mine else "Healthy"
        return self._screen.mark(word).replace(f" {word}", "")


def _print_summary(played: Played, chosen: argparse.Namespace) -> None:
    from argosy.features.notebooks.files.html_report import golden_line

    summary, screen = played.summary, Screen(sys.stdout)
    for line in _where_it_failed(played):
        print(line)
    for each in summary.of_all:
        print(f"  {each['severity']}: {plain(each['message'])}")
    for remark in summary.remarks:
        talk(f"note: {plain(remark)}")
    if summary.golden is not None and summary.golden.note:
        talk(f"note: {summary.golden.note}")
    parts = [counted(int(summary.statistics["code_cells"]), "code cell"), f"{summary.seconds:.1f}s"]
    if summary.findings:
        blocking = sum(summary.blocks(each) for each in summary.findings)
        parts.append(f"{counted(len(summary.findings), 'finding')}{f', {blocking} blocking' if blocking else ''}")
    if line := golden_line(summary):
        parts.append(f"golden: {plain(line)}")
    word = screen.mark("Healthy").replace("Healthy", "PASSED") if summary.passed else screen.bad("FAILED")
    print(f"{word}  {', '.join(parts)}")
    print(f"  report {_place(chosen, 'report', played)}   junit {_place(chosen, 'junit', played)}")
    print(f"  executed notebook {played.run.executed}")


def _where_it_failed(played: Played) -> list[str]:
    """The failing lines of the cell, the error, and the last lines of its standard error."""
    from argosy.features.notebooks.files.notebook_file import read
    from argosy.features.notebooks.files.summary import failing_lines
    from argosy.features.notebooks.runner.cells import stream_of

    lines: list[str] = []
    cells = read(played.run.executed)["cells"]
    for each in played.summary.cells:
        if each.status == "failed":
            cell = cells[each.index]
            lines += [
                "",
                *(f"  {plain(line)}" for line in failing_lines(cell, each.traceback)),
                f"  {plain(each.error)}",
            ]
            errors = stream_of(cell, "stderr").splitlines()[-LAST_LINES:]
            lines += ["  standard error:", *(f"    {plain(line)}" for line in errors)] if errors else []
            lines.append("")
    return lines


def _place(chosen: argparse.Namespace, name: str, played: Played) -> Path:
    given = getattr(chosen, name, None)
    return Path(given) if given and chosen.part == "run" else getattr(played.run, name)


def _copy(chosen: argparse.Namespace, played: Played) -> None:
    from argosy.features.notebooks.files.notebook_file import write

    for place, made in ((chosen.report, played.run.report), (chosen.junit, played.run.junit)):
        if place:
            write(place, made.read_text(encoding="utf-8"))


def _advice(played: Played, chosen: argparse.Namespace) -> str:
    summary: Summary = played.summary
    if summary.golden is not None and summary.golden.differences and "golden" in summary.error:
        cells = ",".join(str(each.cell) for each in summary.golden.differences[:10])
        return f"if this is intended: argosy notebook accept {Path(summary.notebook).stem} --cells {cells}"
    if missing := played.results.get("packages_missing"):
        return f"pip install {' '.join(missing)} for the Python that runs argosy, or choose another --kernel"
    blocking = [each for each in summary.findings if summary.blocks(each) and each.get("suggestion")]
    if blocking:
        return plain(str(blocking[0]["suggestion"]))
    return f"see {_place(chosen, 'report', played)}"


def _data(played: Played, chosen: argparse.Namespace) -> dict[str, Any]:
    files = {"report": str(_place(chosen, "report", played)), "junit": str(_place(chosen, "junit", played))}
    files["executed"] = str(played.run.executed)
    return {"apiVersion": "cli.argosy.dev/v1", "kind": "NotebookRun", **played.results, "files": files}
