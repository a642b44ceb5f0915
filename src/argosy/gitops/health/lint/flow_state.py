"""The knowledge about variables at one point of a script, on one execution path.

In: assignments and tests. Out: the possible values of a location. Never: mutates a state: every change returns a new
one.

A location is a variable and a sequence of constant keys below it, such as obj, status, phase.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.gitops.health.lint.possible_value_set import NIL, UNKNOWN, PossibleValues, values_of
from argosy.gitops.health.lua.syntax.scopes import LuaVariable

Location = tuple[Any, ...]  # a Variable, then texts
ComparisonFact = tuple[str, Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class ExpressionResult:
    """The value of an expression, with its location or its parts."""

    value: PossibleValues
    location: Location | None = None
    fields: Mapping[str, ExpressionResult] | None = None  # of a table constructor
    has_all_fields: bool = False
    type_of: Location | None = None  # the result is the type name of the value at this location
    source: ExpressionResult | None = None  # the table that an iterator such as ipairs or pairs goes through

    def key(self) -> Hashable:
        fields = None if self.fields is None else frozenset((name, part.key()) for name, part in self.fields.items())
        source = None if self.source is None else self.source.key()
        return self.value, self.location, fields, self.has_all_fields, self.type_of, source


UNKNOWN_RESULT = ExpressionResult(UNKNOWN)


@dataclass(frozen=True, slots=True)
class FlowState:
    values: Mapping[Location, PossibleValues] = field(default_factory=dict)
    aliases: Mapping[LuaVariable, Location] = field(default_factory=dict)  # local → the location that it is an alias of
    facts: Mapping[ComparisonFact, bool] = field(default_factory=dict)  # results of comparisons on this path
    complete_tables: frozenset[Location] = frozenset()  # tables with no unknown fields
    elements: frozenset[LuaVariable] = frozenset()  # loop variables that hold a part of `obj`
    indexed: frozenset[Location] = frozenset()  # locations that were indexed before: a nil would have failed there
    is_merged: bool = False  # paths were joined, so some combinations of values are impossible
    _key: list[Hashable] = field(default_factory=list, init=False, compare=False, repr=False)  # cached

    @property
    def key(self) -> Hashable:
        if not self._key:
            self._key.append(
                (
                    frozenset(self.values.items()),
                    frozenset(self.aliases.items()),
                    frozenset(self.facts.items()),
                    self.complete_tables,
                    self.indexed,
                )
            )
        return self._key[0]

    def location_of(self, variable: LuaVariable) -> Location:
        return self.aliases.get(variable, (variable,))

    def value_at(self, location: Location) -> PossibleValues:
        value = self.values.get(location)
        if value is not None:
            return value
        return values_of(NIL) if location[:-1] in self.complete_tables else UNKNOWN

    def is_empty(self, result: ExpressionResult) -> bool:
        """True if the result is a table of the script without entries."""
        if result.location is None:
            return result.has_all_fields and not result.fields
        if result.location not in self.complete_tables:
            return False
        fields = [value for location, value in self.values.items() if location[:-1] == result.location]
        return all(value.must_be(NIL) for value in fields)

    def narrow(self, location: Location | None, value: PossibleValues) -> FlowState | None:
        """Return the state in which the location has this value; None if that is impossible."""
        if value.is_impossible:
            return None
        if location is None or self.values.get(location) == value:
            return self
        return replace(self, values={**self.values, location: value})

    def decide(self, fact: ComparisonFact, truth: bool) -> FlowState | None:
        if fact in self.facts:
            return self if self.facts[fact] == truth else None
        return replace(self, facts={**self.facts, fact: truth})

    def mark_indexed(self, location: Location) -> FlowState:
        return replace(self, indexed=self.indexed | {location})

    def forget(self, location: Location) -> FlowState:
        """Return the state without knowledge about the location and everything below it."""
        size = len(location)
        if size == 1:
            return self.forget_variables(location)

        def is_below(candidate: Hashable) -> bool:
            return isinstance(candidate, tuple) and candidate[:size] == location

        return FlowState(
            {candidate: value for candidate, value in self.values.items() if candidate[:size] != location},
            {variable: candidate for variable, candidate in self.aliases.items() if candidate[:size] != location},
            {fact: truth for fact, truth in self.facts.items() if not is_below(fact[1]) and not is_below(fact[2])},
            frozenset(candidate for candidate in self.complete_tables if candidate[:size] != location),
            self.elements,
            frozenset(candidate for candidate in self.indexed if candidate[:size] != location),
            self.is_merged,
        )

    def forget_variables(self, variables: Collection[LuaVariable]) -> FlowState:
        """Return the state without these variables."""
        if not variables:
            return self
        return FlowState(
            {location: value for location, value in self.values.items() if location[0] not in variables},
            {
                variable: location
                for variable, location in self.aliases.items()
                if variable not in variables and location[0] not in variables
            },
            {
                fact: truth
                for fact, truth in self.facts.items()
                if _root_variable(fact[1]) not in variables and _root_variable(fact[2]) not in variables
            },
            frozenset([location for location in self.complete_tables if location[0] not in variables]),
            self.elements.difference(variables),
            frozenset([location for location in self.indexed if location[0] not in variables]),
            self.is_merged,
        )

    def forget_fields(self, location: Location) -> FlowState:
        """Return the state after a table was passed to code that may change it."""
        if location not in self.complete_tables and not any(candidate[:-1] == location for candidate in self.values):
            return self
        value = self.value_at(location)
        return replace(self.forget(location), values={**self.forget(location).values, location: value})

    def assign(self, location: Location, result: ExpressionResult) -> FlowState:
        """Return the state after the result was assigned to the location."""
        next_state = self.forget(location)
        values = {**next_state.values, location: result.value}
        closed = next_state.complete_tables
        if result.fields is not None:
            for name, part in result.fields.items():
                values[(*location, name)] = part.value
            if result.has_all_fields:
                closed |= {location}
        return replace(next_state, values=values, complete_tables=closed)

    def add_alias(self, variable: LuaVariable, location: Location) -> FlowState:
        """Return the state after the value at the location was assigned to a variable."""
        next_state = self.forget((variable,))
        return replace(next_state, aliases={**next_state.aliases, variable: location})

    def join(self, other: FlowState) -> FlowState:
        """Return what is known on both paths."""
        locations = self.values.keys() | other.values.keys()
        values = {location: self.value_at(location).join(other.value_at(location)) for location in locations}
        return FlowState(
            values,
            {
                variable: location
                for variable, location in self.aliases.items()
                if other.aliases.get(variable) == location
            },
            {fact: truth for fact, truth in self.facts.items() if other.facts.get(fact) == truth},
            self.complete_tables & other.complete_tables,
            self.elements | other.elements,
            self.indexed & other.indexed,
            is_merged=True,
        )


def _root_variable(side: Hashable) -> Any:
    return side[0] if isinstance(side, tuple) else side


def limit_states(states: list[FlowState], subject: LuaVariable | None, max_states: int) -> list[FlowState]:
    """Remove duplicate states; if there are too many, join those that differ only in `obj`."""
    if len(states) < 2:
        return states
    distinct = list({state.key: state for state in states}.values())
    if len(distinct) <= max_states:
        return distinct
    groups: dict[Hashable, FlowState] = {}
    for state in distinct:
        script_values = frozenset(
            (location, value) for location, value in state.values.items() if location[0] is not subject
        )
        groups[script_values] = groups[script_values].join(state) if script_values in groups else state
    joined = list(groups.values())
    if len(joined) > max_states:
        for state in joined[1:]:
            joined[0] = joined[0].join(state)
        del joined[1:]
    return joined
