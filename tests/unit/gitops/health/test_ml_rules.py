"""Tests the rules of machine-learning kinds: test cases cover every line, and incomplete objects raise no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import luajit21

from argosy.gitops.health.bundled_rules import RULES_FOLDER
from argosy.gitops.health.table_rule_compiler import table_to_lua

GROUPS = (
    "batch.volcano.sh",
    "jobset.x-k8s.io",
    "kubeflow.org",
    "kueue.x-k8s.io",
    "leaderworkerset.x-k8s.io",
    "machinelearning.seldon.io",
    "mlops.seldon.io",
    "ray.io",
    "sparkoperator.k8s.io",
    "trainer.kubeflow.org",
)
FOLDERS = sorted(folder for group in GROUPS for folder in (RULES_FOLDER / group).iterdir())
HEALTHS = {"Healthy", "Suspended", "Progressing", "Degraded", "Missing"}

# Lines of the script that can run, and lines that did. The functions that every compiled table contains are excluded.
_WATCH = """
local seen, possible = {}, {}
return function(script, obj, is_table)
  local chunk = assert(loadstring(script, "rule"))
  setfenv(chunk, {obj = obj, type = type, pairs = pairs, ipairs = ipairs, tostring = tostring, tonumber = tonumber})
  jit.off()
  debug.sethook(function(_, line)
    local info = debug.getinfo(2, "SL")
    if info.source == "rule" and (info.what == "main" or not is_table) then
      for active in pairs(info.activelines) do possible[active] = true end
      seen[line] = true
    end
  end, "l")
  local ok, answer = pcall(chunk)
  debug.sethook()
  assert(ok, answer)
  return answer.status, answer.message
end, seen, possible
"""


def script_of(folder: Path) -> str:
    if (folder / "health.lua").exists():
        return (folder / "health.lua").read_text()
    return table_to_lua(folder.name, yaml.safe_load((folder / "health.yaml").read_text()))


def lua_value(runtime: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return runtime.table_from({key: lua_value(runtime, inner) for key, inner in value.items()})
    if isinstance(value, list):
        return runtime.table_from([lua_value(runtime, inner) for inner in value])
    return value


def named(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=named)
def test_cases_of_a_rule_cover_every_line(folder: Path) -> None:
    runtime = luajit21.LuaRuntime(unpack_returned_tuples=True)
    watch, reached, possible = runtime.execute(_WATCH)
    script = script_of(folder)
    for case in (folder / "testdata").iterdir():
        manifest = lua_value(runtime, yaml.safe_load(case.read_text()))
        watch(script, manifest, (folder / "health.yaml").exists())
    lines = script.splitlines()
    assert reached[len(lines)], "the last line is the last answer"
    missed = sorted(set(possible) - set(reached))
    # Ignore `end` lines: there a function would continue after its last return, and a `for` loop ends.
    assert [lines[line - 1] for line in missed if lines[line - 1].strip() != "end"] == []


ODD = [
    {},
    {"metadata": {}, "spec": {}, "status": {}},
    {"status": {"conditions": []}},
    {"status": {"conditions": [{}]}},
    {"status": {"conditions": [{"type": "Ready"}, {"status": "True"}]}},
    {"metadata": {"annotations": {}}, "status": {"state": {}, "applicationState": {}, "containerState": {}}},
    {"status": {"activeServiceStatus": {}, "pendingServiceStatus": {"applicationStatuses": {"a": {}}}}},
]


@pytest.mark.parametrize("folder", FOLDERS, ids=named)
@pytest.mark.parametrize("manifest", ODD, ids=str)
def test_incomplete_object_is_progressing_and_raises_no_error(folder: Path, manifest: dict[str, Any]) -> None:
    runtime = luajit21.LuaRuntime(unpack_returned_tuples=True)
    watch, _, _ = runtime.execute(_WATCH)
    status, message = watch(script_of(folder), lua_value(runtime, manifest), False)
    assert (status, bool(message)) == ("Progressing", True)


@pytest.mark.parametrize("folder", FOLDERS, ids=named)
def test_cases_cover_progressing_without_status_and_healthy(folder: Path) -> None:
    cases = yaml.safe_load((folder / "health_test.yaml").read_text())["tests"]
    answers = {Path(case["inputPath"]).stem: case["healthStatus"] for case in cases}
    assert answers["no_status"] == {"status": "Progressing", "message": f"Waiting for {folder.name}"}
    words = {answer["status"] for answer in answers.values()}
    assert {"Healthy", "Progressing"} <= words <= HEALTHS
    assert all(answer["message"] for answer in answers.values())
