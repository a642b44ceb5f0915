"""Go templates (text/template) with Sprig functions, as used by notification messages.

In: text and values. Out: the rendered text, or a TemplateError. Never: more steps, text or depth than the budget
allows;
a clock, a file, the environment, or a Python attribute. The caller renders users' templates in a worker.
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
        """Render the template; functions such as `set` change `values`."""
        state = State(self._templates, Meter(steps, characters), now, values)
        try:
            self._templates[""](state, values)
        except RecursionError as error:
            raise LimitError("it is nested too deeply; flatten it") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError, MemoryError) as error:
            why = type(error).__name__
            raise TemplateError(f"wrong value ({why}); check the arguments of each function") from error
        return "".join(state.out)


def compile_template(text: str) -> Compiled:
    """Compile a template. Raises TemplateError with the line if it is invalid."""
    if len(text) > MOST_TEXT:
        raise LimitError(f"the template exceeds {MOST_TEXT} characters; shorten it")
    try:
        return Compiled(text, Parser(text).templates())
    except RecursionError as error:
        raise LimitError("it is nested too deeply; flatten it") from error
