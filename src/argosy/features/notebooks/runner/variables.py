"""Names in a notebook: import aliases, how cells assign them, and which of them the author checks.

In: the syntax trees of all code cells. Out: frozen facts about names. Never: follows a value through a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

# How a name got its value, as far as it matters for whether the value is surprising.
How = Literal["literal", "made-empty", "read", "function", "method", "other"]

_CHECKING: Final = frozenset(
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
_CHECKING_CALLS: Final = _CHECKING | {"len", "any", "all", "isinstance", "assert_allclose", "assert_array_equal"}
_MADE_EMPTY: Final = frozenset(("DataFrame", "Series", "array", "zeros", "ones", "full"))
_NOT_NUMBERS: Final = frozenset(("nan", "NaN", "NAN", "inf", "Inf", "NA", "NaT"))
_WRITTEN: Final = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.expr_context)
_UNSET: Final = frozenset(("empty", "empty_like"))
_READS: Final = ("read_", "load", "fetch_", "genfromtxt", "open")


@dataclass(frozen=True)
class Names:
    short: Mapping[str, str] = field(default_factory=dict)  # np → numpy, run → subprocess.run
    watched: frozenset[str] = frozenset()  # names that the author checks for None, NaN or emptiness

    def dotted(self, node: ast.expr) -> str:
        """Full name of an expression, for example numpy.random.rand; "" if it is not a name."""
        if isinstance(node, ast.Name):
            return self.short.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""


def names_of(trees: Iterable[ast.Module]) -> Names:
    short: dict[str, str] = {}
    watched: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            short.update(_imported(node))
            watched.update(_watched(node))
    return Names(short, frozenset(watched))


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for each in node.names:
            if each.asname:
                yield each.asname, each.name
    elif isinstance(node, ast.ImportFrom) and not node.level:
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"


def _watched(node: ast.AST) -> Iterator[str]:
    """Names in assertions and conditions, and in calls that check for missing values."""
    if isinstance(node, ast.Assert | ast.If | ast.IfExp | ast.While):
        yield from _named(node.test)
    elif isinstance(node, ast.Compare) and any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
        yield from _named(node)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield from _named(node.values[0])
    elif isinstance(node, ast.Attribute) and node.attr in _CHECKING:
        yield from _named(node.value)
    elif isinstance(node, ast.Call) and _last(node.func) in _CHECKING_CALLS:
        for argument in node.args:
            yield from _named(argument)


def _named(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def assigned(tree: ast.Module | None) -> dict[str, tuple[How, str]]:
    """Names that a cell assigns, in order: how, and by which call. Private names are left out."""
    found: dict[str, tuple[How, str]] = {}
    for node in _statements(tree.body if tree else ()):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            for name in _stored(target):
                found.pop(name, None)
                found[name] = (_how(node.value, name), _called(node.value))
    return {name: how for name, how in found.items() if not name.startswith("_")}


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run in the cell itself, not in functions."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.With | ast.AsyncWith | ast.Try | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, ()))


def _stored(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _stored(each)
    elif isinstance(target, ast.Subscript):  # a column or an entry of an existing value
        yield from _stored(target.value)


def _how(value: ast.expr | None, name: str) -> How:
    if isinstance(value, ast.Await):
        value = value.value
    if value is None or isinstance(value, ast.Lambda) or all(isinstance(each, _WRITTEN) for each in ast.walk(value)):
        return "literal"
    if any(_is_no_number(each) for each in ast.walk(value)):
        return "literal"  # the author wrote NaN explicitly
    if not isinstance(value, ast.Call):
        return "other"
    called = _last(value.func)
    if called in _UNSET:
        return "literal"
    if called in _MADE_EMPTY:
        return "made-empty"
    if called.startswith(_READS):
        return "read"
    if isinstance(value.func, ast.Name):
        return "function"
    owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    return "method" if isinstance(owner, ast.Name) and owner.id == name else "other"


def _is_no_number(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and _last(node.func) == "float":
        return any(isinstance(each, ast.Constant) and str(each.value).strip("+-") in _NOT_NUMBERS for each in node.args)
    return isinstance(node, ast.Attribute) and node.attr in _NOT_NUMBERS


def _called(value: ast.expr | None) -> str:
    if isinstance(value, ast.Await):
        value = value.value
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""
