"""Parses health rules in table form (`health.yaml`), for kinds that need no code.

In: a kind and the content of a `health.yaml`. Out: a HealthTable, or a UserError that names the wrong field and the
allowed values. Never: writes Lua (see `table_rules`); reads a file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from argosy.errors import UserError
from argosy.gitops.application.step_results import Health

Path = tuple[str, ...]

_TOP = ("generation", "suspend", "conditions", "phases", "otherwise")
_CONDITION = ("type", "status", "reason", "health", "message")
_PHASES = ("path", "words", "message")
_OTHERWISE = ("health", "message")
_STATUSES = ("True", "False", "Unknown")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition of this type and status, and one of these reasons if any are listed, means this health."""

    type: str
    status: str
    reasons: tuple[str, ...]
    health: Health
    message: str | None


@dataclass(frozen=True, slots=True)
class Phases:
    """The path of a phase, the health of each phase, and the path of the message."""

    path: Path
    words: tuple[tuple[str, Health], ...]
    message: Path | None


@dataclass(frozen=True, slots=True)
class Table:
    """A parsed table; its parts are evaluated in the order of these fields, and the first match wins."""

    kind: str
    generation: Path | None
    suspend: Path | None
    conditions: tuple[ConditionRow, ...]
    phases: Phases | None
    otherwise: Health
    message: str


def read_table(kind: str, table: Mapping[str, Any]) -> Table:
    """Parse and check the table. Raises UserError for the first wrong field."""
    if not _KIND.fullmatch(kind):
        raise UserError(f"invalid kind {kind!r}; write it like InferenceService", where="health table")
    reader = _Reader(f"health table of {kind}")
    fields = reader.mapping(table, "", _TOP)
    if not any(fields.get(name) for name in ("suspend", "conditions", "phases", "otherwise")):
        reader.fail("", "is empty; give at least one of suspend, conditions, phases or otherwise")
    health, message = _read_otherwise(reader, kind, fields.get("otherwise"))
    return Table(
        kind=kind,
        generation=reader.optional_path(fields, "generation"),
        suspend=reader.optional_path(fields, "suspend"),
        conditions=_read_conditions(reader, fields.get("conditions")),
        phases=_read_phases(reader, fields.get("phases")),
        otherwise=health,
        message=message,
    )


def _read_conditions(reader: _Reader, rows: Any) -> tuple[ConditionRow, ...]:
    if rows is None:
        return ()
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        reader.fail("conditions", f"must be a list of rows, not {_name_of(rows)}")
    return tuple(_read_condition(reader, row, f"conditions[{place}]") for place, row in enumerate(rows))


def _read_condition(reader: _Reader, row: Any, where: str) -> ConditionRow:
    fields = reader.mapping(row, where, _CONDITION)
    message = fields.get("message")
    # The default status is "True": `{type: Failed, health: Degraded}` must not degrade on Failed=False.
    status = fields.get("status", "True")
    return ConditionRow(
        type=reader.text(fields.get("type"), f"{where}.type"),
        status=reader.word(status, f"{where}.status", _STATUSES),
        reasons=_read_reasons(reader, fields.get("reason"), f"{where}.reason"),
        health=reader.health(fields.get("health"), f"{where}.health"),
        message=None if message is None else reader.text(message, f"{where}.message"),
    )


def _read_reasons(reader: _Reader, reasons: Any, where: str) -> tuple[str, ...]:
    if reasons is None:
        return ()
    if isinstance(reasons, list | tuple):
        if not reasons:
            reader.fail(where, "must list at least one reason; omit it to match any reason")
        return tuple(reader.text(reason, f"{where}[{place}]") for place, reason in enumerate(reasons))
    return (reader.text(reasons, where),)


def _read_phases(reader: _Reader, phases: Any) -> Phases | None:
    if phases is None:
        return None
    fields = reader.mapping(phases, "phases", _PHASES)
    words = fields.get("words")
    if not isinstance(words, Mapping) or not words:
        reader.fail("phases.words", "must map each word to a health, for example {ready: Healthy}")
    return Phases(
        path=reader.path(fields.get("path"), "phases.path"),
        words=tuple(
            (reader.text(word, "phases.words"), reader.health(health, f"phases.words.{word}"))
            for word, health in words.items()
        ),
        message=reader.optional_path(fields, "message", "phases."),
    )


def _read_otherwise(reader: _Reader, kind: str, otherwise: Any) -> tuple[Health, str]:
    waiting = f"Waiting for {kind}"
    if otherwise is None:
        return Health.PROGRESSING, waiting
    fields = reader.mapping(otherwise, "otherwise", _OTHERWISE)
    health = reader.health(fields.get("health"), "otherwise.health")
    message = fields.get("message")
    if message is None:
        return health, waiting if health is Health.PROGRESSING else ""
    return health, reader.text(message, "otherwise.message")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks the type of values, and raises UserError with the names of the table and the field."""

    table: str

    def fail(self, field: str, message: str) -> NoReturn:
        raise UserError(message, where=f"{self.table}: {field}" if field else self.table)

    def mapping(self, value: Any, field: str, known: Collection[str]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self.fail(field, f"must be a map with {', '.join(known)}, not {_name_of(value)}")
        for key in value:
            if key not in known:
                self.fail(field, f"unknown key {key!r}{_nearest(key, known)}")
        return value

    def text(self, value: Any, field: str) -> str:
        if value is None or value == "":
            self.fail(field, "is missing; write a string")
        if not isinstance(value, str):
            self.fail(field, f"must be a string, not {_name_of(value)}; put it in quotes")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            self.fail(field, "contains a lone surrogate, which no manifest can contain")
        return value

    def word(self, value: Any, field: str, known: Collection[str]) -> str:
        word = self.text(value, field)
        if word not in known:
            self.fail(field, f"unknown word {word!r}{_nearest(word, known)}")
        return word

    def health(self, value: Any, field: str) -> Health:
        return Health(self.word(value, field, [health.value for health in Health]))

    def path(self, value: Any, field: str) -> Path:
        steps = tuple(self.text(value, field).split("."))
        for step in steps:
            if not _STEP.fullmatch(step):
                self.fail(field, f"{value!r} is not a path; write field names with dots between, like status.phase")
        return steps

    def optional_path(self, fields: Mapping[str, Any], name: str, prefix: str = "") -> Path | None:
        value = fields.get(name)
        return None if value is None else self.path(value, prefix + name)


def _nearest(word: Any, known: Collection[str]) -> str:
    near = difflib.get_close_matches(str(word).lower(), [name.lower() for name in known], n=1)
    if near:
        return f"; did you mean {next(name for name in known if name.lower() == near[0])}?"
    return f"; known: {', '.join(known)}"


def _name_of(value: Any) -> str:
    numbers = {int: "a number", float: "a number"}
    names = {bool: "true or false", str: "a string", list: "a list", dict: "a map", **numbers}
    return "nothing" if value is None else names.get(type(value), type(value).__name__)
