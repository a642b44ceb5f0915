"""Settings that come, go, and cannot be read while the engine runs."""

from __future__ import annotations

import pytest
from engine_room import Room, conditions, config_map

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
AUTOMATED = {"automated": {}}
BROKEN_CHECK = {"resource.customizations.health.ConfigMap": "this is no Lua"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout.reconciliation", "soon"),
        ("application.resourceTrackingMethod", "magic"),
        ("resource.exclusions", "{no: list}"),
        ("resource.compareoptions", "[1"),
    ],
)
async def test_a_setting_that_cannot_be_read_is_a_condition_and_stops_nothing(
    room: Room, name: str, value: str
) -> None:
    room.repository.push(ONE)
    await room.configure({name: value})
    await room.deliver(syncPolicy=AUTOMATED)
    said = await room.until_condition("UnknownError")
    assert name in said
    await room.until_synced()
    await room.configure({name: None})
    await room.until(lambda status: not conditions(status, "UnknownError"))


async def test_a_check_that_is_broken_is_told_and_blocks_no_sync(room: Room) -> None:
    room.repository.push(ONE)
    await room.configure(BROKEN_CHECK)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert await room.get("ConfigMap", "settings") is not None
    app = await room.until(lambda status: conditions(status, "UnknownError"))
    assert app["status"]["health"]["status"] == "Unknown"
    await room.configure(dict.fromkeys(BROKEN_CHECK))
    app = await room.until(lambda status: "conditions" not in status)
    assert app["status"]["health"]["status"] == "Healthy"


async def test_the_last_good_value_of_a_setting_holds(room: Room) -> None:
    room.repository.push(ONE)
    await room.configure({"application.resourceTrackingMethod": "label"})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.configure({"application.resourceTrackingMethod": "magic"})
    await room.until_condition("UnknownError")
    await room.sync()
    await room.until_synced()
    metadata = (await room.get("ConfigMap", "settings") or {})["metadata"]
    assert metadata["labels"]["app.kubernetes.io/instance"] == "models"
