"""Converts the result of a health script into an Assessment, as Argo CD does.

In: a result of the engine, or an error of a worker. Out: an Assessment. Never: raises because of a script.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.lua.engine import Answer
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.isolation import OverLimit

INVALID: Final = "Lua returned an invalid health status"
_WORDS: Final = {str(health): health for health in Health}
_GO_TYPES: Final = {list: "array", dict: "object", bool: "bool", int: "number", float: "number"}
_LIMITS: Final = {
    "cpu": "context deadline exceeded: the script ran longer than 1 second",
    "wall": "context deadline exceeded: the script returned no result within 10 seconds",
    "memory": "the script used more memory than a check may",
    "output": "the script returned more than a check may",
    "input": "the object is too large for a script",
}


def health_of(answer: Answer, *, rule: str = "") -> Assessment:
    """Return the assessment for a result."""
    if answer.type == "nil":
        return Assessment(None, rule=rule)  # argo: no health, and no other check runs
    if answer.type != "table":
        return failed(f"expect table output from Lua script, not {answer.type}", rule=rule)
    if answer.value == []:
        return Assessment(None, rule=rule)
    if not isinstance(answer.value, dict):
        return failed("json: cannot unmarshal array into Go value of type health.HealthStatus", rule=rule)
    status, message = _field(answer.value, "status"), _field(answer.value, "message")
    for name, part in (("status", status), ("message", message)):
        if not isinstance(part, str):
            kind = _GO_TYPES.get(type(part), "value")
            field = f"Go struct field HealthStatus.{name} of type string"
            return failed(f"json: cannot unmarshal {kind} into {field}", rule=rule)
    if status not in _WORDS:
        return Assessment(Health.UNKNOWN, INVALID, rule)
    return Assessment(_WORDS[status], message, rule)


def _field(value: dict[str, Any], name: str) -> Any:
    """argo: Go's decoder matches field names case-insensitively, and the last one counts."""
    if name in value:
        return value[name]
    found = [part for key, part in value.items() if key.lower() == name]
    return found[-1] if found else ""


def failed(fault: str, *, rule: str = "") -> Assessment:
    """Return the assessment of an object whose rule failed: Unknown, with the reason."""
    return Assessment(Health.UNKNOWN, fault, rule, fault)


def answer_of(confined: Any) -> Answer:
    """Return the result of a script from the response of a worker. Raises LuaFault."""
    if isinstance(confined, OverLimit):
        raise LuaFault(_LIMITS[confined.limit])
    if isinstance(confined, ArgosyError):
        raise LuaFault(f"the script could not be run: {confined}")
    if "fault" in confined:
        raise LuaFault(str(confined["fault"]))
    return Answer(confined["type"], confined.get("value"))
