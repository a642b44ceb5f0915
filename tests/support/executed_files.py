"""Records which files of argosy run for an Application in the event loop of an engine.

In: an engine in this process. Out: the files whose functions, and those whose coroutines, ran between two moments.
Never: counts code of the API server that runs in the same loop, or of other threads and processes.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import argosy
from argosy.kube.controller.log_context import get_log_fields

SOURCE = str(Path(argosy.__file__).parent) + "/"
INFORMER_TASK = "everything "  # how its task is named, before the kind


@dataclass
class ExecutedFiles:
    """Paths below src/argosy: of any function that ran, and of coroutines."""

    functions: set[str] = field(default_factory=set)
    coroutines: set[str] = field(default_factory=set)


@contextmanager
def record_executed_files() -> Iterator[ExecutedFiles]:
    """Record the files that run in informers, from a watch event on, and in workers while they reconcile."""
    files = ExecutedFiles()

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and _is_of_an_application():
            name = code.co_filename.removeprefix(SOURCE)
            files.functions.add(name)
            if code.co_flags & inspect.CO_COROUTINE:
                files.coroutines.add(name)

    sys.setprofile(on_call)
    try:
        yield files
    finally:
        sys.setprofile(None)


def _is_of_an_application() -> bool:
    """True in the task of an informer, in a worker that reconciles, and in tasks that these have started."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return False
    return task is not None and (task.get_name().startswith(INFORMER_TASK) or "application" in get_log_fields())
