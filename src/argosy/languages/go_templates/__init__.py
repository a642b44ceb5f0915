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
from argosy.languages.evaluation_budget import MAX_CHARACTERS, MAX_STEPS, EvaluationBudget
from argosy.languages.go_templates.compiled_nodes import Template, TemplateState
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.parser import TemplateParser

__all__ = ["CompiledTemplate", "TemplateError", "compile_template"]
MAX_TEMPLATE_CHARACTERS: Final = 100_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    text: str
    _templates: Mapping[str, Template]

    def render(
        self,
        values: Any,
        *,
        now: datetime = _EPOCH,
        steps: int = MAX_STEPS,
        characters: int = MAX_CHARACTERS,
    ) -> str:
        """Render the template; functions such as `set` change `values`."""
        state = TemplateState(self._templates, EvaluationBudget(steps, characters), now, values)
        try:
            self._templates[""](state, values)
        except RecursionError as error:
            raise LimitError("it is nested too deeply; flatten it") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError, MemoryError) as error:
            error_type = type(error).__name__
            raise TemplateError(f"wrong value ({error_type}); check the arguments of each function") from error
        return "".join(state.out)


def compile_template(text: str) -> CompiledTemplate:
    """Compile a template. Raises TemplateError with the line if it is invalid."""
    if len(text) > MAX_TEMPLATE_CHARACTERS:
        raise LimitError(f"the template exceeds {MAX_TEMPLATE_CHARACTERS} characters; shorten it")
    try:
        return CompiledTemplate(text, TemplateParser(text).parse_templates())
    except RecursionError as error:
        raise LimitError("it is nested too deeply; flatten it") from error
