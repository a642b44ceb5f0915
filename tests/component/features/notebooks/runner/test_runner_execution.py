"""The runner as a program: a run reports every cell, and its files agree with the events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from argosy.features.notebooks.runner.event_stream import RunProgress  # noqa: E402
from argosy.features.notebooks.runner.run_of_notebook import read_notebook  # noqa: E402
from argosy.features.notebooks.runner.run_request import RunRequest  # noqa: E402
from support.deadlines import HANG_SECONDS  # noqa: E402

FLOOD = "import os\nfor _ in range(300):\n    print('é' * 10_000)\nos.write(1, b'past the channels')"
CELLS = [
    ("markdown", "# Title", []),
    ("code", "rate = 1.0  # how fast", ["parameters"]),
    ("code", "print(rate)\n1 / 0", ["raises-exception"]),
    ("code", "raise SystemError('never run')", ["skip-execution"]),
    ("code", "", []),
    ("code", FLOOD, []),
    ("code", "import os\nprint(os.getcwd())\n'é' * 3", []),
    ("code", "import not_installed_anywhere.inner", []),
    ("code", "print('never reached')", []),
]


def notebook(cells: list[tuple[str, str, list[str]]]) -> Any:
    cell_factories = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    notebook_cells = [
        cell_factories[kind](source, metadata={"tags": tags} if tags else {}) for kind, source, tags in cells
    ]
    return nbformat.v4.new_notebook(cells=notebook_cells)


def run(order: RunRequest, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "order.json"
    file.write_text(order.to_json())
    command = [sys.executable, "-m", "argosy.features.notebooks.runner", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def done(folder: Path) -> tuple[subprocess.CompletedProcess[str], RunProgress]:
    nbformat.write(notebook(CELLS), folder / "a.ipynb")
    order = RunRequest(
        str(folder / "a.ipynb"), output=str(folder / "out.ipynb"), results=str(folder / "results.json"), events="-",
        parameters={"rate": 0.5, "unknown": [1, None]}, named="notebooks/a.ipynb",
    )  # fmt: skip
    ended = run(order, folder)
    return ended, RunProgress().add_lines(ended.stdout.splitlines())


def test_every_cell_is_reported_in_order_and_none_runs_after_a_failure(done: Any) -> None:
    ended, progress = done
    assert ended.returncode == 1
    assert progress.unknown_lines == []
    assert (progress.cell_count, progress.code_cell_count) == (9, 8)
    words = ["Skipped", "Success", "Success", "Skipped", "Skipped", "Success", "Success", "Failure", "Skipped"]
    assert [(cell["cell"], cell["status"]) for cell in progress.cell_events] == list(enumerate(words))
    assert progress.finished["error"] == "cell 7: ModuleNotFoundError: No module named 'not_installed_anywhere'"


def test_parameter_is_set_without_a_new_cell_and_unknown_one_is_noted(done: Any, folder: Path) -> None:
    assert done[1].cell_events[2]["output"].startswith("0.5\n")
    report = json.loads((folder / "results.json").read_text())
    assert report["remarks"] == ["parameter unknown: the notebook does not declare it"]
    assert len(nbformat.read(folder / "out.ipynb", 4).cells) == len(CELLS)


def test_results_file_has_the_fields_of_validation_pods(done: Any, folder: Path) -> None:
    report = json.loads((folder / "results.json").read_text())
    assert (report["status"], report["error_category"], report["exit_code"]) == (
        "failed",
        "dependency_install_failed",
        1,
    )
    assert report["packages_missing"] == ["not_installed_anywhere"]
    assert report["notebook_path"] == "notebooks/a.ipynb"
    numbers = {"total_cells": 9, "code_cells": 8, "succeeded_cells": 4, "failed_cells": 1, "success_rate": 50.0}
    assert report["statistics"] == numbers
    failed = report["cells"][7]
    assert failed["status"] == "failed"
    assert "ModuleNotFoundError" in failed["traceback"]
    assert "\x1b" not in failed["traceback"]


def test_large_cell_output_is_truncated(done: Any, folder: Path) -> None:
    out = nbformat.read(folder / "out.ipynb", 4)
    [stream] = out.cells[5].outputs
    assert (1 << 20) <= len(stream.text.encode()) < (1 << 20) + 200
    assert stream.text.endswith(
        "(truncated: the limit is 1048576 bytes of output per cell and 10485760 per notebook)\n"
    )


def test_cells_run_in_the_folder_of_the_notebook(done: Any, folder: Path) -> None:
    assert done[1].cell_events[6]["output"] == f"{folder}\n'ééé'\n"


@pytest.mark.tier("all")
def test_cell_timeout_ends_a_cell_that_ignores_sigint(folder: Path) -> None:
    cell = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    nbformat.write(notebook([("code", cell, [])]), folder / "long.ipynb")
    results = folder / "long.json"
    ended = run(RunRequest(str(folder / "long.ipynb"), results=str(results), cell_timeout_seconds=0.5), folder)
    assert ended.returncode == 1
    report = json.loads(results.read_text())
    assert report["error_category"] == "notebook_timeout"
    assert report["error"].startswith("cell 0: Timeout: the cell ran longer than 0.5 s")


@pytest.mark.tier("all")
def test_kernel_death_is_a_failed_cell(folder: Path) -> None:
    nbformat.write(notebook([("code", "import os\nos.abort()", []), ("code", "1", [])]), folder / "dies.ipynb")
    results = folder / "dies.json"
    assert run(RunRequest(str(folder / "dies.ipynb"), results=str(results)), folder).returncode == 1
    report = json.loads(results.read_text())
    assert [cell["status"] for cell in report["cells"]] == ["failed", "skipped"]
    assert "the kernel ended while the cell ran" in report["error"]


@pytest.mark.tier("all")
def test_saved_outputs_are_not_mistaken_for_outputs_of_the_run(folder: Path) -> None:
    """A cell is compared with its saved types, sys.exit() is no failure, and later cells keep no outputs."""
    saved_notebook = notebook([("code", "print(1)", []), ("code", "import sys\nsys.exit()", []), ("code", "2", [])])
    for cell in saved_notebook.cells:
        cell.outputs = [nbformat.v4.new_output("display_data", data={"text/html": "<b>old</b>"})]
    nbformat.write(saved_notebook, folder / "saved.ipynb")
    order = RunRequest(
        str(folder / "saved.ipynb"), output=str(folder / "left.ipynb"), results="-", events="-",
        validation={"checkOutputTypes": True, "level": "learning"},
    )  # fmt: skip
    progress = RunProgress().add_lines(run(order, folder).stdout.splitlines())
    assert progress.results is not None
    assert [cell["status"] for cell in progress.results["cells"]] == ["succeeded", "succeeded", "skipped"]
    assert progress.results["error"].startswith("cell 0: has output types stdout; it was saved with text/html")
    assert progress.results["remarks"] == ["cell 1: called sys.exit(0), so later cells did not run"]
    assert [len(cell.outputs) for cell in nbformat.read(folder / "left.ipynb", as_version=4).cells] == [1, 0, 0]


@pytest.mark.tier("all")
def test_notebook_in_another_language_is_rejected(tmp_path: Path) -> None:
    julia_notebook = notebook([("code", "1", [])])
    julia_notebook.metadata.kernelspec = {"name": "julia-1.9", "language": "julia", "display_name": "Julia"}
    nbformat.write(julia_notebook, tmp_path / "a.ipynb")
    ended = run(RunRequest(str(tmp_path / "a.ipynb"), results="-", events="-"), tmp_path)
    assert ended.returncode == 2
    assert "written in julia" in ended.stdout


@pytest.mark.tier("all")
def test_notebook_blocked_by_its_source_reports_all_cells_as_skipped(tmp_path: Path) -> None:
    nbformat.write(notebook([("markdown", "# A", []), ("code", "eval('1')", [])]), tmp_path / "a.ipynb")
    progress = RunProgress().add_lines(
        run(RunRequest(str(tmp_path / "a.ipynb"), results="-", events="-"), tmp_path).stdout.splitlines()
    )
    assert progress.results is not None
    assert (progress.cell_count, [cell["status"] for cell in progress.cell_events]) == (2, ["Skipped", "Skipped"])
    counted = progress.results["statistics"]
    assert (counted["total_cells"], counted["code_cells"], counted["success_rate"]) == (2, 1, 0.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "cannot be read", marks=pytest.mark.tier("all")),
        ("{", "is not a notebook"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 1\n", "is a Git LFS pointer"),
        pytest.param('{"cells": 1, "nbformat": 4}', "is not a notebook", marks=pytest.mark.tier("all")),
    ],
)
def test_unreadable_notebook_is_a_configuration_error(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "x.ipynb"
    if content is not None:
        file.write_text(content)
    ended = run(RunRequest(str(file), events="-", results="-"), tmp_path)
    assert ended.returncode == 2
    progress = RunProgress().add_lines(ended.stdout.splitlines())
    assert progress.results and progress.results["error_category"] == "configuration_error"
    assert said in progress.results["error"]
    assert "Traceback" not in ended.stderr


@pytest.mark.tier("all")
def test_invalid_cell_fields_are_repaired_like_jupyter_does(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "id": "a", "source": "1", "metadata": {}, "extra": 1},
        {"cell_type": "markdown", "source": ["# A"], "metadata": {}, "outputs": []},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}))
    mended_notebook = read_notebook(str(tmp_path / "a.ipynb"))
    assert [sorted(cell) for cell in mended_notebook.cells] == [
        ["cell_type", "execution_count", "id", "metadata", "outputs", "source"],
        ["cell_type", "id", "metadata", "source"],
    ]
