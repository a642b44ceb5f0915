"""Templates of Go (text/template) with the functions of sprig, as messages of notifications are written.

In: a text, and values. Out: the text that it makes, or a TemplateError. Never: more steps, text or depth than the meter
allows; a clock, a file, the environment, or an attribute of Python. Who renders a user's text does it in a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.languages.evaluation_budget import MOST_CHARACTERS, MOST_STEPS, Meter
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.nodes import State, Template
from argosy.languages.go_templates.parser import Parser

__all__ = ["Compiled", "TemplateError", "compile_template"]
MOST_TEXT: Final = 100_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Compiled:
    text: str
    _templates: Mapping[str, Template]

    def render(
        self,
        values: Any,
        *,
        now: datetime = _EPOCH,
        steps: int = MOST_STEPS,
        characters: int = MOST_CHARACTERS,
    ) -> str:
        """`values` are the template's own: functions such as `set` change them."""
        state = State(self._templates, Meter(steps, characters), now, values)
        try:
            self._templates[""](state, values)
        except RecursionError as error:
            raise LimitError("it is nested too deeply; write it flatter") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError, MemoryError) as error:
            why = type(error).__name__
            raise TemplateError(f"its values do not fit ({why}); see what each function takes") from error
        return "".join(state.out)


def compile_template(text: str) -> Compiled:
    """Raises TemplateError where the text is none, with the line."""
    if len(text) > MOST_TEXT:
        raise LimitError(f"a template has at most {MOST_TEXT} characters; write it shorter")
    try:
        return Compiled(text, Parser(text).templates())
    except RecursionError as error:
        raise LimitError("it is nested too deeply; write it flatter") from error
