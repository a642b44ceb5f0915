"""Sets of possible values of an expression.

In: literals and comparisons. Out: sets of possible values. Never: runs a script.
"""

from __future__ import annotations

from dataclasses import dataclass

ValueAtom = tuple[str, object]  # a Lua type, and the value for strings, numbers and booleans

NIL: ValueAtom = ("nil", None)
TRUE: ValueAtom = ("boolean", True)
FALSE: ValueAtom = ("boolean", False)
TABLE: ValueAtom = ("table", None)
FUNCTION: ValueAtom = ("function", None)


@dataclass(frozen=True, slots=True)
class PossibleValues:
    """One of `atoms`; or, if it is open, anything but these."""

    atoms: frozenset[ValueAtom]
    is_open: bool = False

    def may_be(self, atom: ValueAtom) -> bool:
        return (atom in self.atoms) != self.is_open

    def must_be(self, atom: ValueAtom) -> bool:
        return not self.is_open and self.atoms == {atom}

    @property
    def is_impossible(self) -> bool:
        return not self.is_open and not self.atoms

    @property
    def only_literal(self) -> ValueAtom | None:
        """The literal that the value must be; None for tables and functions, whose identity is unknown."""
        if self.is_open or len(self.atoms) != 1:
            return None
        (atom,) = self.atoms
        return atom if atom not in (TABLE, FUNCTION) else None

    def intersect(self, atoms: frozenset[ValueAtom]) -> PossibleValues:
        return PossibleValues(atoms - self.atoms if self.is_open else atoms & self.atoms)

    def exclude(self, atoms: frozenset[ValueAtom]) -> PossibleValues:
        return PossibleValues(self.atoms | atoms, True) if self.is_open else PossibleValues(self.atoms - atoms)

    def join(self, other: PossibleValues) -> PossibleValues:
        if self.is_open and other.is_open:
            return PossibleValues(self.atoms & other.atoms, True)
        if self.is_open or other.is_open:
            open_values, closed_values = (self, other) if self.is_open else (other, self)
            return PossibleValues(open_values.atoms - closed_values.atoms, True)
        return PossibleValues(self.atoms | other.atoms)


FALSY = frozenset({NIL, FALSE})
ONLY_NIL = frozenset({NIL})
UNKNOWN = PossibleValues(frozenset(), True)
TRUTHY = PossibleValues(FALSY, True)


def values_of(*atoms: ValueAtom) -> PossibleValues:
    return PossibleValues(frozenset(atoms))


def string_atom(word: str) -> ValueAtom:
    return ("string", word)
