"""Parses notebook parameters from the command line and from files.

In: text. Out: values. Never: runs the input.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notebooks.runner.parameters import is_identifier

_PYTHON_CONSTANTS: Final = {"True": True, "False": False, "None": None}


def parse_value(text: str) -> Any:
    """A number, true, null, a list or an object if the text is one; otherwise the text itself."""
    if text in _PYTHON_CONSTANTS:
        return _PYTHON_CONSTANTS[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if text[:1] in "[{(" and text:
        try:
            value = ast.literal_eval(text)
            json.dumps(value)
        except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
            return text  # also for values that JSON does not have, such as sets
        return list(value) if isinstance(value, tuple) else value
    return text


def collect_parameters(
    pairs: Sequence[tuple[str, str]], raw: Sequence[tuple[str, str]] = (), files: Sequence[Path] = ()
) -> dict[str, Any]:
    """All parameters; the command line wins over files."""
    parameters: dict[str, Any] = {}
    for file in files:
        parameters |= _load_parameter_file(file)
    parameters |= {name: parse_value(text) for name, text in pairs} | dict(raw)
    for name in parameters:
        if not is_identifier(name):
            raise UserError("is not a parameter name; use letters, digits and _", where=str(name))
    return parameters


def _load_parameter_file(file: Path) -> Mapping[str, Any]:
    from argosy.kube.objects import read_yaml

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path", where=str(file)) from None
    except ValueError:
        raise UserError("is not a text file; save it as UTF-8", where=str(file)) from None
    parameters = read_yaml(text, where=str(file))
    if not isinstance(parameters, Mapping):
        raise UserError("has no parameters; add a line `name: value` for each", where=str(file))
    return parameters
