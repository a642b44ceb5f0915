"""What runs where and when: the longest first, so that no worker is left alone with it at the end.

In: `longest.txt`, file names in that order. Out: tests so ordered, each file's own order kept. Never: leaves one out.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
LONGEST = HERE / "longest.txt"
TOGETHER = "tests/contract/"  # on one worker: they share a real control plane, where there is one

# A machine that is busy with other tests is no fault of what is tested.
settings.register_profile("argosy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("argosy")


# Whoever starts tests in the background has them ignore Ctrl-C, and so would every command that a test sends it to.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


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
            return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    return ByFile(config, log)
