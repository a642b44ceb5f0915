"""Engine scenarios run in-process, some also over the wire; `all` runs all of them there, and on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.engine import FLAVOURS, Room, engine_room
from support.real_server import REAL
from support.tiers import IN_TEST_ALL, tiers_of

HERE = Path(__file__).parent
OVER_THE_WIRE_IN_MAKE_TEST = {
    "test_cascading_deletion.py::test_delete_confirm_resources_wait_for_approval[wire]",
    "test_application_pruning.py::test_helm_values_can_come_from_another_source_by_ref[wire]",
    "test_settings_changes.py::test_last_valid_value_of_a_setting_is_kept[wire]",
    "test_wave_gates.py::test_wave_after_a_notebook_starts_only_after_it_succeeded[wire-Failed]",
}


def name_in_folder(item: pytest.Item) -> str:
    return f"{item.path.name}::{item.name}"


def is_over_the_wire(item: pytest.Item | pytest.Collector) -> bool:
    return isinstance(item, pytest.Item) and item.path.is_relative_to(HERE) and "[wire" in item.name


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_over_the_wire(item) and name_in_folder(item) not in OVER_THE_WIRE_IN_MAKE_TEST:
        item.add_marker(IN_TEST_ALL)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Fail the collection if a test of the set was renamed, moved or marked for another tier."""
    report = yield
    if isinstance(collector, pytest.Module) and report.passed:
        collected = {
            name_in_folder(item) for item in report.result if is_over_the_wire(item) and "test" in tiers_of(item)
        }
        missing = {name for name in OVER_THE_WIRE_IN_MAKE_TEST - collected if is_of_file(name, collector.path)}
        if missing:
            report.outcome = "failed"
            report.longrepr = f"{__file__} names a test that tier test does not run over the wire: {', '.join(missing)}"
    return report


def is_of_file(name: str, path: Path) -> bool:
    """True if this file should have the test, or if no file has it."""
    file = HERE / name.partition("::")[0]
    return file == path or not file.exists()


@pytest.fixture(params=[*FLAVOURS, REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as opened_room:
        yield opened_room
