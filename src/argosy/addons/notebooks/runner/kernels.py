"""A kernel for one run: the interpreter that runs the runner, spoken to through sockets in a folder of its own.

In: a folder that nobody else may enter, a kernel's name or none. Out: a kernel's manager. Never: a port of the machine;
the user's Jupyter or IPython folders, unless a kernel of theirs is asked for by name.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

from argosy.addons.notebooks.runner.order import OrderError

OURS: Final = "python3"
LONGEST: Final = 90  # bytes of a socket's path: the kernel of the system takes 107, and names are added
COMMAND: Final = ("-m", "ipykernel_launcher", "-f", "{connection_file}", "--HistoryManager.enabled=False")
LOG: Final = "kernel.log"


class _Specs(KernelSpecManager):
    """Knows one kernel, and looks for no other."""

    def get_kernel_spec(self, kernel_name: str) -> Any:
        return KernelSpec(argv=[sys.executable, *COMMAND], display_name="Python 3", language="python")


@contextmanager
def place() -> Iterator[Path]:
    """A folder for sockets, which only this user may enter."""
    usual = tempfile.gettempdir()
    parent = usual if len(os.fsencode(usual)) < LONGEST - 20 else "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="nb-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def manager(folder: Path, name: str = "") -> AsyncKernelManager:
    """Not started yet. Raises OrderError where there is no kernel of that name."""
    found = AsyncKernelManager(
        kernel_name=name or OURS,
        kernel_spec_manager=KernelSpecManager() if name else _Specs(),
        transport="ipc",
        ip=str(folder / "k"),
        connection_file=str(folder / "connection.json"),
    )
    try:
        spec = found.kernel_spec
    except NoSuchKernel:
        spec = None
    if spec is None:
        raise OrderError(f"kernel {name}: is not installed here; install it, or leave the name out")
    return found


def environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Ours and what is given, with IPython's files in the run's own folder."""
    return {
        **os.environ,
        **given,
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
