"""`argosy notebook …` commands without a cluster: real kernel, output per cell, written files, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.clusters import ARGOSY
from support.deadlines import HANG_SECONDS, wait_until
from support.forked_commands import Done, run
from support.tiers import run_first

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def typed(folder: Path, *words: str) -> Done:
    return run(["notebook", *words], env=os.environ, cwd=folder, timeout=HANG_SECONDS)


def write(file: Path, *sources: str) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0]["metadata"]["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Train"), *cells]), file)


RUN_FOREVER = "print('begun', flush=True)\nopen('begun', 'w').close()\nwhile True: pass"
SOURCES = (
    "alpha: float = 0.5  # how fast\nname = 'x'",
    "# fit the model\nprint(f'accuracy {alpha:.3f}')",
    "losses = [alpha, float(name == 'y') * 1e308 * 10]",
    "alpha * 2",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    write(folder / "train.ipynb", *SOURCES)
    write(folder / "golden.ipynb", *SOURCES)
    write(folder / "refused.ipynb", "def f():\n    print(1)", "x = f()")
    (folder / "broken.ipynb").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def failed(folder: Path) -> Done:
    words = ("-p", "alpha", "0.6", "-r", "name", "y", "--golden", "golden.ipynb", "--junit", "out/j.xml")
    return typed(folder, "run", "train.ipynb", *words)


def test_run_prints_one_line_per_cell_and_a_verdict(failed: Done) -> None:
    assert failed.returncode == 1
    lines = failed.stdout.splitlines()
    assert [line.split()[:4] for line in lines[:4]] == [
        ["1/4", "cell", "1", "✔"],
        ["2/4", "cell", "2", "✔"],
        ["3/4", "cell", "3", "▲"],
        ["4/4", "cell", "4", "✔"],
    ]
    assert "fit the model" in lines[1]
    assert lines[2].endswith("losses has 1 infinite of 2")
    assert lines[4].startswith("✖ FAILED  4 code cells, ")
    assert "golden: 3 equal, 2 different (cell 2: has 1 output (stdout), had no output)" in lines[4]


def test_failed_run_prints_error_reason_and_next_step(failed: Done) -> None:
    assert failed.stderr.splitlines()[-3:] == [
        "argosy: train.ipynb failed",
        "why: cell 3: losses has 1 infinite of 2",
        "next: find out where it comes from: a division by zero, an empty mean",
    ]


def test_run_writes_html_report_junit_file_and_executed_notebook(failed: Done, folder: Path) -> None:
    (executed,) = (folder / ".argosy" / "runs").glob("train-*.ipynb")
    assert "alpha = 0.6" in executed.read_text()
    assert "fit the model" in executed.with_suffix(".html").read_text()
    suite = ElementTree.fromstring((folder / "out" / "j.xml").read_bytes()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("5", "3")
    assert (folder / ".argosy" / ".gitignore").read_text() == "*\n"


@pytest.mark.tier("all")
def test_accept_needs_confirmation_and_updates_the_golden_notebook(failed: Done, folder: Path) -> None:
    result = typed(folder, "accept", "train", "--cells", "2,4")
    assert (result.returncode, result.stderr.splitlines()[-1]) == (2, "next: run it again with -y")
    assert typed(folder, "accept", "train", "--cells", "2,4", "-y").stdout.splitlines()[-1] == "golden.ipynb: written"
    again = typed(folder, "accept", "train", "-y")
    assert (again.returncode, again.stdout.split(";")[0]) == (0, "golden.ipynb: unchanged")
    assert typed(folder, "diff", "golden.ipynb", "golden.ipynb").returncode == 0
    different = typed(folder, "diff", "golden.ipynb", "train.ipynb")
    assert different.returncode == 1
    assert "-accuracy 0.600" in different.stdout
    page = typed(folder, "report", "train", "--html", "again.html")
    assert (page.returncode, page.stdout) == (0, "again.html\n")


def test_lint_reports_other_notebooks_despite_an_invalid_file(folder: Path) -> None:
    done = typed(folder, "lint", "train.ipynb", "broken.ipynb", "refused.ipynb")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (2, "2 notebooks, 1 remark, 1 that fail")
    assert "why: broken.ipynb: is not a notebook" in done.stderr


@pytest.mark.tier("all")
def test_failed_run_is_accepted_only_with_force(folder: Path) -> None:
    write(folder / "raises.ipynb", "x = 1", "1 / 0")
    assert typed(folder, "run", "raises.ipynb").returncode == 1
    before = (folder / "raises.ipynb").read_text()
    refused = typed(folder, "accept", "raises", "-y")
    assert (refused.returncode, (folder / "raises.ipynb").read_text()) == (2, before)
    assert "raises: its last run failed, so no outputs were accepted" in refused.stderr
    assert typed(folder, "accept", "raises", "-y", "--force").stdout.splitlines()[-1] == "raises.ipynb: written"


@pytest.mark.tier("all")
def test_validate_reports_cells_whose_output_differs_from_the_saved_one(folder: Path) -> None:
    write(folder / "saved.ipynb", "x = 1", "print(0.5)", "print('changed')")
    saved = json.loads((folder / "saved.ipynb").read_text())
    for index, text in ((2, "0.50001\n"), (3, "before\n")):
        saved["cells"][index]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
    (folder / "saved.ipynb").write_text(json.dumps(saved))
    done = typed(folder, "validate", "saved.ipynb", "-o", "json", "--quiet")
    (run,) = json.loads(done.stdout)["items"]
    assert (done.returncode, run["kind"], run["error_category"]) == (1, "NotebookRun", "golden_comparison_failed")
    assert [diff["cellIndex"] for diff in run["comparison"]["diffs"]] == [3]
    assert "next: if this is intended: argosy notebook accept saved --cells 3" in done.stderr


def test_blocking_lint_fault_stops_a_run_before_any_cell(folder: Path) -> None:
    done = typed(folder, "run", "refused.ipynb", "-o", "json")
    assert done.returncode == 1
    assert {cell["status"] for cell in json.loads(done.stdout)["cells"]} == {"skipped"}
    assert "why: cell 2: f() never returns a value, but its result is used here" in done.stderr
    linted = typed(folder, "lint", "refused.ipynb", "train.ipynb")
    assert linted.stdout.splitlines()[-3:-1] == [
        "refused.ipynb: 1 remark, 1 that fail",
        "train.ipynb: 0 remarks, 0 that fail",
    ]
    assert "argosy: refused.ipynb has 1 fault\n" in linted.stderr
    assert (linted.returncode, linted.stdout.splitlines()[-1]) == (1, "2 notebooks, 1 remark, 1 that fail")
    assert typed(folder, "lint", "refused.ipynb", "--level", "learning").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    run_first(
        3,
        [
            (["run", "missing.ipynb"], "missing.ipynb: cannot be read"),
            (["run", "broken.ipynb"], "broken.ipynb: is not a notebook"),
            (["run", "train.ipynb", "--golden", "missing.ipynb"], "missing.ipynb: cannot be read"),
            (["run", "train.ipynb", "--timeout", "soon"], "--timeout: invalid duration 'soon'"),
            (["run", "train.ipynb", "--tolerance", "x"], "--tolerance: invalid number 'x'"),
            (["run", "train.ipynb", "--ignore-pattern", "("], "is not a regular expression"),
            (["run", "train.ipynb", "--kernel", "nosuch"], "kernel nosuch: is not installed"),
            (["run", "train.ipynb", "-p", "a-b", "1"], "a-b: is not a parameter name"),
            (["accept", "other"], "other: has no run"),
            (["lint", "broken.ipynb"], "broken.ipynb: is not a notebook"),
        ],
    ),
)
def test_invalid_input_exits_2_with_a_next_step(folder: Path, words: list[str], said: str) -> None:
    done = typed(folder, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\nnext: " in done.stderr
    assert "Traceback" not in done.stderr


def test_params_lists_parameters_with_types_and_defaults(folder: Path) -> None:
    assert typed(folder, "params", "train.ipynb").stdout.splitlines() == [
        "NAME    TYPE    DEFAULT   ABOUT",
        "alpha   float   0.5       how fast",
        "name    -       'x'",
    ]
    data = json.loads(typed(folder, "params", "train.ipynb", "-o", "json").stdout)
    assert data["parameters"][0] == {"name": "alpha", "type": "float", "default": "0.5", "about": "how fast"}


def _processes_below(folder: Path) -> list[str]:
    """Return the command lines of kernel processes whose working directory is this folder."""
    commands = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                commands.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [command for command in commands if "ipykernel" in command or "runner" in command]


@contextmanager
def ended(running: subprocess.Popen[str]) -> Iterator[None]:
    """Kill the process on exit, also if the test fails: the notebook never ends by itself."""
    try:
        yield
    finally:
        running.kill()


def test_interrupted_run_saves_partial_notebook_and_report(tmp_path: Path) -> None:
    write(tmp_path / "long.ipynb", "print('first')", RUN_FOREVER, "print('never')")
    command = [ARGOSY, "notebook", "run", "long.ipynb", "--report", "mine.html"]
    running: Any = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with ended(running):
        assert running.stdout.readline().split()[0] == "1/3"
        wait_until((tmp_path / "begun").exists, "cell 2 runs")
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=HANG_SECONDS)
    assert running.returncode == 130
    (executed,) = (tmp_path / ".argosy" / "runs").glob("*.ipynb")
    cells = nbformat.read(executed, as_version=4).cells
    assert cells[1].outputs[0].text == "first\n"
    assert cells[3].outputs == []
    assert executed.with_suffix(".html").exists() and executed.with_suffix(".xml").exists()
    assert "Interrupted" in (tmp_path / "mine.html").read_text()
    assert str(executed.relative_to(tmp_path)) in stdout
    assert stderr.splitlines() == [
        "argosy: long.ipynb was interrupted; partial results were saved",
        "why: cell 2: Interrupted: the run was stopped while this cell ran",
        "next: see mine.html; a new run starts with the first cell",
    ]
    accepted = typed(tmp_path, "accept", "long", "-y")
    assert accepted.returncode == 2 and "its last run failed, so no outputs were accepted" in accepted.stderr


@pytest.mark.tier("all")
def test_interrupted_validate_saves_results_and_starts_no_further_notebook(tmp_path: Path) -> None:
    write(tmp_path / "a.ipynb", "x = 1")
    write(tmp_path / "long.ipynb", "x = 1", RUN_FOREVER)
    command = [ARGOSY, "notebook", "validate", "a.ipynb", "long.ipynb", "a.ipynb", "--junit", "j.xml"]
    running: Any = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with ended(running):
        while running.stdout.readline().split()[:1] != ["1/2"]:
            assert running.poll() is None
        wait_until((tmp_path / "begun").exists, "cell 2 runs")
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=HANG_SECONDS)
    assert running.returncode == 130
    assert "argosy: long.ipynb was interrupted; partial results were saved" in stderr.splitlines()
    assert len(list((tmp_path / ".argosy" / "runs").glob("*.html"))) == 2
    assert len(ElementTree.parse(tmp_path / "j.xml").findall(".//testsuite")) == 2


@pytest.mark.tier("all")
@pytest.mark.parametrize(("signal_name", "code"), [("INT", 130), ("TERM", 143), ("KILL", -9)])
def test_kernel_process_ends_with_the_command_for_every_signal(tmp_path: Path, signal_name: str, code: int) -> None:
    write(tmp_path / "long.ipynb", "x = 1", RUN_FOREVER)
    command = [ARGOSY, "notebook", "run", "long.ipynb"]
    running: Any = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with ended(running):
        assert running.stdout.readline().split()[0] == "1/2"
        wait_until((tmp_path / "begun").exists, "cell 2 runs")
        assert _processes_below(tmp_path.resolve())
        running.send_signal(getattr(signal, f"SIG{signal_name}"))
        _, stderr = running.communicate(timeout=HANG_SECONDS)
    assert running.returncode == code
    if signal_name == "INT":
        assert "argosy: long.ipynb was interrupted; partial results were saved" in stderr.splitlines()
    if signal_name == "KILL":  # no parent process waits for the kernel then
        wait_until(lambda: not _processes_below(tmp_path.resolve()), "the kernel ends")
    assert _processes_below(tmp_path.resolve()) == []
