"""argosy's own API: why, diff, explain, waves, hold, palette, doctor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_scene import CONTROL, SECRET_VALUE, ApiScene, a_folder, api_scene

pytestmark = pytest.mark.anyio
OWN = "/api/argosy/v1"
APP = f"{OWN}/applications/{CONTROL}/models"
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def of_team(resource: str, action: str, thing: str) -> bool:
    return thing.startswith("team/")


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiScene]:
    async with api_scene(tmp_path_factory.mktemp("own"), {"tim": of_team}) as found:
        wave = {"argocd.argoproj.io/sync-wave": "-3"}
        files: dict[str, Any] = a_folder()
        files["app/service.yaml"]["metadata"]["annotations"] = wave
        found.room.repository.push(files)
        await found.room.deliver()
        await found.room.until(lambda status: status["sync"]["status"] == "OutOfSync")
        await found.room.sync()
        await found.room.until_synced()
        await found.room.change(a="two")
        await found.room.settled()
        await found.seen("models", lambda app: app["status"]["sync"]["status"] == "OutOfSync")
        yield found


async def test_why_names_the_trouble_and_the_next_command(api: ApiScene) -> None:
    told = await api.get(f"{APP}/why")
    assert told["sync"] == "OutOfSync" and told["why"] == "1 of 5 objects differ: ConfigMap/settings"
    assert told["next"] == "argosy app diff models"


async def test_a_difference_is_told_by_field_with_its_cause(api: ApiScene) -> None:
    (item,) = (await api.get(f"{APP}/diff"))["items"]
    (field,) = item["fields"]
    assert (field["path"], field["live"], field["desired"]) == ("/data/a", "two", "one")
    assert field["writtenIn"].startswith("app/settings.yaml:")
    assert field["cause"]["kind"]
    told = await api.get(f"{APP}/explain?object=configmap/settings&field=.data.a")
    assert told["status"] == "OutOfSync" and told["fields"][0]["path"] == "/data/a"


async def test_waves_come_in_their_order(api: ApiScene) -> None:
    found = (await api.get(f"{APP}/waves"))["waves"]
    assert [each["wave"] for each in found] == [-3, 0]
    assert [each["kind"] for each in found[0]["objects"]] == ["Service"]


async def test_a_hold_is_signed_kept_and_released(api: ApiScene) -> None:
    held = (await api.ask("POST", f"{APP}/hold", {"reason": "incident 42"})).json()
    assert held | {"since": ""} == held | {
        "held": True, "changed": True, "by": "ann", "reason": "incident 42", "since": "",
    }  # fmt: skip
    await api.seen("models", lambda app: "argosy.dev/hold" in str(app["metadata"].get("annotations")))
    assert (await api.get(f"{APP}/why"))["next"] == "argosy app release models"
    assert (await api.ask("POST", f"{APP}/hold", {})).json()["changed"] is False
    assert (await api.ask("DELETE", f"{APP}/hold")).json() == {"held": False, "changed": True}
    await api.seen("models", lambda app: "argosy.dev/hold" not in str(app["metadata"].get("annotations")))
    assert (await api.ask("DELETE", f"{APP}/hold")).json()["changed"] is False


async def test_the_palette_finds_what_may_be_seen_and_nothing_else(api: ApiScene) -> None:
    found = (await api.get(f"{OWN}/palette?q=mod"))["items"]
    assert f"/apps/{CONTROL}/models" in [each["url"] for each in found if each["kind"] == "app"]
    assert "models" not in [each["text"] for each in (await api.get(f"{OWN}/palette?q=mod", "tim"))["items"]]
    pages = (await api.get(f"{OWN}/palette", "bob"))["items"]
    assert {each["kind"] for each in pages} == {"page"}
    assert len((await api.get(f"{OWN}/palette?q="))["items"]) <= 20
    assert (await api.get(f"{OWN}/palette?q=nothing-like-that"))["items"] == []


async def test_the_doctor_answers_who_may_see_everything(api: ApiScene) -> None:
    found = await api.ask("GET", f"{OWN}/doctor?quick=true")
    assert found.code == 200 and found.json()["kind"] == "Diagnosis", found
    assert [each["name"] for each in found.json()["applications"]] == ["models"]
    assert SECRET_VALUE.encode() not in found.body
    assert (await api.ask("GET", f"{OWN}/doctor", who="tim")).body == DENIED


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("GET", f"{APP}/diff?revision=nothing", None),
        ("GET", f"{APP}/explain", None),
        ("GET", f"{APP}/explain?object=configmap", None),
        ("GET", f"{APP}/explain?object=configmap/nobody", None),
        ("GET", f"{APP}/explain?object=strange/settings", None),
        ("POST", f"{APP}/hold", {"reason": 7}),
        ("POST", f"{APP}/hold", {"reason": "x" * 2000}),
        ("POST", f"{APP}/hold", ["reason"]),
        ("GET", f"{OWN}/doctor?app=nobody", None),
        ("GET", f"{OWN}/doctor?match=(", None),
        ("GET", f"{OWN}/doctor?quick=perhaps", None),
    ],
)
async def test_what_is_wrong_is_told(api: ApiScene, method: str, path: str, document: Any) -> None:
    found = await api.ask(method, path, document)
    assert found.code == 400 and len(found.json()["message"]) > 10, found


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "why"), ("GET", "diff"), ("GET", "explain?object=a/b"), ("GET", "waves"), ("POST", "hold"),
        ("DELETE", "hold"),
    ],
)  # fmt: skip
async def test_absent_and_forbidden_are_the_same_bytes(api: ApiScene, method: str, path: str) -> None:
    body = {} if method == "POST" else None
    for who, name in (("bob", "models"), ("bob", "nothing"), ("ann", "nothing"), ("tim", "models")):
        assert (await api.ask(method, f"{OWN}/applications/{CONTROL}/{name}/{path}", body, who)).body == DENIED
