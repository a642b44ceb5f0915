"""Converts the result of a health script into an Assessment, as Argo CD does.

In: a result of the engine, or an error of a worker. Out: an Assessment. Never: raises because of a script.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.lua.engine import ScriptResult
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.isolation import LimitExceeded

INVALID_STATUS_MESSAGE: Final = "Lua returned an invalid health status"
_HEALTH_BY_STATUS: Final = {str(health): health for health in HealthStatus}
_GO_TYPES: Final = {list: "array", dict: "object", bool: "bool", int: "number", float: "number"}
_LIMIT_MESSAGES: Final = {
    "cpu": "context deadline exceeded: the script ran longer than 1 second",
    "wall": "context deadline exceeded: the script returned no result within 10 seconds",
    "memory": "the script used more memory than a check may",
    "output": "the script returned more than a check may",
    "input": "the object is too large for a script",
}


def read_health(script_result: ScriptResult, *, rule: str = "") -> Assessment:
    """Return the assessment for a result."""
    if script_result.type == "nil":
        return Assessment(None, rule=rule)  # argo: no health, and no other check runs
    if script_result.type != "table":
        return failed_assessment(f"expect table output from Lua script, not {script_result.type}", rule=rule)
    if script_result.value == []:
        return Assessment(None, rule=rule)
    if not isinstance(script_result.value, dict):
        return failed_assessment("json: cannot unmarshal array into Go value of type health.HealthStatus", rule=rule)
    status, message = _read_field(script_result.value, "status"), _read_field(script_result.value, "message")
    for name, part in (("status", status), ("message", message)):
        if not isinstance(part, str):
            kind = _GO_TYPES.get(type(part), "value")
            field = f"Go struct field HealthStatus.{name} of type string"
            return failed_assessment(f"json: cannot unmarshal {kind} into {field}", rule=rule)
    if status not in _HEALTH_BY_STATUS:
        return Assessment(HealthStatus.UNKNOWN, INVALID_STATUS_MESSAGE, rule)
    return Assessment(_HEALTH_BY_STATUS[status], message, rule)


def _read_field(value: dict[str, Any], name: str) -> Any:
    """argo: Go's decoder matches field names case-insensitively, and the last one counts."""
    if name in value:
        return value[name]
    matches = [part for key, part in value.items() if key.lower() == name]
    return matches[-1] if matches else ""


def failed_assessment(fault: str, *, rule: str = "") -> Assessment:
    """Return the assessment of an object whose rule failed: Unknown, with the reason."""
    return Assessment(HealthStatus.UNKNOWN, fault, rule, fault)


def read_script_result(response: Any) -> ScriptResult:
    """Return the result of a script from the response of a worker. Raises LuaFault."""
    if isinstance(response, LimitExceeded):
        raise LuaFault(_LIMIT_MESSAGES[response.limit])
    if isinstance(response, ArgosyError):
        raise LuaFault(f"the script could not be run: {response}")
    if "fault" in response:
        raise LuaFault(str(response["fault"]))
    return ScriptResult(response["type"], response.get("value"))
