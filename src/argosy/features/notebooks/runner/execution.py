"""Runs a notebook cell by cell in its own kernel.

In: a notebook and a run request. Out: the notebook with its outputs, the result of each cell, and the failure if there
was one. Never: runs a cell after one that failed; keeps more output than allowed; leaves the kernel running.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg

from argosy.features.notebooks.runner import cells, kernels, parameters
from argosy.features.notebooks.runner.events import Cell, Events
from argosy.features.notebooks.runner.order import Order
from argosy.features.notebooks.runner.outputs import Allowance, merge, text_of

START_SECONDS: Final = 60
ASK_SECONDS: Final = 30.0
SKIP: Final = "skip-execution"
INTERRUPTION: Final = "Interrupted"  # name of a failure
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Watcher(Protocol):
    """Inspects each cell after it ran."""

    def question(self, index: int) -> str:
        """Return a Python expression to evaluate in the kernel right after the cell, or "" for none."""

    def after_cell(self, index: int, cell: Mapping[str, Any], said: str) -> None:
        """Called after the cell ran with the value of the expression as text, or "" if there is none."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure that ended a run before its last cell; cell -1: it was not caused by a cell."""

    cell: int
    name: str
    message: str
    traceback: str = ""


@dataclass
class Ran:
    """Result of executing a notebook."""

    notebook: NotebookNode
    cells: list[Cell] = field(default_factory=list)
    failure: Failure | None = None
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)


async def execute(notebook: NotebookNode, order: Order, events: Events, watcher: Watcher | None = None) -> Ran:
    """Raises RunRequestError if the requested kernel is not installed or does not fit the language of the notebook."""
    kernels.check_language(notebook.metadata, order.kernel)
    ran = Ran(notebook)
    began = time.monotonic()
    first, ran.remarks = parameters.inject(notebook, order.parameters)
    _clear(notebook)
    events.started(len(notebook.cells), sum(cell.cell_type == "code" for cell in notebook.cells))
    with kernels.place() as folder:
        client = _Client(notebook, order, folder, began + order.timeout_seconds)
        try:
            async with client.started(folder):
                if first:
                    await client.ask(first, "None")
                await _all_cells(client, ran, events, watcher)
        except (RuntimeError, OSError) as problem:
            if ran.failure is None:
                ran.failure = _failure_to_start(problem, folder)
        except asyncio.CancelledError:
            if not client.keeps_interruption():
                raise
            message = f"{INTERRUPTION}: the run was stopped between two cells"
            ran.failure = ran.failure or Failure(-1, INTERRUPTION, message)
    ran.seconds = time.monotonic() - began
    for index in range(len(ran.cells), len(notebook.cells)):
        _tell(ran, events, Cell(index, notebook.cells[index].cell_type, "Skipped"))
    return ran


