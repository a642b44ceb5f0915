"""AGY401: misspelled health statuses in lookup tables.

In: the tree of a script. Out: findings. Never: reports a word that is not similar to a status, or one that the script
compares with.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from argosy.gitops.application.step_results import Health
from argosy.gitops.health.lint.finding import Finding
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, walk
from argosy.gitops.health.lua.syntax.tree import (
    Assign,
    Binary,
    Block,
    Expression,
    Field,
    Index,
    Logical,
    Name,
    String,
    Table,
)

_WORDS = tuple(map(str, Health))
_NEAR = 0.8


def check_words(script: Block, scopes: Scopes) -> Iterator[Finding]:
    compared = {
        side.value
        for node in walk(script)
        if isinstance(node, Binary)
        for side in (node.left, node.right)
        if isinstance(side, String)
    }
    for table in _tables_of_statuses(script, scopes):
        for entry in table.fields:
            match entry.value:
                case String(value=word, line=line) if word not in _WORDS and word not in compared:
                    near = get_close_matches(word.capitalize(), _WORDS, 1, _NEAR)
                    if near:
                        yield Finding("AGY401", line, f'"{word}" is not a health status', f'write "{near[0]}"')


def _tables_of_statuses(script: Block, scopes: Scopes) -> list[Table]:
    """Return the constant tables whose entries are used as a status: `hs.status = words[phase]`."""
    found: dict[Table, None] = {}
    for given in _statuses(script):
        for variable in _looked_into(given, scopes):
            match variable.values:
                case [Table() as table]:
                    found[table] = None
    return list(found)


def _statuses(script: Block) -> Iterator[Expression]:
    for node in walk(script):
        match node:
            case Field(key=String(value="status")):
                yield node.value
            case Assign(targets=(Index(key=String(value="status")),), values=(value,)):
                yield value


def _looked_into(given: Expression, scopes: Scopes, *, is_last: bool = False) -> Iterator[Variable]:
    """Yield the tables that an entry is read from, directly or through one variable."""
    match given:
        case Logical():
            for operand in given.operands:
                yield from _looked_into(operand, scopes, is_last=is_last)
        case Index(base=Name() as name):
            yield scopes.variables[name]
        case Name() if not is_last:
            for value in scopes.variables[given].values:
                if value is not None:
                    yield from _looked_into(value, scopes, is_last=True)
