"""AGY408: comparisons of a field with a value that the schema of its kind excludes.

In: a script, the OpenAPI schema of its kind. Out: findings that name the allowed values.
Never: reports a field that cannot be followed to `obj`, a field without an enum, or a script that accepts an allowed
value in the same `or`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, resolve_scopes, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    BinaryExpression,
    FunctionCall,
    GenericFor,
    IndexExpression,
    LogicalExpression,
    LuaBlock,
    LuaExpression,
    NameReference,
    StringLiteral,
)

OpenApiSchema = Mapping[str, Any]
ObjectFieldPath = tuple[str, ...]
RULE: Final = "AGY408"
ELEMENT: Final = "[]"  # any entry of a list or a map
MAX_ALIASES: Final = 10  # length of a chain of local aliases


def check_schema_values(script: str, schema: OpenApiSchema, kind: str) -> Iterator[LintFinding]:
    """Yield nothing for a script that does not parse: `lint` reports that."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return
    paths = FieldPathFinder(tree)
    tolerant = _find_tolerant_comparisons(tree, paths, schema)
    for node in walk_tree(tree):
        if not isinstance(node, BinaryExpression) or node in tolerant:
            continue
        compared = paths.read_comparison(node)
        allowed = find_enum(schema, compared[0]) if compared else None
        if compared is None or allowed is None or compared[1] in allowed:
            continue
        path, word = compared
        effect = "never equal" if node.operator == "==" else "always different"
        message = f'{render_field_path(path)} is compared with "{word}": {effect}, {kind} allows {", ".join(allowed)}'
        yield LintFinding(RULE, node.line, message, _suggest_value(word, allowed), "warning")


def list_fields_read(script: str) -> set[ObjectFieldPath]:
    """List the fields of `obj` that a script reads, as far as they can be followed."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return set()
    paths = FieldPathFinder(tree)
    paths_found = (paths.find(node) for node in walk_tree(tree) if isinstance(node, IndexExpression))
    return {path for path in paths_found if path}


def find_enum(schema: OpenApiSchema, path: ObjectFieldPath) -> tuple[str, ...] | None:
    """Return the values that a schema allows at a path; None if it allows any, or does not have the path."""
    node: Any = schema
    for name in path:
        if not isinstance(node, Mapping):
            return None
        if name == ELEMENT:
            node = node.get("items") or node.get("additionalProperties")
        else:
            node = (node.get("properties") or {}).get(name) or node.get("additionalProperties")
    values = node.get("enum") if isinstance(node, Mapping) else None
    return tuple(str(value) for value in values) if values else None


def render_field_path(path: ObjectFieldPath) -> str:
    return "obj" + "".join(name if name == ELEMENT else f".{name}" for name in path)


class FieldPathFinder:
    """Follows expressions of a script back to fields of `obj`."""

    def __init__(self, script: LuaBlock) -> None:
        self._scopes: LuaScopes = resolve_scopes(script)
        self._elements: dict[LuaVariable, LuaExpression] = {}  # loop variable → the expression that the loop iterates
        for node in walk_tree(script):
            if (
                isinstance(node, GenericFor)
                and len(node.names) > 1
                and (source := self._find_loop_source(node)) is not None
            ):
                self._elements[self._scopes.variables[node.names[1]]] = source

    def find(self, node: LuaExpression, depth: int = 0) -> ObjectFieldPath | None:
        if depth > MAX_ALIASES:
            return None
        match node:
            case NameReference():
                return self._find_variable(self._scopes.variables[node], depth)
            case IndexExpression(base=base, key=key):
                path = self.find(base, depth)
                name = key.value if isinstance(key, StringLiteral) else ELEMENT
                return None if path is None else (*path, name)
            case LogicalExpression(operator="or", operands=(first, *_)):  # `obj.status.results or {}`
                return self.find(first, depth)
        return None

    def read_comparison(self, node: BinaryExpression) -> tuple[ObjectFieldPath, str] | None:
        """Return the field and the string that `==` or `~=` compares."""
        if node.operator not in ("==", "~="):
            return None
        for field, word in ((node.left, node.right), (node.right, node.left)):
            if isinstance(word, StringLiteral) and (path := self.find(field)):
                return path, word.value
        return None

    def _find_variable(self, variable: LuaVariable, depth: int) -> ObjectFieldPath | None:
        if variable.is_global:
            return () if variable.name == "obj" and not variable.values else None
        if variable in self._elements:
            # An assignment in the loop would add a second value.
            path = self.find(self._elements[variable], depth + 1) if len(variable.values) == 1 else None
            return None if path is None else (*path, ELEMENT)
        value = variable.values[0] if len(variable.values) == 1 else None
        return None if value is None else self.find(value, depth + 1)

    def _find_loop_source(self, loop: GenericFor) -> LuaExpression | None:
        match loop.values:
            case (FunctionCall(function=NameReference(name=name) as function, arguments=(source,)),) if name in (
                "ipairs",
                "pairs",
            ):
                variable = self._scopes.variables[function]
                return source if variable.is_global and not variable.values else None
        return None


def _find_tolerant_comparisons(
    script: LuaBlock, paths: FieldPathFinder, schema: OpenApiSchema
) -> set[BinaryExpression]:
    """Find comparisons next to one with an allowed value: `s == "error" or s == "Failure"`."""
    tolerant: set[BinaryExpression] = set()
    for node in walk_tree(script):
        if not isinstance(node, LogicalExpression):
            continue
        compared = {part: paths.read_comparison(part) for part in node.operands if isinstance(part, BinaryExpression)}
        for part, comparison in compared.items():
            allowed = find_enum(schema, comparison[0]) if comparison else None
            same_field = [
                comparison_pair
                for comparison_pair in compared.values()
                if comparison_pair and comparison and comparison_pair[0] == comparison[0]
            ]
            if allowed and any(comparison_pair[1] in allowed for comparison_pair in same_field):
                tolerant.add(part)
    return tolerant


def _suggest_value(word: str, allowed: tuple[str, ...]) -> str:
    similar = [value for value in allowed if value.casefold() == word.casefold()]
    return f'write "{similar[0]}"' if similar else f"use one of {', '.join(allowed)}"
