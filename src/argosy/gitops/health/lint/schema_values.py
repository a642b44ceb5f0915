"""AGY408: comparisons of a field with a value that the schema of its kind excludes.

In: a script, the OpenAPI schema of its kind. Out: findings that name the allowed values.
Never: reports a field that cannot be followed to `obj`, a field without an enum, or a script that accepts an allowed
value in the same `or`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.health.lint.finding import Finding
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, resolve, walk
from argosy.gitops.health.lua.syntax.tree import (
    Binary,
    Block,
    Call,
    Expression,
    ForIn,
    Index,
    Logical,
    Name,
    String,
)

Schema = Mapping[str, Any]
FieldPath = tuple[str, ...]
RULE: Final = "AGY408"
ELEMENT: Final = "[]"  # any entry of a list or a map
MAX_ALIASES: Final = 10  # length of a chain of local aliases


def check_schema_values(script: str, schema: Schema, kind: str) -> Iterator[Finding]:
    """Yield nothing for a script that does not parse: `lint` reports that."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return
    paths = FieldPaths(tree)
    tolerant = _find_tolerant_comparisons(tree, paths, schema)
    for node in walk(tree):
        if not isinstance(node, Binary) or node in tolerant:
            continue
        compared = paths.read_comparison(node)
        allowed = find_enum(schema, compared[0]) if compared else None
        if compared is None or allowed is None or compared[1] in allowed:
            continue
        path, word = compared
        effect = "never equal" if node.operator == "==" else "always different"
        message = f'{spell(path)} is compared with "{word}": {effect}, {kind} allows {", ".join(allowed)}'
        yield Finding(RULE, node.line, message, _advise(word, allowed), "warning")


def read_fields(script: str) -> set[FieldPath]:
    """List the fields of `obj` that a script reads, as far as they can be followed."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return set()
    paths = FieldPaths(tree)
    found = (paths.find(node) for node in walk(tree) if isinstance(node, Index))
    return {path for path in found if path}


def find_enum(schema: Schema, path: FieldPath) -> tuple[str, ...] | None:
    """Return the values that a schema allows at a path; None if it allows any, or does not have the path."""
    level: Any = schema
    for name in path:
        if not isinstance(level, Mapping):
            return None
        if name == ELEMENT:
            level = level.get("items") or level.get("additionalProperties")
        else:
            level = (level.get("properties") or {}).get(name) or level.get("additionalProperties")
    values = level.get("enum") if isinstance(level, Mapping) else None
    return tuple(str(value) for value in values) if values else None


def spell(path: FieldPath) -> str:
    return "obj" + "".join(name if name == ELEMENT else f".{name}" for name in path)


class FieldPaths:
    """Follows expressions of a script back to fields of `obj`."""

    def __init__(self, script: Block) -> None:
        self._scopes: Scopes = resolve(script)
        self._elements: dict[Variable, Expression] = {}  # loop variable → the expression that the loop iterates
        for node in walk(script):
            if isinstance(node, ForIn) and len(node.names) > 1 and (source := self._find_loop_source(node)) is not None:
                self._elements[self._scopes.variables[node.names[1]]] = source

    def find(self, node: Expression, depth: int = 0) -> FieldPath | None:
        if depth > MAX_ALIASES:
            return None
        match node:
            case Name():
                return self._find_variable(self._scopes.variables[node], depth)
            case Index(base=base, key=key):
                path = self.find(base, depth)
                name = key.value if isinstance(key, String) else ELEMENT
                return None if path is None else (*path, name)
            case Logical(operator="or", operands=(first, *_)):  # `obj.status.results or {}`
                return self.find(first, depth)
        return None

    def read_comparison(self, node: Binary) -> tuple[FieldPath, str] | None:
        """Return the field and the string that `==` or `~=` compares."""
        if node.operator not in ("==", "~="):
            return None
        for field, word in ((node.left, node.right), (node.right, node.left)):
            if isinstance(word, String) and (path := self.find(field)):
                return path, word.value
        return None

    def _find_variable(self, variable: Variable, depth: int) -> FieldPath | None:
        if variable.is_global:
            return () if variable.name == "obj" and not variable.values else None
        if variable in self._elements:
            # An assignment in the loop would add a second value.
            path = self.find(self._elements[variable], depth + 1) if len(variable.values) == 1 else None
            return None if path is None else (*path, ELEMENT)
        value = variable.values[0] if len(variable.values) == 1 else None
        return None if value is None else self.find(value, depth + 1)

    def _find_loop_source(self, loop: ForIn) -> Expression | None:
        match loop.values:
            case (Call(function=Name(name=name) as function, arguments=(source,)),) if name in ("ipairs", "pairs"):
                variable = self._scopes.variables[function]
                return source if variable.is_global and not variable.values else None
        return None


def _find_tolerant_comparisons(script: Block, paths: FieldPaths, schema: Schema) -> set[Binary]:
    """Find comparisons next to one with an allowed value: `s == "error" or s == "Failure"`."""
    tolerant: set[Binary] = set()
    for node in walk(script):
        if not isinstance(node, Logical):
            continue
        compared = {part: paths.read_comparison(part) for part in node.operands if isinstance(part, Binary)}
        for part, comparison in compared.items():
            allowed = find_enum(schema, comparison[0]) if comparison else None
            others = [other for other in compared.values() if other and comparison and other[0] == comparison[0]]
            if allowed and any(other[1] in allowed for other in others):
                tolerant.add(part)
    return tolerant


def _advise(word: str, allowed: tuple[str, ...]) -> str:
    same = [value for value in allowed if value.casefold() == word.casefold()]
    return f'write "{same[0]}"' if same else f"use one of {', '.join(allowed)}"
