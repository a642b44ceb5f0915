"""Sets of possible values of an expression.

In: literals and comparisons. Out: sets of possible values. Never: runs a script.
"""

from __future__ import annotations

from dataclasses import dataclass

Atom = tuple[str, object]  # a Lua type, and the value for strings, numbers and booleans

NIL: Atom = ("nil", None)
TRUE: Atom = ("boolean", True)
FALSE: Atom = ("boolean", False)
TABLE: Atom = ("table", None)
FUNCTION: Atom = ("function", None)


@dataclass(frozen=True, slots=True)
class Value:
    """One of `atoms`; or, if it is open, anything but these."""

    atoms: frozenset[Atom]
    is_open: bool = False

    def may_be(self, atom: Atom) -> bool:
        return (atom in self.atoms) != self.is_open

    def must_be(self, atom: Atom) -> bool:
        return not self.is_open and self.atoms == {atom}

    @property
    def is_impossible(self) -> bool:
        return not self.is_open and not self.atoms

    @property
    def single(self) -> Atom | None:
        """The literal that the value must be; None for tables and functions, whose identity is unknown."""
        if self.is_open or len(self.atoms) != 1:
            return None
        (atom,) = self.atoms
        return atom if atom not in (TABLE, FUNCTION) else None

    def only(self, atoms: frozenset[Atom]) -> Value:
        return Value(atoms - self.atoms if self.is_open else atoms & self.atoms)

    def without(self, atoms: frozenset[Atom]) -> Value:
        return Value(self.atoms | atoms, True) if self.is_open else Value(self.atoms - atoms)

    def join(self, other: Value) -> Value:
        if self.is_open and other.is_open:
            return Value(self.atoms & other.atoms, True)
        if self.is_open or other.is_open:
            wide, narrow = (self, other) if self.is_open else (other, self)
            return Value(wide.atoms - narrow.atoms, True)
        return Value(self.atoms | other.atoms)


FALSY = frozenset({NIL, FALSE})
ONLY_NIL = frozenset({NIL})
UNKNOWN = Value(frozenset(), True)
TRUTHY = Value(FALSY, True)


def exactly(*atoms: Atom) -> Value:
    return Value(frozenset(atoms))


def text(word: str) -> Atom:
    return ("string", word)
