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

from argosy.features.notebooks.runner.order import OrderError

OURS: Final = "python3"
LONGEST: Final = 90  # bytes of a socket's path: the kernel of the system takes 107, and names are added
# As ipykernel_launcher, with less patience: at its end, a thread may wait for one that has ended already, and a kernel
# that takes too long is killed before it has flushed the files that its notebook left open.
LAUNCH: Final = (
    "import sys; del sys.path[0]; from ipykernel import iostream, kernelapp; "
    "iostream.OutStream.flush_timeout = 0.3; kernelapp.launch_new_instance()"
)
COMMAND: Final = ("-c", LAUNCH, "-f", "{connection_file}", "--HistoryManager.enabled=False")
LOG: Final = "kernel.log"


class _Specs(KernelSpecManager):
    """Knows one kernel, and looks for no other."""

    def get_kernel_spec(self, kernel_name: str) -> Any:
        return KernelSpec(argv=[sys.executable, *COMMAND], display_name="Python 3", language="python")


class _Kernel(AsyncKernelManager):
    """Asks a kernel to end, and does not interrupt it first: one that is about to rest may miss the request then, and
    seconds are lost until it is killed."""

    async def _async_interrupt_kernel(self) -> None:
        return None


@contextmanager
def place() -> Iterator[Path]:
    """A folder for sockets, which only this user may enter."""
    usual = tempfile.gettempdir()
    parent = usual if len(os.fsencode(usual)) < LONGEST - 20 else "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="nb-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def manager(folder: Path, name: str = "") -> AsyncKernelManager:
    """Not started yet. Raises OrderError where there is no kernel of that name."""
    found = _Kernel(
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


def check_language(metadata: Mapping[str, Any], name: str) -> None:
    """Raises OrderError where cells are written for another language than that of our own kernel."""
    spec, info = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
    language = str(spec.get("language") or info.get("name") or "python")
    if not name and language.lower() not in ("python", "ipython"):
        asked = spec.get("name") or language
        what = f"the notebook is written in {language}, and a job's kernel is that of Python"
        raise OrderError(f"{what}; write it in Python, or run it by hand with --kernel {asked}")


def environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Ours and what is given, with IPython's files in the run's own folder."""
    return {
        **os.environ,
        **given,
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
