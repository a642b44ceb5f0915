"""Tests how the result of a health script is interpreted, compared with Argo CD."""

from __future__ import annotations

import pytest

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.lua import LuaFault, read_script_result, run_health_script
from argosy.isolation import CrashError, LimitExceeded

INVALID = Assessment(HealthStatus.UNKNOWN, "Lua returned an invalid health status")


def failed(text: str) -> Assessment:
    return Assessment(HealthStatus.UNKNOWN, text, fault=text)


ANSWERS = [
    ("return {status = 'Healthy', message = 'fine'}", Assessment(HealthStatus.HEALTHY, "fine")),
    ("return {status = 'Suspended'}", Assessment(HealthStatus.SUSPENDED)),
    ("return {status = 'Missing'}", Assessment(HealthStatus.MISSING)),
    ("return {status = 'Unknown', message = 'who knows'}", Assessment(HealthStatus.UNKNOWN, "who knows")),
    ("return {Status = 'Healthy', MESSAGE = 'fine'}", Assessment(HealthStatus.HEALTHY, "fine")),
    ("return {status = 'Progressing', reason = 'x', since = 5}", Assessment(HealthStatus.PROGRESSING)),
    ("return nil", Assessment(None)),
    ("local x = 1", Assessment(None)),
    ("return {}", Assessment(None)),
    ("return {status = 'healthy'}", INVALID),
    ("return {message = 'no word'}", INVALID),
    ("return {status = ''}", INVALID),
    ("return 'Healthy'", failed("expect table output from Lua script, not string")),
    ("return 5", failed("expect table output from Lua script, not number")),
    ("return true", failed("expect table output from Lua script, not boolean")),
    ("return print", failed("expect table output from Lua script, not function")),
    ("return {'Healthy'}", failed("json: cannot unmarshal array into Go value of type health.HealthStatus")),
    (
        "return {status = 'Healthy', message = 5}",
        failed("json: cannot unmarshal number into Go struct field HealthStatus.message of type string"),
    ),
    (
        "return {status = {a = 1}}",
        failed("json: cannot unmarshal object into Go struct field HealthStatus.status of type string"),
    ),
    ("return obj.a.b", failed("<string>:1: attempt to index field 'a' (a nil value)")),
]


@pytest.mark.parametrize(("script", "expected"), ANSWERS)
def test_script_result_is_interpreted_as_in_argo_cd(script: str, expected: Assessment) -> None:
    assert run_health_script(script, {}) == expected


def test_timeout_is_reported_as_context_deadline_exceeded() -> None:
    with pytest.raises(LuaFault, match="context deadline exceeded: the script ran longer than 1 second"):
        read_script_result(LimitExceeded("cpu", "used more"))
    with pytest.raises(LuaFault, match="context deadline exceeded: the script returned no result within 10 seconds"):
        read_script_result(LimitExceeded("wall", "took longer"))


def test_worker_crash_is_reported_as_a_script_fault() -> None:
    with pytest.raises(LuaFault, match="could not be run: the worker crashed"):
        read_script_result(CrashError("the worker crashed (SIGSEGV)"))
