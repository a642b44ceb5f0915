"""The knowledge about variables at one point of a script, on one execution path.

In: assignments and tests. Out: the possible values of a location. Never: mutates a state: every change returns a new
one.

A location is a variable and a sequence of constant keys below it, such as obj, status, phase.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.gitops.health.lint.values import NIL, UNKNOWN, Value, exactly
from argosy.gitops.health.lua.syntax.scopes import Variable

Place = tuple[Any, ...]  # a Variable, then texts
Fact = tuple[str, Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class Result:
    """The value of an expression, with its location or its parts."""

    value: Value
    place: Place | None = None
    fields: Mapping[str, Result] | None = None  # of a table constructor
    has_all_fields: bool = False
    type_of: Place | None = None  # the result is the type name of the value at this location
    source: Result | None = None  # the table that an iterator such as ipairs or pairs goes through

    def key(self) -> Hashable:
        fields = None if self.fields is None else frozenset((name, part.key()) for name, part in self.fields.items())
        source = None if self.source is None else self.source.key()
        return self.value, self.place, fields, self.has_all_fields, self.type_of, source


ANYTHING = Result(UNKNOWN)


@dataclass(frozen=True, slots=True)
class State:
    values: Mapping[Place, Value] = field(default_factory=dict)
    aliases: Mapping[Variable, Place] = field(default_factory=dict)  # local → the location that it is an alias of
    facts: Mapping[Fact, bool] = field(default_factory=dict)  # results of comparisons on this path
    closed: frozenset[Place] = frozenset()  # tables with no unknown fields
    elements: frozenset[Variable] = frozenset()  # loop variables that hold a part of `obj`
    used: frozenset[Place] = frozenset()  # locations that were indexed before: a nil would have failed there
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
                    self.closed,
                    self.used,
                )
            )
        return self._key[0]

    def place_of(self, variable: Variable) -> Place:
        return self.aliases.get(variable, (variable,))

    def look(self, place: Place) -> Value:
        known = self.values.get(place)
        if known is not None:
            return known
        return exactly(NIL) if place[:-1] in self.closed else UNKNOWN

    def is_empty(self, result: Result) -> bool:
        """True if the result is a table of the script without entries."""
        if result.place is None:
            return result.has_all_fields and not result.fields
        if result.place not in self.closed:
            return False
        below = [value for place, value in self.values.items() if place[:-1] == result.place]
        return all(value.must_be(NIL) for value in below)

    def narrowed(self, place: Place | None, value: Value) -> State | None:
        """Return the state in which the location has this value; None if that is impossible."""
        if value.is_impossible:
            return None
        if place is None or self.values.get(place) == value:
            return self
        return replace(self, values={**self.values, place: value})

    def deciding(self, fact: Fact, truth: bool) -> State | None:
        if fact in self.facts:
            return self if self.facts[fact] == truth else None
        return replace(self, facts={**self.facts, fact: truth})

    def using(self, place: Place) -> State:
        return replace(self, used=self.used | {place})

    def forgetting(self, place: Place) -> State:
        """Return the state without knowledge about the location and everything below it."""
        size = len(place)
        if size == 1:
            return self.forgetting_all(place)

        def is_gone(other: Hashable) -> bool:
            return isinstance(other, tuple) and other[:size] == place

        return State(
            {other: value for other, value in self.values.items() if other[:size] != place},
            {variable: other for variable, other in self.aliases.items() if other[:size] != place},
            {fact: truth for fact, truth in self.facts.items() if not is_gone(fact[1]) and not is_gone(fact[2])},
            frozenset(other for other in self.closed if other[:size] != place),
            self.elements,
            frozenset(other for other in self.used if other[:size] != place),
            self.is_merged,
        )

    def forgetting_all(self, variables: Collection[Variable]) -> State:
        """Return the state without these variables."""
        if not variables:
            return self
        return State(
            {place: value for place, value in self.values.items() if place[0] not in variables},
            {
                variable: place
                for variable, place in self.aliases.items()
                if variable not in variables and place[0] not in variables
            },
            {
                fact: truth
                for fact, truth in self.facts.items()
                if _root(fact[1]) not in variables and _root(fact[2]) not in variables
            },
            frozenset([place for place in self.closed if place[0] not in variables]),
            self.elements.difference(variables),
            frozenset([place for place in self.used if place[0] not in variables]),
            self.is_merged,
        )

    def letting_go(self, place: Place) -> State:
        """Return the state after a table was passed to code that may change it."""
        if place not in self.closed and not any(other[:-1] == place for other in self.values):
            return self
        value = self.look(place)
        return replace(self.forgetting(place), values={**self.forgetting(place).values, place: value})

    def setting(self, place: Place, result: Result) -> State:
        """Return the state after the result was assigned to the location."""
        after = self.forgetting(place)
        values = {**after.values, place: result.value}
        closed = after.closed
        if result.fields is not None:
            for name, part in result.fields.items():
                values[(*place, name)] = part.value
            if result.has_all_fields:
                closed |= {place}
        return replace(after, values=values, closed=closed)

    def naming(self, variable: Variable, place: Place) -> State:
        """Return the state after the value at the location was assigned to a variable."""
        after = self.forgetting((variable,))
        return replace(after, aliases={**after.aliases, variable: place})

    def join(self, other: State) -> State:
        """Return what is known on both paths."""
        places = self.values.keys() | other.values.keys()
        values = {place: self.look(place).join(other.look(place)) for place in places}
        return State(
            values,
            {variable: place for variable, place in self.aliases.items() if other.aliases.get(variable) == place},
            {fact: truth for fact, truth in self.facts.items() if other.facts.get(fact) == truth},
            self.closed & other.closed,
            self.elements | other.elements,
            self.used & other.used,
            is_merged=True,
        )


def _root(side: Hashable) -> Any:
    return side[0] if isinstance(side, tuple) else side


def thinned(states: list[State], subject: Variable | None, most: int) -> list[State]:
    """Remove duplicate states; if there are too many, join those that differ only in `obj`."""
    if len(states) < 2:
        return states
    unlike = list({state.key: state for state in states}.values())
    if len(unlike) <= most:
        return unlike
    groups: dict[Hashable, State] = {}
    for state in unlike:
        own = frozenset((place, value) for place, value in state.values.items() if place[0] is not subject)
        groups[own] = groups[own].join(state) if own in groups else state
    left = list(groups.values())
    if len(left) > most:
        for state in left[1:]:
            left[0] = left[0].join(state)
        del left[1:]
    return left