def _clear(notebook: NotebookNode) -> None:
    """Remove saved outputs, so that they are not mistaken for outputs of this run."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and cells.SKIP not in cells.marks_of(cell):
            cell.outputs, cell.execution_count = [], None


async def _all_cells(client: _Client, ran: Ran, events: Events, watcher: Watcher | None) -> None:
    for index, cell in enumerate(ran.notebook.cells):
        if not _is_run(cell):
            _tell(ran, events, Cell(index, cell.cell_type, "Skipped"))
            continue
        events.begun(index)
        began = time.monotonic()
        client.asks(watcher.question(index) if watcher else "")
        failure = await _one_cell(client, index, cell)
        seconds, output = time.monotonic() - began, text_of(cell.outputs)
        if failure is not None:
            ran.failure = failure
            output = failure.traceback or output
            _tell(ran, events, Cell(index, "code", "Failure", seconds, output, failure.name, failure.message))
            return
        _tell(ran, events, Cell(index, "code", "Success", seconds, output))
        if watcher is not None:
            watcher.after_cell(index, cell, client.said)
        if client.has_left:
            ran.remarks.append(f"cell {index}: called sys.exit(0), so later cells did not run")
            return


def _is_run(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "code" and bool(cell["source"].strip()) and cells.SKIP not in cells.marks_of(cell)


def _tell(ran: Ran, events: Events, cell: Cell) -> None:
    ran.cells.append(cell)
    events.cell(cell)


async def _one_cell(client: _Client, index: int, cell: NotebookNode) -> Failure | None:
    try:
        await client.async_execute_cell(cell, index)
        return None
    except CellExecutionError as error:
        named = f"{error.ename}: {error.evalue}" if error.evalue else str(error.ename)
        return Failure(index, str(error.ename), plain(named), _traceback(cell) or plain(named))
    except CellTimeoutError:
        client.shutdown_kernel = "immediate"
        whole = client.left() <= 0
        what = (
            f"the notebook ran longer than {client.order.timeout_seconds:g} s"
            if whole
            else (f"the cell ran longer than {client.order.cell_timeout_seconds:g} s")
        )
        return Failure(index, "Timeout", f"Timeout: {what}; make it faster, or allow more time")
    except asyncio.CancelledError:
        if client.keeps_interruption():
            return _interruption_of(index)
        raise
    except DeadKernelError:
        if client.keeps_interruption():
            return _interruption_of(index)
        if client.is_interrupted:
            raise asyncio.CancelledError from None  # nbclient reports a cancelled wait as a dead kernel
        said = client.last_words()
        return Failure(index, "DeadKernel", "DeadKernel: the kernel ended while the cell ran", said)


def _interruption_of(index: int) -> Failure:
    return Failure(index, INTERRUPTION, f"{INTERRUPTION}: the run was stopped while this cell ran")


def _is_of_leaving(output: Mapping[str, Any]) -> bool:
    """True if IPython printed this output because the cell called sys.exit()."""
    return output.get("ename") == "SystemExit" or "UserWarning: To exit: use" in str(output.get("text"))


def _traceback(cell: Mapping[str, Any]) -> str:
    told = [output for output in cell["outputs"] if output["output_type"] == "error"]
    return plain("\n".join(told[-1]["traceback"])) if told else ""


def plain(text: str) -> str:
    """Remove terminal colour codes."""
    return _COLOURS.sub("", text)


def _failure_to_start(problem: Exception, folder: Path) -> Failure:
    log = folder / kernels.LOG
    said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
    return Failure(-1, "KernelStart", f"cannot start the kernel: {problem}", said)


class _Client(NotebookClient):
    """nbclient with limited outputs, one deadline for all cells, and expressions evaluated outside of cells."""

    def __init__(self, notebook: NotebookNode, order: Order, folder: Path, deadline: float) -> None:
        super().__init__(
            notebook,
            km=kernels.manager(folder, order.kernel),
            timeout_func=self._seconds_of,
            startup_timeout=START_SECONDS,
            record_timing=False,
            store_widget_state=False,
            allow_errors=False,
            skip_cells_with_tag=SKIP,
            on_cell_executed=self._hear,
        )
        self._asked: dict[str, str] = {}  # sent with every cell: evaluation needs no extra message
        self.said = ""
        self.has_left = self.is_interrupted = False
        self.owns_km = True
        self.order, self._deadline = order, deadline
        self._log = folder / kernels.LOG
        self._where = order.folder or os.path.dirname(os.path.abspath(order.notebook))
        self._allowance = Allowance(order.most_cell_bytes, order.most_output_bytes)

    @asynccontextmanager
    async def started(self, folder: Path) -> AsyncIterator[None]:
        """Run the kernel until the context exits."""
        # The kernel's own output must not get between the event lines.
        with self._log.open("wb") as log:
            env = kernels.environment(folder, self.order.env)
            options = {"env": env, "stdout": subprocess.DEVNULL, "stderr": log.fileno()}
            async with self.async_setup_kernel(cwd=self._where, **options):
                assert self.kc is not None
                self.kc.execute = functools.partial(  # type: ignore[method-assign]
                    self.kc.execute, user_expressions=self._asked
                )
                task = asyncio.current_task()
                assert task is not None
                with contextlib.suppress(RuntimeError):  # only the main thread can handle signals
                    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt, task)
                yield

    def _interrupt(self, task: asyncio.Task[Any]) -> None:
        self.is_interrupted = True
        self.shutdown_kernel = "immediate"  # do not wait for a kernel after an interrupt
        task.cancel()

    def keeps_interruption(self) -> bool:
        """True if the run was interrupted and shall still end with results."""
        task = asyncio.current_task()
        if not self.is_interrupted or not self.order.keep_interrupted or task is None:
            return False
        task.uncancel()
        return True

    def left(self) -> float:
        return self._deadline - time.monotonic()

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""

    def _seconds_of(self, cell: Any) -> float:
        own = self.order.cell_timeout_seconds
        return max(min(own, self.left()) if own else self.left(), 0.001)

    def asks(self, expression: str) -> None:
        """Set the expression to evaluate after the next cell."""
        self.said = ""
        self._asked.clear()
        if expression:
            self._asked["answer"] = expression

    def _hear(self, cell: NotebookNode, cell_index: int, execute_reply: Mapping[str, Any] | None) -> None:
        found = ((execute_reply or {}).get("content", {}).get("user_expressions") or {}).get("answer") or {}
        self.said = str((found.get("data") or {}).get("text/plain") or "")

    async def ask(self, code: str, expression: str) -> str:
        """Run code outside of any cell, then return the value of an expression as text."""
        assert self.kc is not None
        sent = self.kc.execute(code, silent=True, store_history=False, user_expressions={"answer": expression})
        end = time.monotonic() + min(ASK_SECONDS, max(self.left(), 0.1))
        while True:
            try:
                reply = await self.kc.shell_channel.get_msg(timeout=max(end - time.monotonic(), 0))
            except Exception:
                return ""  # validation goes on without the value
            if reply["parent_header"].get("msg_id") == sent:
                found = (reply["content"].get("user_expressions") or {}).get("answer") or {}
                return str((found.get("data") or {}).get("text/plain") or "")

    async def _check_raise_for_error(self, cell: NotebookNode, cell_index: int, exec_reply: Any) -> None:
        is_meant = cells.RAISES in cells.marks_of(cell)  # includes nbval marks, which nbclient does not know
        said = (exec_reply or {}).get("content") or {}
        # Like papermill, treat sys.exit() as a normal end.
        self.has_left = not is_meant and said.get("ename") == "SystemExit" and said.get("evalue") in ("", "0")
        if self.has_left:
            cell.outputs = [each for each in cell.outputs if not _is_of_leaving(each)]
        elif not is_meant:
            await super()._check_raise_for_error(cell, cell_index, exec_reply)

    def output(self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
        if self.clear_before_next_output:
            self._allowance.cleared(cell_index)
        try:
            kept = self._allowance.take(cell_index, output_from_msg(msg))  # type: ignore[no-untyped-call]
        except ValueError:
            return None
        if kept is None:
            return None
        if kept["output_type"] == "stream":
            msg = {**msg, "msg_type": "stream", "header": {**msg["header"], "msg_type": "stream"}, "content": kept}
            if not self.clear_before_next_output and merge(outs, kept):
                return None
            display_id = None
        return super().output(outs, msg, display_id, cell_index)

    def clear_output(self, outs: list[Any], msg: dict[str, Any], cell_index: int) -> None:
        if not msg["content"].get("wait"):
            self._allowance.cleared(cell_index)
        super().clear_output(outs, msg, cell_index)

    def _update_display_id(self, display_id: str, msg: dict[str, Any]) -> None:
        if all(self._allowance.fits(index, msg["content"]) for index in self._display_id_map.get(display_id, ())):
            super()._update_display_id(display_id, msg)
