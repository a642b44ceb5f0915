"""Parameters in papermill's convention."""

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


def test_an_injected_cell_of_an_earlier_run_is_replaced() -> None:
    tagged_notebook = notebook((CELL, ["parameters"]), ("rate = 7", ["injected-parameters"]))
    assert inject_parameters(tagged_notebook, {"rate": 2}) == ("", [])
    assert tagged_notebook["cells"][1]["source"] == "# Parameters\nrate = 2\n"
    assert tagged_notebook["cells"][0]["source"] == CELL
    assert tagged_notebook["metadata"]["papermill"] == {"parameters": {"rate": 2}}


def test_without_a_tagged_cell_values_are_set_before_the_first() -> None:
    untagged_notebook = notebook(("%%bash\nls", []))
    first, odd = inject_parameters(untagged_notebook, {"a": "x'\n"})
    assert first == '# Parameters\na = "x\'\\n"\n'
    assert "no cell has the tag parameters" in odd[0]
    assert untagged_notebook["cells"][0]["source"] == "%%bash\nls"


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "ü\n'\"", [1, [None]], {"a": {"b": [False]}}])
def test_a_literal_is_python_for_the_same_value(value: Any) -> None:
    assert eval(render_literal(value)) == value


def test_numbers_that_are_none_are_written_too_and_other_things_are_refused() -> None:
    assert math.isnan(eval(render_literal(math.nan)))
    with pytest.raises(ValueError, match="cannot have type object"):
        render_literal(object())
