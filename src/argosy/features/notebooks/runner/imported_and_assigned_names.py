"""Names in a notebook: import aliases, how cells assign them, and which of them the author checks.

In: the syntax trees of all code cells. Out: frozen facts about names. Never: follows a value through a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

# How a name got its value, as far as it matters for whether the value is surprising.
ValueOrigin = Literal["literal", "made-empty", "read", "function", "method", "other"]

_CHECKING_ATTRIBUTES: Final = frozenset(
    (
        *("isna", "isnull", "notna", "notnull", "dropna", "fillna", "isnan", "isfinite", "isinf", "nan_to_num"),
        *("interpolate", "empty", "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "assert_all_finite", "is_empty"),
        *(
            "SimpleImputer",
            "KNNImputer",
            "IterativeImputer",
            "is_nan",
            "is_null",
            "drop_nulls",
            "fill_nan",
            "fill_null",
        ),
    )
)
_CHECKING_CALLS: Final = _CHECKING_ATTRIBUTES | {
    "len",
    "any",
    "all",
    "isinstance",
    "assert_allclose",
    "assert_array_equal",
}
_EMPTY_CONSTRUCTORS: Final = frozenset(("DataFrame", "Series", "array", "zeros", "ones", "full"))
_NON_FINITE_NAMES: Final = frozenset(("nan", "NaN", "NAN", "inf", "Inf", "NA", "NaT"))
_LITERAL_NODES: Final = (
    ast.Constant,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Tuple,
    ast.UnaryOp,
    ast.unaryop,
    ast.expr_context,
)
_UNINITIALIZED_CONSTRUCTORS: Final = frozenset(("empty", "empty_like"))
_READ_PREFIXES: Final = ("read_", "load", "fetch_", "genfromtxt", "open")


@dataclass(frozen=True)
class NotebookNames:
    aliases: Mapping[str, str] = field(default_factory=dict)  # np → numpy, run → subprocess.run
    checked_names: frozenset[str] = frozenset()  # names that the author checks for None, NaN or emptiness

    def resolve_name(self, node: ast.expr) -> str:
        """Full name of an expression, for example numpy.random.rand; "" if it is not a name."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner_name = self.resolve_name(node.value)
            return f"{owner_name}.{node.attr}" if owner_name else ""
        return ""


def collect_names(trees: Iterable[ast.Module]) -> NotebookNames:
    aliases: dict[str, str] = {}
    checked_names: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            aliases.update(_list_import_aliases(node))
            checked_names.update(_list_checked_names(node))
    return NotebookNames(aliases, frozenset(checked_names))


def _list_import_aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, alias.name
    elif isinstance(node, ast.ImportFrom) and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _list_checked_names(node: ast.AST) -> Iterator[str]:
    """Names in assertions and conditions, and in calls that check for missing values."""
    if isinstance(node, ast.Assert | ast.If | ast.IfExp | ast.While):
        yield from _list_names(node.test)
    elif isinstance(node, ast.Compare) and any(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
        yield from _list_names(node)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield from _list_names(node.values[0])
    elif isinstance(node, ast.Attribute) and node.attr in _CHECKING_ATTRIBUTES:
        yield from _list_names(node.value)
    elif isinstance(node, ast.Call) and _get_last_name(node.func) in _CHECKING_CALLS:
        for argument in node.args:
            yield from _list_names(argument)


def _list_names(node: ast.AST) -> Iterator[str]:
    return (child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _get_last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def list_assignments(tree: ast.Module | None) -> dict[str, tuple[ValueOrigin, str]]:
    """Names that a cell assigns, in order: how, and by which call. Private names are left out."""
    assignments: dict[str, tuple[ValueOrigin, str]] = {}
    for node in _iterate_statements(tree.body if tree else ()):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            for name in _list_targets(target):
                assignments.pop(name, None)
                assignments[name] = (_classify_value(node.value, name), _render_called_function(node.value))
    return {name: origin for name, origin in assignments.items() if not name.startswith("_")}


def _iterate_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run in the cell itself, not in functions."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.With | ast.AsyncWith | ast.Try | ast.For | ast.While):
            for block in ("body", "orelse", "finalbody"):
                yield from _iterate_statements(getattr(node, block, ()))


def _list_targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _list_targets(element)
    elif isinstance(target, ast.Subscript):  # a column or an entry of an existing value
        yield from _list_targets(target.value)


def _classify_value(value: ast.expr | None, name: str) -> ValueOrigin:
    if isinstance(value, ast.Await):
        value = value.value
    if (
        value is None
        or isinstance(value, ast.Lambda)
        or all(isinstance(child, _LITERAL_NODES) for child in ast.walk(value))
    ):
        return "literal"
    if any(_is_non_finite(child) for child in ast.walk(value)):
        return "literal"  # the author wrote NaN explicitly
    if not isinstance(value, ast.Call):
        return "other"
    call_name = _get_last_name(value.func)
    if call_name in _UNINITIALIZED_CONSTRUCTORS:
        return "literal"
    if call_name in _EMPTY_CONSTRUCTORS:
        return "made-empty"
    if call_name.startswith(_READ_PREFIXES):
        return "read"
    if isinstance(value.func, ast.Name):
        return "function"
    call_owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    return "method" if isinstance(call_owner, ast.Name) and call_owner.id == name else "other"


def _is_non_finite(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and _get_last_name(node.func) == "float":
        return any(
            isinstance(argument, ast.Constant) and str(argument.value).strip("+-") in _NON_FINITE_NAMES
            for argument in node.args
        )
    return isinstance(node, ast.Attribute) and node.attr in _NON_FINITE_NAMES


def _render_called_function(value: ast.expr | None) -> str:
    if isinstance(value, ast.Await):
        value = value.value
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""
