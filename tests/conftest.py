"""What holds for all tests: their tiers, what a failure prints, and the order in which files run.

In: `longest.txt`, the names of the files that take longest. Out: these first, so that no worker is left alone with one
at the end; each file's own order is kept. Never: leaves one out.
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
# On one worker: the first share a real control plane, where there is one, the second a browser.
TOGETHER = ("tests/contract/", "tests/browser/")

# No deadlines: a busy machine is no fault of what is tested. The same examples each time, so that a change is not
# refused for what it did not do; `make prove` looks for new ones.
CALM: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("test", derandomize=True, database=None, **CALM)
settings.register_profile("prove", **CALM)

# Tests that a shell starts in the background ignore Ctrl-C, and so would every command that a test sends it to.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    _check_paths(config)
    _leave_home(config)
    settings.load_profile("prove" if config.getoption("--tier") == "prove" else "test")


def _check_paths(config: pytest.Config) -> None:
    """As pytest itself does, which says nothing where several processes run the tests."""
    for argument in config.args:
        if not (config.invocation_params.dir / argument.partition("::")[0]).exists():
            raise pytest.UsageError(f"file or directory not found: {argument}")


def _leave_home(config: pytest.Config) -> None:
    """No test reads or writes the settings of the person who runs it; commands get a home of their own besides."""
    go_modules.keep_folder()
    home = tempfile.TemporaryDirectory(prefix="argosy-test-home-")
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name
    for name in ("KUBECONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "ARGOSY_CONTEXT", "ARGOCD_OPTS", "ARGOCD_SERVER",
                 "ARGOCD_CONFIG_DIR"):  # fmt: skip
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of collected tests stay until the end; the garbage collector need not look at them again and again."""
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
    """The embedded cluster, in this process: what most tests need."""
    from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

    async with EmbeddedCluster.open() as opened:
        yield opened


@pytest.fixture
def until() -> Callable[[Callable[[], Awaitable[object]]], Awaitable[object]]:
    return wait_until_async


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {HERE / name: number for number, name in enumerate(LONGEST.read_text().split())}
    items.sort(key=lambda item: place.get(item.path, len(place)))


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
