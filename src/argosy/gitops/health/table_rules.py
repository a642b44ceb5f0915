"""Translates health rules in table form into Lua, so that all other code handles scripts only.

In: a kind and the content of its `health.yaml`. Out: Lua that an unmodified Argo CD runs as a user's check.
Never: uses more of Lua than its base functions; lets text of the table become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.gitops.application.step_results import Health
from argosy.gitops.health.table_rule_parser import ConditionRow, Path, Phases, Table, read_table

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(
    "and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true|until|while"
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_FIND = """\
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

_SAY = """\
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


def to_lua(kind: str, table: Mapping[str, Any]) -> str:
    """Return the Lua script of a table. Raises UserError that names the wrong field."""
    return "\n".join(_parts(read_table(kind, table)))


def _parts(table: Table) -> Iterator[str]:
    yield f"-- Health of {table.kind}, written from its table form.\nlocal hs = {{}}\n"
    if table.conditions:
        yield _FIND
    if any(row.message is None for row in table.conditions):
        yield _SAY
    if table.generation:
        yield _generation(table.generation)
    if table.suspend:
        yield _suspend(table.kind, table.suspend)
    for place, row in enumerate(table.conditions):
        yield _condition(table.kind, row, is_first=place == 0)
    if table.phases:
        yield _phases(table.kind, table.phases)
    yield f"hs.status = {quote(table.otherwise)}\nhs.message = {quote(table.message)}\nreturn hs\n"


def _generation(path: Path) -> str:
    return (
        _fetch("observed", path)
        + _fetch("generation", ("metadata", "generation"))
        + 'if type(observed) == "number" and type(generation) == "number" and observed < generation then\n'
        + _answer(Health.PROGRESSING, '"Waiting for the controller to observe generation " .. generation')
    )


def _suspend(kind: str, path: Path) -> str:
    return (
        _fetch("suspended", path)
        + "if suspended == true then\n"
        + _answer(Health.SUSPENDED, quote(f"{kind} is suspended"))
    )


def _condition(kind: str, row: ConditionRow, *, is_first: bool) -> str:
    wanted = f"{quote(row.type)}, {quote(row.status)}"
    if row.reasons:
        wanted += ", {" + ", ".join(f"[{quote(reason)}] = true" for reason in dict.fromkeys(row.reasons)) + "}"
    message = f"say(found, {quote(_plain(kind, row))})" if row.message is None else quote(row.message)
    declare = "local " if is_first else ""
    return f"{declare}found = find({wanted})\nif found ~= nil then\n{_answer(row.health, message)}"


def _plain(kind: str, row: ConditionRow) -> str:
    """Return the message for a condition that has neither message nor reason."""
    match row.status:
        case "True":
            return f"{kind} is {row.type}"
        case "False":
            return f"{kind} is not {row.type}"
    return f"{kind}: {row.type} is {row.status}"


def _phases(kind: str, phases: Phases) -> str:
    """Write one branch per health, so that readers and lint see which phases lead to it."""
    branches: dict[Health, list[str]] = {}
    for word, health in phases.words:
        branches.setdefault(health, []).append(f"phase == {quote(word)}")
    lines = [_fetch("phase", phases.path)]
    for place, (health, tests) in enumerate(branches.items()):
        lines.append(f"{'elseif' if place else 'if'} {' or '.join(tests)} then\n  hs.status = {quote(health)}\n")
    lines.append("end\nif hs.status ~= nil then\n")
    lines.append(f"  hs.message = {quote(f'{kind} is ')} .. phase\n")
    if phases.message:
        lines.append(_indent(_fetch("text", phases.message)))
        lines.append('  if type(text) == "string" and text ~= "" then\n    hs.message = text\n  end\n')
    return "".join(lines) + "  return hs\nend\n"


def _answer(health: Health, message: str) -> str:
    return f"  hs.status = {quote(health)}\n  hs.message = {message}\n  return hs\nend\n"


def _fetch(name: str, path: Path) -> str:
    """Read a path into a local variable; nil if any part of the path is missing or not a table."""
    place, tests = "obj", []
    for step in path[:-1]:
        place += _index(step)
        tests.append(f'type({place}) == "table"')
    place += _index(path[-1])
    if not tests:
        return f"local {name} = {place}\n"
    return f"local {name} = nil\nif {' and '.join(tests)} then\n  {name} = {place}\nend\n"


def _index(step: str) -> str:
    return f".{step}" if _NAME.fullmatch(step) and not _RESERVED.fullmatch(step) else f"[{quote(step)}]"


def _indent(lines: str) -> str:
    return "".join(f"  {line}" for line in lines.splitlines(keepends=True))


def quote(text: str) -> str:
    """Return a one-line Lua string literal of the text; non-printable characters are written as byte escapes."""
    return '"' + "".join(_quote_letter(letter) for letter in text) + '"'


def _quote_letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03d}" for byte in letter.encode())
