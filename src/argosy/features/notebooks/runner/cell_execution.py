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

from argosy.features.notebooks.runner import cell_source_and_tags as cells
from argosy.features.notebooks.runner import kernel_setup, parameters
from argosy.features.notebooks.runner.event_stream import CellResult, EventWriter
from argosy.features.notebooks.runner.output_size_limit import OutputLimiter, append_to_stream, render_outputs
from argosy.features.notebooks.runner.run_request import RunRequest

KERNEL_START_TIMEOUT_SECONDS: Final = 60
EVALUATION_TIMEOUT_SECONDS: Final = 30.0
SKIP_TAG: Final = "skip-execution"
INTERRUPTED_NAME: Final = "Interrupted"  # name of a failure
_ANSI_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class CellObserver(Protocol):
    """Inspects each cell after it ran."""

    def build_question(self, index: int) -> str:
        """Return a Python expression to evaluate in the kernel right after the cell, or "" for none."""

    def on_cell_executed(self, index: int, cell: Mapping[str, Any], reply: str) -> None:
        """Called after the cell ran with the value of the expression as text, or "" if there is none."""


@dataclass(frozen=True, slots=True)
class ExecutionFailure:
    """The failure that ended a run before its last cell; cell -1: it was not caused by a cell."""

    cell: int
    name: str
    message: str
    traceback: str = ""


@dataclass
class ExecutionResult:
    """Result of executing a notebook."""

    notebook: NotebookNode
    cells: list[CellResult] = field(default_factory=list)
    failure: ExecutionFailure | None = None
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)


async def execute(
    notebook: NotebookNode, request: RunRequest, events: EventWriter, observer: CellObserver | None = None
) -> ExecutionResult:
    """Raises RunRequestError if the requested kernel is not installed or does not fit the language of the notebook."""
    kernel_setup.check_language(notebook.metadata, request.kernel)
    result = ExecutionResult(notebook)
    started_at = time.monotonic()
    setup_code, result.remarks = parameters.inject_parameters(notebook, request.parameters)
    _clear_outputs(notebook)
    events.write_started(len(notebook.cells), sum(cell.cell_type == "code" for cell in notebook.cells))
    with kernel_setup.create_socket_folder() as folder:
        client = _KernelClient(notebook, request, folder, started_at + request.timeout_seconds)
        try:
            async with client.run_kernel(folder):
                if setup_code:
                    await client.evaluate(setup_code, "None")
                await _run_cells(client, result, events, observer)
        except (RuntimeError, OSError) as error:
            if result.failure is None:
                result.failure = _build_start_failure(error, folder)
        except asyncio.CancelledError:
            if not client.should_keep_results():
                raise
            message = f"{INTERRUPTED_NAME}: the run was stopped between two cells"
            result.failure = result.failure or ExecutionFailure(-1, INTERRUPTED_NAME, message)
    result.seconds = time.monotonic() - started_at
    for index in range(len(result.cells), len(notebook.cells)):
        _record_cell(result, events, CellResult(index, notebook.cells[index].cell_type, "Skipped"))
    return result


