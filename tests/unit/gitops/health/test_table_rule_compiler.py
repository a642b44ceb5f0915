"""Tests health rules in table form: the results of their Lua, errors of invalid tables, and quoting of text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa import luajit21

from argosy.errors import UserError
from argosy.gitops.health.table_rule_compiler import lua_quote, table_to_lua
from support.examples import examples

RAY = {
    "generation": "status.observedGeneration",
    "suspend": "spec.suspend",
    "conditions": [
        {"type": "Failed", "status": "True", "health": "Degraded"},
        {"type": "Ready", "status": "False", "reason": ["Pending", "Creating"], "health": "Progressing"},
        {"type": "Ready", "status": "Unknown", "health": "Unknown"},
        {"type": "Ready", "status": "True", "health": "Healthy", "message": "RayCluster is ready"},
    ],
    "phases": {
        "path": "status.state",
        "words": {"ready": "Healthy", "failed": "Degraded", "dead": "Degraded", "paused": "Suspended"},
        "message": "status.reason",
    },
    "otherwise": {"health": "Progressing", "message": "Waiting for RayCluster"},
}

_BASE_ONLY = """
for name in pairs(_G) do
  if name ~= "type" and name ~= "ipairs" and name ~= "_G" then _G[name] = nil end
end
"""


def lua_value(runtime: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return runtime.table_from({key: lua_value(runtime, inner) for key, inner in value.items()})
    if isinstance(value, list):
        return runtime.table_from([lua_value(runtime, inner) for inner in value])
    return value


def judge(table: dict[str, Any], manifest: dict[str, Any], kind: str = "RayCluster") -> tuple[str, str]:
    runtime = luajit21.LuaRuntime(register_eval=False, register_builtins=False)
    runtime.execute("pairs = pairs" + _BASE_ONLY)
    runtime.globals()["obj"] = lua_value(runtime, manifest)
    answer = runtime.execute(table_to_lua(kind, table))
    return answer["status"], answer["message"]


def with_condition(**condition: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Other", "status": "True"}, condition]}}


def test_unobserved_generation_takes_precedence_over_everything() -> None:
    manifest = {
        "metadata": {"generation": 3},
        "spec": {"suspend": True},
        "status": {"observedGeneration": 2, "state": "ready"},
    }
    assert judge(RAY, manifest) == ("Progressing", "Waiting for the controller to observe generation 3")


@pytest.mark.parametrize("status", [{"observedGeneration": 3, "state": "ready"}, {"state": "ready"}])
def test_observed_or_missing_generation_does_not_wait(status: dict[str, Any]) -> None:
    assert judge(RAY, {"metadata": {"generation": 3}, "status": status}) == ("Healthy", "RayCluster is ready")


def test_suspended_takes_precedence_over_conditions() -> None:
    manifest = {"spec": {"suspend": True}, **with_condition(type="Failed", status="True")}
    assert judge(RAY, manifest) == ("Suspended", "RayCluster is suspended")
    assert judge(RAY, {"spec": {"suspend": False}})[0] == "Progressing"


def test_rows_are_evaluated_in_table_order() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "True", "message": "no node"}]
    assert judge(RAY, {"status": {"conditions": conditions}}) == ("Degraded", "no node")


def test_conditions_take_precedence_over_phases() -> None:
    manifest = {"status": {"state": "ready", "conditions": [{"type": "Failed", "status": "True"}]}}
    assert judge(RAY, manifest)[0] == "Degraded"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "Failed", "status": "True", "reason": "R", "message": "M"}, ("Degraded", "M")),
        ({"type": "Failed", "status": "True", "reason": "R", "message": ""}, ("Degraded", "R")),
        ({"type": "Failed", "status": "True", "reason": ""}, ("Degraded", "RayCluster is Failed")),
        ({"type": "Ready", "status": "False", "reason": "Creating"}, ("Progressing", "Creating")),
        ({"type": "Ready", "status": "Unknown"}, ("Unknown", "RayCluster: Ready is Unknown")),
        ({"type": "Ready", "status": "True", "message": "M"}, ("Healthy", "RayCluster is ready")),
    ],
)
def test_message_is_from_row_then_condition_then_reason(condition: dict[str, str], expected: tuple[str, str]) -> None:
    assert judge(RAY, with_condition(**condition)) == expected


def test_false_condition_without_message_is_described_as_not_ready() -> None:
    table = {"conditions": [{"type": "Ready", "status": "False", "health": "Degraded"}]}
    assert judge(table, with_condition(type="Ready", status="False")) == ("Degraded", "RayCluster is not Ready")


@pytest.mark.parametrize("reason", [{}, {"reason": "Other"}])
def test_row_with_reasons_does_not_match_other_reasons(reason: dict[str, str]) -> None:
    assert judge(RAY, with_condition(type="Ready", status="False", **reason)) == (
        "Progressing",
        "Waiting for RayCluster",
    )


def test_single_reason_needs_no_list() -> None:
    table = {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken", "health": "Degraded"}]}
    assert judge(table, with_condition(type="Ready", status="False", reason="Broken")) == ("Degraded", "Broken")


def test_row_without_status_matches_true() -> None:
    table = {"conditions": [{"type": "Failed", "health": "Degraded"}]}
    assert judge(table, with_condition(type="Failed", status="True"))[0] == "Degraded"
    assert judge(table, with_condition(type="Failed", status="False"))[0] == "Progressing"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"state": "ready"}, ("Healthy", "RayCluster is ready")),
        ({"state": "dead", "reason": "out of memory"}, ("Degraded", "out of memory")),
        ({"state": "failed", "reason": ""}, ("Degraded", "RayCluster is failed")),
        ({"state": "paused"}, ("Suspended", "RayCluster is paused")),
        ({"state": "elsewhere"}, ("Progressing", "Waiting for RayCluster")),
        ({"state": 7}, ("Progressing", "Waiting for RayCluster")),
        ({}, ("Progressing", "Waiting for RayCluster")),
    ],
)
def test_phase_has_the_health_of_its_word(status: dict[str, Any], expected: tuple[str, str]) -> None:
    assert judge(RAY, {"status": status}) == expected


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"status": "text"},
        {"status": {"conditions": "text"}},
        {"status": {"conditions": ["text"]}},
        {"status": {"conditions": [{}]}},
        {"status": {"conditions": []}},
        {"metadata": "text", "spec": 1, "status": {"observedGeneration": "3", "state": {}}},
    ],
)
def test_incomplete_or_odd_manifest_is_progressing(manifest: dict[str, Any]) -> None:
    assert judge(RAY, manifest) == ("Progressing", "Waiting for RayCluster")


def test_table_without_otherwise_is_progressing() -> None:
    assert judge({"suspend": "spec.suspend"}, {}, "Job") == ("Progressing", "Waiting for Job")


def test_otherwise_alone_is_a_valid_rule() -> None:
    assert judge({"otherwise": {"health": "Healthy"}}, {}) == ("Healthy", "")
    assert judge({"otherwise": {"health": "Healthy", "message": "fine"}}, {}) == ("Healthy", "fine")


def test_path_allows_dashes_lua_keywords_and_a_single_step() -> None:
    table = {"suspend": "spec.end.is-off", "phases": {"path": "phase", "words": {"on": "Healthy"}}}
    assert judge(table, {"spec": {"end": {"is-off": True}}})[0] == "Suspended"
    assert judge(table, {"phase": "on"}) == ("Healthy", "RayCluster is on")


WRONG = [
    ({}, "health table of RayCluster: is empty; give at least one of suspend, conditions, phases or otherwise"),
    ([], "health table of RayCluster: must be a map with generation, suspend, "),
    ({"condition": []}, "health table of RayCluster: unknown key 'condition'; did you mean conditions?"),
    ({1: 2}, "unknown key 1; known: generation, suspend,"),
    ({"suspend": True}, "suspend: must be a string, not true or false; put it in quotes"),
    ({"suspend": "spec..suspend"}, "suspend: 'spec..suspend' is not a path; write field names with dots between"),
    ({"suspend": "spec.x) error("}, "is not a path"),
    ({"generation": 1, "suspend": "spec.s"}, "generation: must be a string, not a number"),
    ({"conditions": {"type": "Ready"}}, "conditions: must be a list of rows, not a map"),
    ({"conditions": "Ready"}, "conditions: must be a list of rows, not a string"),
    ({"conditions": ["Ready"]}, "conditions[0]: must be a map with type, status, reason, health, message"),
    ({"conditions": [{"type": "Ready", "healt": "Healthy"}]}, "unknown key 'healt'; did you mean health?"),
    ({"conditions": [{"health": "Healthy"}]}, "conditions[0].type: is missing"),
    ({"conditions": [{"type": "Ready"}]}, "conditions[0].health: is missing"),
    (
        {"conditions": [{"type": "Ready", "health": "healty"}]},
        "conditions[0].health: unknown word 'healty'; did you mean Healthy?",
    ),
    ({"conditions": [{"type": "Ready", "health": "Fine"}]}, "'Fine'; known: Healthy, Suspended, Progressing, Missing,"),
    (
        {"conditions": [{"type": "Ready", "status": True, "health": "Healthy"}]},
        "conditions[0].status: must be a string, not true or false; put it in quotes",
    ),
    ({"conditions": [{"type": "Ready", "status": "true", "health": "Healthy"}]}, "'true'; did you mean True?"),
    ({"conditions": [{"type": "Ready", "reason": [], "health": "Healthy"}]}, "conditions[0].reason: must list"),
    ({"conditions": [{"type": "Ready", "reason": ["A", 1], "health": "Healthy"}]}, "conditions[0].reason[1]: must"),
    ({"conditions": [{"type": "R", "health": "Healthy", "message": 5}]}, "conditions[0].message: must be a string"),
    ({"phases": {"path": "status.phase"}}, "phases.words: must map each word to a health"),
    ({"phases": {"words": {"a": "Healthy"}}}, "phases.path: is missing"),
    ({"phases": {"path": "a", "words": {True: "Healthy"}}}, "phases.words: must be a string, not true or false"),
    ({"phases": {"path": "a", "words": {"on": "Helthy"}}}, "phases.words.on: unknown word 'Helthy'; did you"),
    ({"phases": {"path": "a", "words": {"on": "Healthy"}, "message": "a b"}}, "phases.message: 'a b' is not a path"),
    ({"otherwise": {"message": "x"}}, "otherwise.health: is missing"),
    ({"otherwise": "Healthy"}, "otherwise: must be a map with health, message, not a string"),
    ({"otherwise": {"health": "Healthy", "message": "\ud800"}}, "otherwise.message: contains a lone surrogate"),
]


@pytest.mark.parametrize(("table", "expected"), WRONG, ids=[text[-30:] for _, text in WRONG])
def test_invalid_table_is_rejected_with_field_and_suggestion(table: Any, expected: str) -> None:
    with pytest.raises(UserError) as error:
        table_to_lua("RayCluster", table)
    assert expected in str(error.value)


@pytest.mark.parametrize("kind", ["", "Ray Cluster", "Ray\nos.exit()", "*"])
def test_kind_that_could_break_out_of_a_comment_is_rejected(kind: str) -> None:
    with pytest.raises(UserError, match="invalid kind"):
        table_to_lua(kind, RAY)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(ANY_TEXT)
def test_any_text_survives_quoting_on_one_line(text: str) -> None:
    literal = lua_quote(text)
    assert len(literal.splitlines()) == 1
    assert luajit21.LuaRuntime(encoding=None).execute(f"return {literal}".encode()) == text.encode()


@pytest.mark.parametrize("text", ['" .. os.exit() .. "', "]]", "\\", '\\"', "a\0b", "\n--", "\u2028", "\u202e", "é"])
def test_hostile_text_survives_quoting(text: str) -> None:
    assert luajit21.LuaRuntime(encoding=None).execute(f"return {lua_quote(text)}".encode()) == text.encode()


@settings(max_examples=examples())
@given(ANY_TEXT.filter(bool), ANY_TEXT.filter(bool), ANY_TEXT.filter(bool))
def test_any_text_in_a_table_stays_text(word: str, reason: str, message: str) -> None:
    table = {
        "conditions": [{"type": word, "reason": reason, "health": "Degraded", "message": message}],
        "phases": {"path": "status.phase", "words": {word: "Healthy"}},
    }
    assert judge(table, with_condition(type=word, status="True", reason=reason)) == ("Degraded", message)
    assert judge(table, {"status": {"phase": word}}) == ("Healthy", f"RayCluster is {word}")


def test_compiled_script_reads_like_a_handwritten_one() -> None:
    table = {
        "suspend": "spec.suspend",
        "phases": {"path": "status.phase", "words": {"Running": "Healthy", "Ready": "Healthy", "Failed": "Degraded"}},
    }
    assert (
        table_to_lua("Engine", table)
        == """\
-- Health of Engine, written from its table form.
local hs = {}

local suspended = nil
if type(obj.spec) == "table" then
  suspended = obj.spec.suspend
end
if suspended == true then
  hs.status = "Suspended"
  hs.message = "Engine is suspended"
  return hs
end

local phase = nil
if type(obj.status) == "table" then
  phase = obj.status.phase
end
if phase == "Running" or phase == "Ready" then
  hs.status = "Healthy"
elseif phase == "Failed" then
  hs.status = "Degraded"
end
if hs.status ~= nil then
  hs.message = "Engine is " .. phase
  return hs
end

hs.status = "Progressing"
hs.message = "Waiting for Engine"
return hs
"""
    )
