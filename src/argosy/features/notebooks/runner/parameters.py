"""Parameters of a notebook in the convention of papermill: a code cell with the tag `parameters` holds the defaults.

In: a notebook and values. Out: the notebook with the values assigned in that same cell, so that cell indexes do not
change. Never: runs a cell; guesses the meaning of a name.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

TAG, INJECTED = "parameters", "injected-parameters"
HEADING_COMMENT: Final = "# Parameters"
UNDECLARED: Final = "the notebook does not declare it"


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter as the cell declares it: `name: type = default # about`."""

    name: str
    default: str
    type: str = ""
    about: str = ""


def read_declared_parameters(notebook: Mapping[str, Any]) -> list[DeclaredParameter]:
    """Parameters that the tagged cell declares, in order; empty without such a cell, or if it is not plain Python."""
    cell = _find_tagged_cell(notebook, TAG)
    if cell is None:
        return []
    source = _get_source(cell)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    lines = source.splitlines()
    parameters: dict[str, DeclaredParameter] = {}
    for node in tree.body:
        for name, kind, value in _list_assignments(node):
            trailing_text = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :].strip()
            parameters[name] = DeclaredParameter(
                name, ast.unparse(value), kind, trailing_text.lstrip("# ") if trailing_text[:1] == "#" else ""
            )
    return list(parameters.values())


def inject_parameters(notebook: dict[str, Any], values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Assign the values in the notebook's tagged cell. Returns code to run before the first cell if there is none, and
    remarks.
    """
    if not values:
        return "", []
    text = f"{HEADING_COMMENT}\n" + "".join(f"{name} = {render_literal(value)}\n" for name, value in values.items())
    notebook.setdefault("metadata", {}).setdefault("papermill", {})["parameters"] = dict(values)
    if cell := _find_tagged_cell(notebook, INJECTED):
        cell["source"] = text
        return "", []
    declared_names = {parameter.name for parameter in read_declared_parameters(notebook)}
    if cell := _find_tagged_cell(notebook, TAG):
        cell["source"] = f"{_get_source(cell).rstrip()}\n\n{text}"
        return "", [_describe_undeclared(name, declared_names) for name in values if name not in declared_names]
    return text, [f"parameters: no cell has the tag {TAG}, so they are set before the first cell"]


def _describe_undeclared(name: str, declared_names: Collection[str]) -> str:
    similar_names = difflib.get_close_matches(name, declared_names, n=1)
    return f"parameter {name}: {UNDECLARED}{f'; did you mean {similar_names[0]}?' if similar_names else ''}"


def is_undeclared(remark: str) -> bool:
    """True if a remark is about a value that no cell declares, most often a misspelled name."""
    return remark.startswith("parameter ") and UNDECLARED in remark


def is_identifier(text: Any) -> bool:
    """True if Python can assign to this name."""
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)


def render_literal(value: Any) -> str:
    """Python literal of a JSON value. Raises ValueError for other types."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(render_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{render_literal(name)}: {render_literal(item)}' for name, item in value.items())}}}"
    raise ValueError(f"parameters cannot have type {type(value).__name__}; use a string, a number or a list")


def _list_assignments(node: ast.stmt) -> list[tuple[str, str, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [(target.id, "", node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return [(node.target.id, ast.unparse(node.annotation), node.value)]
    return []


def _find_tagged_cell(notebook: Mapping[str, Any], tag: str) -> dict[str, Any] | None:
    for cell in notebook.get("cells") or ():
        if cell.get("cell_type") == "code" and tag in ((cell.get("metadata") or {}).get("tags") or ()):
            tagged_cell: dict[str, Any] = cell
            return tagged_cell
    return None


def _get_source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source") or ""
    return source if isinstance(source, str) else "".join(source)
