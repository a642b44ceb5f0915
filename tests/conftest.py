"""Configuration of all tests: tiers, failure reports, and the order in which files run.

In: `longest.txt`, the names of the slowest test files. Out: these run first, so that no worker is left with one at the
end; the order within a file is kept. Never: skips a file.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from argosy.kube.client import Cluster
from support import go_modules
from support.deadlines import wait_until_async

pytest_plugins = ["support.tiers", "support.failure_report"]

HERE = Path(__file__).parent
LONGEST = HERE / "longest.txt"
# Each of these folders runs on one worker: tests/contract shares a real control plane if there is one, tests/browser
# shares a browser.
TOGETHER = ("tests/contract/", "tests/browser/")

# No deadlines, because a busy machine is not a bug. The same examples each time, so that a change does not fail for an
# unrelated reason; `make prove` generates new ones.
CALM: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("test", derandomize=True, database=None, **CALM)
settings.register_profile("prove", **CALM)

# A shell starts background jobs with SIGINT and SIGQUIT ignored. Child processes inherit that, and tests send them
# these signals, so restore the handlers.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    _check_paths(config)
    _leave_home(config)
    settings.load_profile("prove" if config.getoption("--tier") == "prove" else "test")


def _check_paths(config: pytest.Config) -> None:
    """Reject missing paths, as pytest does; with several processes (xdist), pytest does not report them."""
    for argument in config.args:
        if not (config.invocation_params.dir / argument.partition("::")[0]).exists():
            raise pytest.UsageError(f"file or directory not found: {argument}")


def _leave_home(config: pytest.Config) -> None:
    """Use an empty home folder, so that no test reads or writes the user's settings; commands get their own."""
    go_modules.keep_folder()
    home = tempfile.TemporaryDirectory(prefix="argosy-test-home-")
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name
    for name in ("KUBECONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "ARGOSY_CONTEXT", "ARGOCD_OPTS", "ARGOCD_SERVER",
                 "ARGOCD_CONFIG_DIR"):  # fmt: skip
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude the thousands of collected tests from garbage collection, because they exist until the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """The embedded cluster, in this process. Most tests use it."""
    from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

    async with EmbeddedCluster.open() as opened:
        yield opened


@pytest.fixture
def until() -> Callable[[Callable[[], Awaitable[object]]], Awaitable[object]]:
    return wait_until_async


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    position_by_path = {HERE / name: number for number, name in enumerate(LONGEST.read_text().split())}
    items.sort(key=lambda item: position_by_path.get(item.path, len(position_by_path)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = next(filter(nodeid.startswith, TOGETHER), None)
            return shared or super()._split_scope(nodeid)

    return ByFile(config, log)
