"""Executes one run request from reading the notebook to writing the results.

In: a run request. Out: an exit code; events as they happen, then results and the executed notebook. Never: prints
anything else; lets the notebook read the memory of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import nbformat

from argosy.features.notebooks.runner import results
from argosy.features.notebooks.runner.cell_execution import execute
from argosy.features.notebooks.runner.event_stream import CellResult, EventWriter
from argosy.features.notebooks.runner.run_request import STDOUT, RunRequest, RunRequestError
from argosy.features.notebooks.runner.source_cell_and_golden_validation import RunValidator

MAX_NOTEBOOK_BYTES: Final = 64 << 20  # size of a notebook file
LFS_POINTER: Final = "version https://git-lfs.github.com/spec/"  # first line of a Git LFS pointer file
_CELL_FIELDS, _CODE_FIELDS, _TEXT_FIELDS = (
    {"cell_type", "id", "metadata", "source"},
    {"outputs", "execution_count"},
    {"attachments"},
)
_SET_PDEATHSIG, _SET_DUMPABLE = 1, 4


def execute_request(request: RunRequest) -> int:
    """Raises RunRequestError only if there is no place to write results."""
    forbid_tracing()
    with _open_event_file(request.events) as event_file:
        events = EventWriter(event_file)
        try:
            notebook = read_notebook(request.notebook)
            golden = read_notebook(request.golden) if request.golden else None
            run_results, executed = asyncio.run(_execute_and_validate(request, events, notebook, golden))
        except RunRequestError as error:
            run_results, executed = results.build_refused_results(_get_notebook_name(request), str(error)), None
        # Written before the notebook, which may exceed the limit of the reader.
        _write_result(request.results, events, "results", run_results)
        _write_result(request.output, events, "notebook", "" if executed is None else dump_notebook(executed))
        events.write_finished(run_results["status"], run_results["error"], run_results["error_category"])
    return int(run_results["exit_code"])


async def _execute_and_validate(
    request: RunRequest, events: EventWriter, notebook: nbformat.NotebookNode, golden: nbformat.NotebookNode | None
) -> tuple[dict[str, Any], nbformat.NotebookNode | None]:
    validator = RunValidator(request.read_comparison(), request.read_validation(), golden, events.write)
    if blocking_result := validator.check_before_run(notebook):
        return results.build_blocked_results(
            _get_notebook_name(request), blocking_result, _report_skipped_cells(notebook, events)
        ), None
    execution = await execute(notebook, request, events, validator)
    return results.build_results(
        execution, _get_notebook_name(request), validator.build_result(execution)
    ), execution.notebook


def _report_skipped_cells(notebook: nbformat.NotebookNode, events: EventWriter) -> list[CellResult]:
    cells = [CellResult(index, cell.cell_type, "Skipped") for index, cell in enumerate(notebook.cells)]
    events.write_started(len(cells), sum(cell.type == "code" for cell in cells))
    for cell in cells:
        events.write_cell_result(cell)
    return cells


def read_notebook(path: str) -> nbformat.NotebookNode:
    """Read a notebook of any version as version 4. Raises RunRequestError."""
    try:
        if os.path.getsize(path) > MAX_NOTEBOOK_BYTES:
            raise RunRequestError(f"{path}: is larger than {MAX_NOTEBOOK_BYTES >> 20} MiB; clear its outputs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about missing ids: nbformat creates them
            text = Path(path).read_text(encoding="utf-8-sig")
            if text.startswith(LFS_POINTER):
                raise RunRequestError(
                    f"{path}: is a Git LFS pointer, not the notebook; store notebooks in Git without LFS"
                )
            notebook: nbformat.NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
            _normalize_cells(notebook)
            nbformat.validate(notebook)
            return notebook
    except OSError as error:
        raise RunRequestError(f"{path}: cannot be read ({error.strerror}); check its path") from None
    except RunRequestError:
        raise
    except Exception as error:  # nbformat raises whatever its parser raises
        first_line = str(error).strip().partition("\n")[0][:200]
        raise RunRequestError(f"{path}: is not a notebook ({first_line}); save it again with Jupyter") from None


def _normalize_cells(notebook: nbformat.NotebookNode) -> None:
    """Add fields that other tools omit and drop fields that they add, as Jupyter does."""
    notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    for index, cell in enumerate(notebook.cells):
        is_code = cell.get("cell_type") == "code"
        for name in set(cell) - _CELL_FIELDS - (_CODE_FIELDS if is_code else _TEXT_FIELDS):
            del cell[name]
        cell.setdefault("id", f"cell-{index}")
        if is_code:
            cell.setdefault("outputs", [])
            cell.setdefault("execution_count", None)


def dump_notebook(notebook: nbformat.NotebookNode) -> str:
    return str(nbformat.writes(notebook))  # type: ignore[no-untyped-call]


def forbid_tracing() -> None:
    """Forbid processes of the same user to read or trace this process: a cell must not write its own results."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, *(ctypes.c_ulong(0) for _ in range(4)))


def exit_with_parent(parent_pid: int) -> None:
    """End this process, as if it were interrupted, when its parent process ends for any reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, *(ctypes.c_ulong(value) for value in (signal.SIGINT, 0, 0, 0)))
    if os.getppid() != parent_pid:
        raise KeyboardInterrupt


def _get_notebook_name(request: RunRequest) -> str:
    return request.named or request.notebook


@contextmanager
def _open_event_file(path: str) -> Iterator[IO[str] | None]:
    if not path:
        yield None
    elif path == STDOUT:
        yield sys.stdout
    else:
        try:
            file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise RunRequestError(f"{path}: cannot write events ({error.strerror}); use another path") from None
        with contextlib.closing(file):
            yield file


def _write_result(path: str, events: EventWriter, name: str, content: str | Mapping[str, Any]) -> None:
    if path == STDOUT:
        field = "text" if isinstance(content, str) else "results"
        events.write({"event": name, field: content})
    elif path and content:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        Path(path).write_text(text, encoding="utf-8")
