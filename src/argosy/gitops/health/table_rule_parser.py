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
from argosy.gitops.application.step_results import HealthStatus

FieldPath = tuple[str, ...]

_TABLE_FIELDS = ("generation", "suspend", "conditions", "phases", "otherwise")
_CONDITION_FIELDS = ("type", "status", "reason", "health", "message")
_PHASES_FIELDS = ("path", "words", "message")
_OTHERWISE_FIELDS = ("health", "message")
_CONDITION_STATUSES = ("True", "False", "Unknown")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition of this type and status, and one of these reasons if any are listed, means this health."""

    type: str
    status: str
    reasons: tuple[str, ...]
    health: HealthStatus
    message: str | None


@dataclass(frozen=True, slots=True)
class PhaseTable:
    """The path of a phase, the health of each phase, and the path of the message."""

    path: FieldPath
    health_by_phase: tuple[tuple[str, HealthStatus], ...]
    message: FieldPath | None


@dataclass(frozen=True, slots=True)
class HealthTable:
    """A parsed table; its parts are evaluated in the order of these fields, and the first match wins."""

    kind: str
    generation: FieldPath | None
    suspend: FieldPath | None
    conditions: tuple[ConditionRow, ...]
    phases: PhaseTable | None
    otherwise: HealthStatus
    message: str


def parse_table(kind: str, table: Mapping[str, Any]) -> HealthTable:
    """Parse and check the table. Raises UserError for the first wrong field."""
    if not _KIND.fullmatch(kind):
        raise UserError(f"invalid kind {kind!r}; write it like InferenceService", where="health table")
    reader = _TableReader(f"health table of {kind}")
    fields = reader.read_map(table, "", _TABLE_FIELDS)
    if not any(fields.get(name) for name in ("suspend", "conditions", "phases", "otherwise")):
        reader.fail("", "is empty; give at least one of suspend, conditions, phases or otherwise")
    health, message = _read_otherwise(reader, kind, fields.get("otherwise"))
    return HealthTable(
        kind=kind,
        generation=reader.read_optional_path(fields, "generation"),
        suspend=reader.read_optional_path(fields, "suspend"),
        conditions=_read_conditions(reader, fields.get("conditions")),
        phases=_read_phases(reader, fields.get("phases")),
        otherwise=health,
        message=message,
    )


def _read_conditions(reader: _TableReader, rows: Any) -> tuple[ConditionRow, ...]:
    if rows is None:
        return ()
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        reader.fail("conditions", f"must be a list of rows, not {_type_name(rows)}")
    return tuple(_read_condition(reader, row, f"conditions[{position}]") for position, row in enumerate(rows))


def _read_condition(reader: _TableReader, row: Any, where: str) -> ConditionRow:
    fields = reader.read_map(row, where, _CONDITION_FIELDS)
    message = fields.get("message")
    # The default status is "True": `{type: Failed, health: Degraded}` must not degrade on Failed=False.
    status = fields.get("status", "True")
    return ConditionRow(
        type=reader.read_text(fields.get("type"), f"{where}.type"),
        status=reader.read_enum(status, f"{where}.status", _CONDITION_STATUSES),
        reasons=_read_reasons(reader, fields.get("reason"), f"{where}.reason"),
        health=reader.read_health(fields.get("health"), f"{where}.health"),
        message=None if message is None else reader.read_text(message, f"{where}.message"),
    )


def _read_reasons(reader: _TableReader, reasons: Any, where: str) -> tuple[str, ...]:
    if reasons is None:
        return ()
    if isinstance(reasons, list | tuple):
        if not reasons:
            reader.fail(where, "must list at least one reason; omit it to match any reason")
        return tuple(reader.read_text(reason, f"{where}[{position}]") for position, reason in enumerate(reasons))
    return (reader.read_text(reasons, where),)


def _read_phases(reader: _TableReader, phases: Any) -> PhaseTable | None:
    if phases is None:
        return None
    fields = reader.read_map(phases, "phases", _PHASES_FIELDS)
    phase_names = fields.get("words")
    if not isinstance(phase_names, Mapping) or not phase_names:
        reader.fail("phases.words", "must map each word to a health, for example {ready: Healthy}")
    return PhaseTable(
        path=reader.read_path(fields.get("path"), "phases.path"),
        health_by_phase=tuple(
            (reader.read_text(phase, "phases.words"), reader.read_health(health, f"phases.words.{phase}"))
            for phase, health in phase_names.items()
        ),
        message=reader.read_optional_path(fields, "message", "phases."),
    )


def _read_otherwise(reader: _TableReader, kind: str, otherwise: Any) -> tuple[HealthStatus, str]:
    waiting = f"Waiting for {kind}"
    if otherwise is None:
        return HealthStatus.PROGRESSING, waiting
    fields = reader.read_map(otherwise, "otherwise", _OTHERWISE_FIELDS)
    health = reader.read_health(fields.get("health"), "otherwise.health")
    message = fields.get("message")
    if message is None:
        return health, waiting if health is HealthStatus.PROGRESSING else ""
    return health, reader.read_text(message, "otherwise.message")


@dataclass(frozen=True, slots=True)
class _TableReader:
    """Checks the type of values, and raises UserError with the names of the table and the field."""

    table: str

    def fail(self, field: str, message: str) -> NoReturn:
        raise UserError(message, where=f"{self.table}: {field}" if field else self.table)

    def read_map(self, value: Any, field: str, known_fields: Collection[str]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self.fail(field, f"must be a map with {', '.join(known_fields)}, not {_type_name(value)}")
        for key in value:
            if key not in known_fields:
                self.fail(field, f"unknown key {key!r}{_suggest(key, known_fields)}")
        return value

    def read_text(self, value: Any, field: str) -> str:
        if value is None or value == "":
            self.fail(field, "is missing; write a string")
        if not isinstance(value, str):
            self.fail(field, f"must be a string, not {_type_name(value)}; put it in quotes")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            self.fail(field, "contains a lone surrogate, which no manifest can contain")
        return value

    def read_enum(self, value: Any, field: str, allowed: Collection[str]) -> str:
        text = self.read_text(value, field)
        if text not in allowed:
            self.fail(field, f"unknown word {text!r}{_suggest(text, allowed)}")
        return text

    def read_health(self, value: Any, field: str) -> HealthStatus:
        return HealthStatus(self.read_enum(value, field, [health.value for health in HealthStatus]))

    def read_path(self, value: Any, field: str) -> FieldPath:
        steps = tuple(self.read_text(value, field).split("."))
        for step in steps:
            if not _STEP.fullmatch(step):
                self.fail(field, f"{value!r} is not a path; write field names with dots between, like status.phase")
        return steps

    def read_optional_path(self, fields: Mapping[str, Any], name: str, prefix: str = "") -> FieldPath | None:
        value = fields.get(name)
        return None if value is None else self.read_path(value, prefix + name)


def _suggest(word: Any, known_words: Collection[str]) -> str:
    similar = difflib.get_close_matches(str(word).lower(), [name.lower() for name in known_words], n=1)
    if similar:
        return f"; did you mean {next(name for name in known_words if name.lower() == similar[0])}?"
    return f"; known: {', '.join(known_words)}"


def _type_name(value: Any) -> str:
    numbers = {int: "a number", float: "a number"}
    names = {bool: "true or false", str: "a string", list: "a list", dict: "a map", **numbers}
    return "nothing" if value is None else names.get(type(value), type(value).__name__)
