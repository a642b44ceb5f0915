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
from argosy.features.notebooks.runner.events import Cell, Events
from argosy.features.notebooks.runner.execution import execute
from argosy.features.notebooks.runner.judgement import Judge
from argosy.features.notebooks.runner.order import STDOUT, Order, OrderError

MOST_BYTES: Final = 64 << 20  # size of a notebook file
LFS_POINTER: Final = "version https://git-lfs.github.com/spec/"  # first line of a Git LFS pointer file
_FIELDS, _CODE, _TEXT = {"cell_type", "id", "metadata", "source"}, {"outputs", "execution_count"}, {"attachments"}
_SET_PDEATHSIG, _SET_DUMPABLE = 1, 4


def run(order: Order) -> int:
    """Raises RunRequestError only if there is no place to write results."""
    hide()
    with _lines(order.events) as told:
        events = Events(told)
        try:
            notebook = read(order.notebook)
            golden = read(order.golden) if order.golden else None
            found, executed = asyncio.run(_run(order, events, notebook, golden))
        except OrderError as error:
            found, executed = results.refused(_name(order), str(error)), None
        _write(order.results, events, "results", found)  # before the notebook, which may exceed the limit of the reader
        _write(order.output, events, "notebook", "" if executed is None else written(executed))
        events.finished(found["status"], found["error"], found["error_category"])
    return int(found["exit_code"])


async def _run(
    order: Order, events: Events, notebook: nbformat.NotebookNode, golden: nbformat.NotebookNode | None
) -> tuple[dict[str, Any], nbformat.NotebookNode | None]:
    judge = Judge(order.compares(), order.validates(), golden, events.tell)
    if stopped := judge.before(notebook):
        return results.stopped(_name(order), stopped, _skipped(notebook, events)), None
    ran = await execute(notebook, order, events, judge)
    return results.of(ran, _name(order), judge.verdict(ran)), ran.notebook


def _skipped(notebook: nbformat.NotebookNode, events: Events) -> list[Cell]:
    cells = [Cell(index, cell.cell_type, "Skipped") for index, cell in enumerate(notebook.cells)]
    events.started(len(cells), sum(cell.type == "code" for cell in cells))
    for cell in cells:
        events.cell(cell)
    return cells


def read(path: str) -> nbformat.NotebookNode:
    """Read a notebook of any version as version 4. Raises RunRequestError."""
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise OrderError(f"{path}: is larger than {MOST_BYTES >> 20} MiB; clear its outputs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about missing ids: nbformat creates them
            text = Path(path).read_text(encoding="utf-8-sig")
            if text.startswith(LFS_POINTER):
                raise OrderError(f"{path}: is a Git LFS pointer, not the notebook; store notebooks in Git without LFS")
            found: nbformat.NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
            _mend(found)
            nbformat.validate(found)
            return found
    except OSError as error:
        raise OrderError(f"{path}: cannot be read ({error.strerror}); check its path") from None
    except OrderError:
        raise
    except Exception as error:  # nbformat raises whatever its parser raises
        first = str(error).strip().partition("\n")[0][:200]
        raise OrderError(f"{path}: is not a notebook ({first}); save it again with Jupyter") from None


def _mend(notebook: nbformat.NotebookNode) -> None:
    """Add fields that other tools omit and drop fields that they add, as Jupyter does."""
    notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    for index, cell in enumerate(notebook.cells):
        is_code = cell.get("cell_type") == "code"
        for name in set(cell) - _FIELDS - (_CODE if is_code else _TEXT):
            del cell[name]
        cell.setdefault("id", f"cell-{index}")
        if is_code:
            cell.setdefault("outputs", [])
            cell.setdefault("execution_count", None)


def written(notebook: nbformat.NotebookNode) -> str:
    return str(nbformat.writes(notebook))  # type: ignore[no-untyped-call]


def hide() -> None:
    """Forbid processes of the same user to read or trace this process: a cell must not write its own results."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, *(ctypes.c_ulong(0) for _ in range(4)))


def end_with(parent: int) -> None:
    """End this process, as if it were interrupted, when its parent process ends for any reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, *(ctypes.c_ulong(value) for value in (signal.SIGINT, 0, 0, 0)))
    if os.getppid() != parent:
        raise KeyboardInterrupt


def _name(order: Order) -> str:
    return order.named or order.notebook


@contextmanager
def _lines(path: str) -> Iterator[IO[str] | None]:
    if not path:
        yield None
    elif path == STDOUT:
        yield sys.stdout
    else:
        try:
            file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise OrderError(f"{path}: cannot write events ({error.strerror}); use another path") from None
        with contextlib.closing(file):
            yield file


def _write(path: str, events: Events, name: str, content: str | Mapping[str, Any]) -> None:
    if path == STDOUT:
        field = "text" if isinstance(content, str) else "results"
        events.tell({"event": name, field: content})
    elif path and content:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        Path(path).write_text(text, encoding="utf-8")