def _clear_outputs(notebook: NotebookNode) -> None:
    """Remove saved outputs, so that they are not mistaken for outputs of this run."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and cells.SKIP not in cells.read_marks(cell):
            cell.outputs, cell.execution_count = [], None


async def _run_cells(
    client: _KernelClient, result: ExecutionResult, events: EventWriter, observer: CellObserver | None
) -> None:
    for index, cell in enumerate(result.notebook.cells):
        if not _should_run(cell):
            _record_cell(result, events, CellResult(index, cell.cell_type, "Skipped"))
            continue
        events.write_cell_started(index)
        started_at = time.monotonic()
        client.set_expression(observer.build_question(index) if observer else "")
        failure = await _run_cell(client, index, cell)
        seconds, output = time.monotonic() - started_at, render_outputs(cell.outputs)
        if failure is not None:
            result.failure = failure
            output = failure.traceback or output
            _record_cell(
                result, events, CellResult(index, "code", "Failure", seconds, output, failure.name, failure.message)
            )
            return
        _record_cell(result, events, CellResult(index, "code", "Success", seconds, output))
        if observer is not None:
            observer.on_cell_executed(index, cell, client.reply)
        if client.has_exited:
            result.remarks.append(f"cell {index}: called sys.exit(0), so later cells did not run")
            return


def _should_run(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "code" and bool(cell["source"].strip()) and cells.SKIP not in cells.read_marks(cell)


def _record_cell(result: ExecutionResult, events: EventWriter, cell: CellResult) -> None:
    result.cells.append(cell)
    events.write_cell_result(cell)


async def _run_cell(client: _KernelClient, index: int, cell: NotebookNode) -> ExecutionFailure | None:
    try:
        await client.async_execute_cell(cell, index)
        return None
    except CellExecutionError as error:
        error_text = f"{error.ename}: {error.evalue}" if error.evalue else str(error.ename)
        return ExecutionFailure(
            index, str(error.ename), strip_ansi_codes(error_text), _read_traceback(cell) or strip_ansi_codes(error_text)
        )
    except CellTimeoutError:
        client.shutdown_kernel = "immediate"
        is_notebook_timeout = client.get_seconds_left() <= 0
        limit_text = (
            f"the notebook ran longer than {client.request.timeout_seconds:g} s"
            if is_notebook_timeout
            else (f"the cell ran longer than {client.request.cell_timeout_seconds:g} s")
        )
        return ExecutionFailure(index, "Timeout", f"Timeout: {limit_text}; make it faster, or allow more time")
    except asyncio.CancelledError:
        if client.should_keep_results():
            return _build_interruption(index)
        raise
    except DeadKernelError:
        if client.should_keep_results():
            return _build_interruption(index)
        if client.is_interrupted:
            raise asyncio.CancelledError from None  # nbclient reports a cancelled wait as a dead kernel
        kernel_log = client.read_kernel_log()
        return ExecutionFailure(index, "DeadKernel", "DeadKernel: the kernel ended while the cell ran", kernel_log)


def _build_interruption(index: int) -> ExecutionFailure:
    return ExecutionFailure(index, INTERRUPTED_NAME, f"{INTERRUPTED_NAME}: the run was stopped while this cell ran")


def _is_exit_output(output: Mapping[str, Any]) -> bool:
    """True if IPython printed this output because the cell called sys.exit()."""
    return output.get("ename") == "SystemExit" or "UserWarning: To exit: use" in str(output.get("text"))


def _read_traceback(cell: Mapping[str, Any]) -> str:
    error_outputs = [output for output in cell["outputs"] if output["output_type"] == "error"]
    return strip_ansi_codes("\n".join(error_outputs[-1]["traceback"])) if error_outputs else ""


def strip_ansi_codes(text: str) -> str:
    """Remove terminal colour codes."""
    return _ANSI_CODES.sub("", text)


def _build_start_failure(error: Exception, folder: Path) -> ExecutionFailure:
    log = folder / kernel_setup.LOG_FILE_NAME
    kernel_log = log.read_text(errors="replace")[-2000:] if log.exists() else ""
    return ExecutionFailure(-1, "KernelStart", f"cannot start the kernel: {error}", kernel_log)


class _KernelClient(NotebookClient):
    """nbclient with limited outputs, one deadline for all cells, and expressions evaluated outside of cells."""

    def __init__(self, notebook: NotebookNode, request: RunRequest, folder: Path, deadline: float) -> None:
        super().__init__(
            notebook,
            km=kernel_setup.create_kernel_manager(folder, request.kernel),
            timeout_func=self._get_cell_timeout,
            startup_timeout=KERNEL_START_TIMEOUT_SECONDS,
            record_timing=False,
            store_widget_state=False,
            allow_errors=False,
            skip_cells_with_tag=SKIP_TAG,
            on_cell_executed=self._on_cell_executed,
        )
        self._user_expressions: dict[str, str] = {}  # sent with every cell: evaluation needs no extra message
        self.reply = ""
        self.has_exited = self.is_interrupted = False
        self.owns_km = True
        self.request, self._deadline = request, deadline
        self._log_file = folder / kernel_setup.LOG_FILE_NAME
        self._working_folder = request.folder or os.path.dirname(os.path.abspath(request.notebook))
        self._output_limiter = OutputLimiter(request.most_cell_bytes, request.most_output_bytes)

    @asynccontextmanager
    async def run_kernel(self, folder: Path) -> AsyncIterator[None]:
        """Run the kernel until the context exits."""
        # The kernel's own output must not get between the event lines.
        with self._log_file.open("wb") as log:
            env = kernel_setup.build_environment(folder, self.request.env)
            options = {"env": env, "stdout": subprocess.DEVNULL, "stderr": log.fileno()}
            async with self.async_setup_kernel(cwd=self._working_folder, **options):
                assert self.kc is not None
                self.kc.execute = functools.partial(  # type: ignore[method-assign]
                    self.kc.execute, user_expressions=self._user_expressions
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

    def should_keep_results(self) -> bool:
        """True if the run was interrupted and shall still end with results."""
        task = asyncio.current_task()
        if not self.is_interrupted or not self.request.keep_interrupted or task is None:
            return False
        task.uncancel()
        return True

    def get_seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def read_kernel_log(self) -> str:
        return self._log_file.read_text(errors="replace")[-2000:] if self._log_file.exists() else ""

    def _get_cell_timeout(self, cell: Any) -> float:
        cell_timeout = self.request.cell_timeout_seconds
        return max(min(cell_timeout, self.get_seconds_left()) if cell_timeout else self.get_seconds_left(), 0.001)

    def set_expression(self, expression: str) -> None:
        """Set the expression to evaluate after the next cell."""
        self.reply = ""
        self._user_expressions.clear()
        if expression:
            self._user_expressions["answer"] = expression

    def _on_cell_executed(self, cell: NotebookNode, cell_index: int, execute_reply: Mapping[str, Any] | None) -> None:
        answer = ((execute_reply or {}).get("content", {}).get("user_expressions") or {}).get("answer") or {}
        self.reply = str((answer.get("data") or {}).get("text/plain") or "")

    async def evaluate(self, code: str, expression: str) -> str:
        """Run code outside of any cell, then return the value of an expression as text."""
        assert self.kc is not None
        message_id = self.kc.execute(code, silent=True, store_history=False, user_expressions={"answer": expression})
        deadline = time.monotonic() + min(EVALUATION_TIMEOUT_SECONDS, max(self.get_seconds_left(), 0.1))
        while True:
            try:
                reply = await self.kc.shell_channel.get_msg(timeout=max(deadline - time.monotonic(), 0))
            except Exception:
                return ""  # validation goes on without the value
            if reply["parent_header"].get("msg_id") == message_id:
                answer = (reply["content"].get("user_expressions") or {}).get("answer") or {}
                return str((answer.get("data") or {}).get("text/plain") or "")

    async def _check_raise_for_error(self, cell: NotebookNode, cell_index: int, exec_reply: Any) -> None:
        is_expected = cells.RAISES in cells.read_marks(cell)  # includes nbval marks, which nbclient does not know
        content = (exec_reply or {}).get("content") or {}
        # Like papermill, treat sys.exit() as a normal end.
        self.has_exited = (
            not is_expected and content.get("ename") == "SystemExit" and content.get("evalue") in ("", "0")
        )
        if self.has_exited:
            cell.outputs = [output for output in cell.outputs if not _is_exit_output(output)]
        elif not is_expected:
            await super()._check_raise_for_error(cell, cell_index, exec_reply)

    def output(self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
        if self.clear_before_next_output:
            self._output_limiter.reset_cell(cell_index)
        try:
            kept_output = self._output_limiter.limit_output(cell_index, output_from_msg(msg))  # type: ignore[no-untyped-call]
        except ValueError:
            return None
        if kept_output is None:
            return None
        if kept_output["output_type"] == "stream":
            msg = {
                **msg,
                "msg_type": "stream",
                "header": {**msg["header"], "msg_type": "stream"},
                "content": kept_output,
            }
            if not self.clear_before_next_output and append_to_stream(outs, kept_output):
                return None
            display_id = None
        return super().output(outs, msg, display_id, cell_index)

    def clear_output(self, outs: list[Any], msg: dict[str, Any], cell_index: int) -> None:
        if not msg["content"].get("wait"):
            self._output_limiter.reset_cell(cell_index)
        super().clear_output(outs, msg, cell_index)

    def _update_display_id(self, display_id: str, msg: dict[str, Any]) -> None:
        if all(self._output_limiter.fits(index, msg["content"]) for index in self._display_id_map.get(display_id, ())):
            super()._update_display_id(display_id, msg)
