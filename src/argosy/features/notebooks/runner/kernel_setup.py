"""Kernel of one run: the interpreter that runs the runner, reached through sockets in a private folder.

In: a private folder, and the name of a kernel or "". Out: a kernel manager. Never: opens a network port; uses the
user's Jupyter or IPython folders, unless a kernel is requested by name.
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

from argosy.features.notebooks.runner.run_request import RunRequestError

DEFAULT_KERNEL: Final = "python3"
MAX_SOCKET_PATH_BYTES: Final = 90  # bytes of a socket path: Linux allows 107, and names are appended
# Like ipykernel_launcher with a shorter flush timeout: at exit, a thread may wait for one that has already ended, and
# a kernel that takes too long is killed before it has flushed the files that its notebook left open.
LAUNCH_CODE: Final = (
    "import sys; del sys.path[0]; from ipykernel import iostream, kernelapp; "
    "iostream.OutStream.flush_timeout = 0.3; kernelapp.launch_new_instance()"
)
KERNEL_ARGUMENTS: Final = ("-c", LAUNCH_CODE, "-f", "{connection_file}", "--HistoryManager.enabled=False")
LOG_FILE_NAME: Final = "kernel.log"


class _SingleKernelSpecManager(KernelSpecManager):
    """Offers the runner's own interpreter as the only kernel."""

    def get_kernel_spec(self, kernel_name: str) -> Any:
        return KernelSpec(argv=[sys.executable, *KERNEL_ARGUMENTS], display_name="Python 3", language="python")


class _UninterruptedKernelManager(AsyncKernelManager):
    """Shuts a kernel down without interrupting it first: an idle kernel may then miss the shutdown request, and seconds
    are lost until it is killed.
    """

    async def _async_interrupt_kernel(self) -> None:
        return None


@contextmanager
def create_socket_folder() -> Iterator[Path]:
    """Create a folder for sockets that only this user can enter."""
    temp_folder = tempfile.gettempdir()
    parent = temp_folder if len(os.fsencode(temp_folder)) < MAX_SOCKET_PATH_BYTES - 20 else "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="nb-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def create_kernel_manager(folder: Path, name: str = "") -> AsyncKernelManager:
    """Create a kernel manager without starting it. Raises RunRequestError if no kernel has that name."""
    kernel_manager = _UninterruptedKernelManager(
        kernel_name=name or DEFAULT_KERNEL,
        kernel_spec_manager=KernelSpecManager() if name else _SingleKernelSpecManager(),
        transport="ipc",
        ip=str(folder / "k"),
        connection_file=str(folder / "connection.json"),
    )
    try:
        spec = kernel_manager.kernel_spec
    except NoSuchKernel:
        spec = None
    if spec is None:
        raise RunRequestError(f"kernel {name}: is not installed; install it, or omit the kernel name")
    return kernel_manager


def check_language(metadata: Mapping[str, Any], name: str) -> None:
    """Raises RunRequestError if the notebook is not written in Python and no other kernel is requested."""
    spec, info = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
    language = str(spec.get("language") or info.get("name") or "python")
    if not name and language.lower() not in ("python", "ipython"):
        kernel_name = spec.get("name") or language
        problem = f"the notebook is written in {language}, but jobs use a Python kernel"
        raise RunRequestError(f"{problem}; write it in Python, or run it by hand with --kernel {kernel_name}")


def build_environment(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The runner's environment and `variables`, with IPython's files in the folder of the run."""
    return {
        **os.environ,
        **variables,
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
