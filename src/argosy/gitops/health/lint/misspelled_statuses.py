"""AGY401: misspelled health statuses in lookup tables.

In: the tree of a script. Out: findings. Never: reports a word that is not similar to a status, or one that the script
compares with.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    BinaryExpression,
    IndexExpression,
    LogicalExpression,
    LuaBlock,
    LuaExpression,
    NameReference,
    StringLiteral,
    TableConstructor,
    TableField,
)

_HEALTH_STATUSES = tuple(map(str, HealthStatus))
_SIMILARITY_CUTOFF = 0.8


def check_status_lookup_tables(script: LuaBlock, scopes: LuaScopes) -> Iterator[LintFinding]:
    compared = {
        side.value
        for node in walk_tree(script)
        if isinstance(node, BinaryExpression)
        for side in (node.left, node.right)
        if isinstance(side, StringLiteral)
    }
    for table in _find_status_tables(script, scopes):
        for entry in table.fields:
            match entry.value:
                case StringLiteral(value=word, line=line) if word not in _HEALTH_STATUSES and word not in compared:
                    similar = get_close_matches(word.capitalize(), _HEALTH_STATUSES, 1, _SIMILARITY_CUTOFF)
                    if similar:
                        yield LintFinding("AGY401", line, f'"{word}" is not a health status', f'write "{similar[0]}"')


def _find_status_tables(script: LuaBlock, scopes: LuaScopes) -> list[TableConstructor]:
    """Return the constant tables whose entries are used as a status: `hs.status = words[phase]`."""
    tables: dict[TableConstructor, None] = {}
    for status in _find_status_expressions(script):
        for variable in _find_lookup_tables(status, scopes):
            match variable.values:
                case [TableConstructor() as table]:
                    tables[table] = None
    return list(tables)


def _find_status_expressions(script: LuaBlock) -> Iterator[LuaExpression]:
    for node in walk_tree(script):
        match node:
            case TableField(key=StringLiteral(value="status")):
                yield node.value
            case AssignStatement(targets=(IndexExpression(key=StringLiteral(value="status")),), values=(value,)):
                yield value


def _find_lookup_tables(
    expression: LuaExpression, scopes: LuaScopes, *, is_nested: bool = False
) -> Iterator[LuaVariable]:
    """Yield the tables that an entry is read from, directly or through one variable."""
    match expression:
        case LogicalExpression():
            for operand in expression.operands:
                yield from _find_lookup_tables(operand, scopes, is_nested=is_nested)
        case IndexExpression(base=NameReference() as name):
            yield scopes.variables[name]
        case NameReference() if not is_nested:
            for value in scopes.variables[expression].values:
                if value is not None:
                    yield from _find_lookup_tables(value, scopes, is_nested=True)
