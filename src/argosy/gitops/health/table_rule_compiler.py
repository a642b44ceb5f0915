"""Translates health rules in table form into Lua, so that all other code handles scripts only.

In: a kind and the content of its `health.yaml`. Out: Lua that an unmodified Argo CD runs as a user's check.
Never: uses more of Lua than its base functions; lets text of the table become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.table_rule_parser import ConditionRow, FieldPath, HealthTable, PhaseTable, parse_table

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(
    "and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true|until|while"
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_FIND_FUNCTION = """\
-- The first condition of this type and status; reasons, where given, says which reasons will do.
local function find(kind, status, reasons)
  if type(obj.status) ~= "table" or type(obj.status.conditions) ~= "table" then
    return nil
  end
  for _, condition in ipairs(obj.status.conditions) do
    if type(condition) == "table" and condition.type == kind and condition.status == status then
      if reasons == nil or (condition.reason ~= nil and reasons[condition.reason]) then
        return condition
      end
    end
  end
  return nil
end
"""

_MESSAGE_FUNCTION = """\
-- What a condition says of itself, or the given text where it says nothing.
local function say(condition, otherwise)
  if type(condition.message) == "string" and condition.message ~= "" then
    return condition.message
  end
  if type(condition.reason) == "string" and condition.reason ~= "" then
    return condition.reason
  end
  return otherwise
end
"""


def table_to_lua(kind: str, table: Mapping[str, Any]) -> str:
    """Return the Lua script of a table. Raises UserError that names the wrong field."""
    return "\n".join(_write_parts(parse_table(kind, table)))


def _write_parts(table: HealthTable) -> Iterator[str]:
    yield f"-- Health of {table.kind}, written from its table form.\nlocal hs = {{}}\n"
    if table.conditions:
        yield _FIND_FUNCTION
    if any(row.message is None for row in table.conditions):
        yield _MESSAGE_FUNCTION
    if table.generation:
        yield _write_generation_check(table.generation)
    if table.suspend:
        yield _write_suspend_check(table.kind, table.suspend)
    for position, row in enumerate(table.conditions):
        yield _write_condition_check(table.kind, row, is_first=position == 0)
    if table.phases:
        yield _write_phase_checks(table.kind, table.phases)
    yield f"hs.status = {lua_quote(table.otherwise)}\nhs.message = {lua_quote(table.message)}\nreturn hs\n"


def _write_generation_check(path: FieldPath) -> str:
    return (
        _write_field_read("observed", path)
        + _write_field_read("generation", ("metadata", "generation"))
        + 'if type(observed) == "number" and type(generation) == "number" and observed < generation then\n'
        + _write_return(HealthStatus.PROGRESSING, '"Waiting for the controller to observe generation " .. generation')
    )


def _write_suspend_check(kind: str, path: FieldPath) -> str:
    return (
        _write_field_read("suspended", path)
        + "if suspended == true then\n"
        + _write_return(HealthStatus.SUSPENDED, lua_quote(f"{kind} is suspended"))
    )


def _write_condition_check(kind: str, row: ConditionRow, *, is_first: bool) -> str:
    arguments = f"{lua_quote(row.type)}, {lua_quote(row.status)}"
    if row.reasons:
        arguments += ", {" + ", ".join(f"[{lua_quote(reason)}] = true" for reason in dict.fromkeys(row.reasons)) + "}"
    message = f"say(found, {lua_quote(_default_message(kind, row))})" if row.message is None else lua_quote(row.message)
    declare = "local " if is_first else ""
    return f"{declare}found = find({arguments})\nif found ~= nil then\n{_write_return(row.health, message)}"


def _default_message(kind: str, row: ConditionRow) -> str:
    """Return the message for a condition that has neither message nor reason."""
    match row.status:
        case "True":
            return f"{kind} is {row.type}"
        case "False":
            return f"{kind} is not {row.type}"
    return f"{kind}: {row.type} is {row.status}"


def _write_phase_checks(kind: str, phases: PhaseTable) -> str:
    """Write one branch per health, so that readers and lint see which phases lead to it."""
    branches: dict[HealthStatus, list[str]] = {}
    for phase, health in phases.health_by_phase:
        branches.setdefault(health, []).append(f"phase == {lua_quote(phase)}")
    lines = [_write_field_read("phase", phases.path)]
    for position, (health, tests) in enumerate(branches.items()):
        lines.append(f"{'elseif' if position else 'if'} {' or '.join(tests)} then\n  hs.status = {lua_quote(health)}\n")
    lines.append("end\nif hs.status ~= nil then\n")
    lines.append(f"  hs.message = {lua_quote(f'{kind} is ')} .. phase\n")
    if phases.message:
        lines.append(_indent(_write_field_read("text", phases.message)))
        lines.append('  if type(text) == "string" and text ~= "" then\n    hs.message = text\n  end\n')
    return "".join(lines) + "  return hs\nend\n"


def _write_return(health: HealthStatus, message: str) -> str:
    return f"  hs.status = {lua_quote(health)}\n  hs.message = {message}\n  return hs\nend\n"


def _write_field_read(name: str, path: FieldPath) -> str:
    """Read a path into a local variable; nil if any part of the path is missing or not a table."""
    expression, tests = "obj", []
    for step in path[:-1]:
        expression += _lua_index(step)
        tests.append(f'type({expression}) == "table"')
    expression += _lua_index(path[-1])
    if not tests:
        return f"local {name} = {expression}\n"
    return f"local {name} = nil\nif {' and '.join(tests)} then\n  {name} = {expression}\nend\n"


def _lua_index(step: str) -> str:
    return f".{step}" if _NAME.fullmatch(step) and not _RESERVED.fullmatch(step) else f"[{lua_quote(step)}]"


def _indent(lines: str) -> str:
    return "".join(f"  {line}" for line in lines.splitlines(keepends=True))


def lua_quote(text: str) -> str:
    """Return a one-line Lua string literal of the text; non-printable characters are written as byte escapes."""
    return '"' + "".join(_quote_character(letter) for letter in text) + '"'


def _quote_character(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03d}" for byte in letter.encode())
