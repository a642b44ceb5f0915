"""Notebook parameters in papermill's convention."""

from __future__ import annotations

import math
from typing import Any

import pytest

from argosy.features.notebooks.runner.parameters import (
    DeclaredParameter,
    inject_parameters,
    read_declared_parameters,
    render_literal,
)

CELL = "rate: float = 0.1  # how fast\nnames = ['a',\n  'b']\nx, y = 1, 2\n"


def notebook(*cells: tuple[str, list[str]]) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": text, "metadata": {"tags": tags}} for text, tags in cells]}


def test_declared_parameters_have_default_type_and_comment() -> None:
    parameters = read_declared_parameters(notebook(("import x", []), (CELL, ["parameters"])))
    assert parameters == [
        DeclaredParameter("rate", "0.1", "float", "how fast"),
        DeclaredParameter("names", "['a', 'b']"),
    ]


def test_injected_cell_of_a_previous_run_is_replaced() -> None:
    tagged_notebook = notebook((CELL, ["parameters"]), ("rate = 7", ["injected-parameters"]))
    assert inject_parameters(tagged_notebook, {"rate": 2}) == ("", [])
    assert tagged_notebook["cells"][1]["source"] == "# Parameters\nrate = 2\n"
    assert tagged_notebook["cells"][0]["source"] == CELL
    assert tagged_notebook["metadata"]["papermill"] == {"parameters": {"rate": 2}}


def test_parameters_without_a_tagged_cell_run_before_the_first_cell() -> None:
    untagged_notebook = notebook(("%%bash\nls", []))
    first, odd = inject_parameters(untagged_notebook, {"a": "x'\n"})
    assert first == '# Parameters\na = "x\'\\n"\n'
    assert "no cell has the tag parameters" in odd[0]
    assert untagged_notebook["cells"][0]["source"] == "%%bash\nls"


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "ü\n'\"", [1, [None]], {"a": {"b": [False]}}])
def test_rendered_literal_evaluates_to_the_same_value(value: Any) -> None:
    assert eval(render_literal(value)) == value


def test_nan_is_rendered_and_other_types_are_rejected() -> None:
    assert math.isnan(eval(render_literal(math.nan)))
    with pytest.raises(ValueError, match="cannot have type object"):
        render_literal(object())
