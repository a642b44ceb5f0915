"""Tests Lua 5.2 as the fallback if LuaJIT is missing: same results, and a separate state for each user script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from argosy.gitops.health.bundled_rules import load_bundled_rules
from argosy.gitops.health.lua import engine
from argosy.gitops.health.lua.engine import LuaEngine, user_script_engine
from argosy.kube.resource_key import GroupKind

lua52 = pytest.importorskip("lupa.lua52", reason="this build of lupa has no Lua 5.2")


@pytest.fixture(autouse=True)
def _without_luajit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engine, "_import_lua_library", lambda: lua52)
    engine.shared_engine.cache_clear()
    yield
    engine.shared_engine.cache_clear()


def value(script: str, manifest: dict[str, Any] | None = None, *, open_libs: bool = False) -> Any:
    return LuaEngine(open_libs=open_libs).run(script, manifest or {}).value


ROWS = [
    ("return {tostring(obj.n), tostring(obj.part)}", ["3", "0.5"]),
    ("return {'' .. obj.n}", ["3"]),
    ("return {tostring(table.getn({1, 2}))}", ["2"]),
    ("return {type(string), type(os), type(_ENV.io)}", ["nil", "nil", "nil"]),
    ("return {require('os').date('!%Y', 0)}", ["1970"]),
    ("for i = 1, 2 do if i == 1 then goto on end obj.n = i ::on:: end return {tostring(obj.n)}", ["2"]),
    ("return {tostring(loadstring('return obj.n')())}", ["3"]),
    ("return {tostring(pcall(load, 'x'))}", ["true"]),
]


@pytest.mark.parametrize(("script", "expected"), ROWS)
def test_scripts_behave_the_same_in_lua_52(script: str, expected: list[str]) -> None:
    assert value(script, {"n": 3, "part": 0.5}) == expected


def test_bundled_rule_gives_the_same_health_in_lua_52() -> None:
    rule = load_bundled_rules()[GroupKind("serving.kserve.io", "InferenceService")]
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert value(rule.script, ready, open_libs=True)["status"] == "Healthy"


def test_finalizer_of_one_script_does_not_affect_the_next() -> None:
    leaves = "setmetatable({}, {__gc = function() obj.status.phase = 'stolen' end}) return {}"
    collects = "for i = 1, 2000 do local garbage = {i} end return {obj.status.phase}"
    for script in (leaves, collects) * 20:  # Lua may finalize in the script that leaves garbage, or in any later one
        script_result = user_script_engine(open_libs=False).run(script, {"status": {"phase": "mine"}}).value
        assert script_result == ([] if script == leaves else ["mine"])


def test_each_script_has_a_state_of_its_own() -> None:
    assert user_script_engine(open_libs=False) is not user_script_engine(open_libs=False)
