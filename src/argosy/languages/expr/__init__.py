"""expr-lang expressions, as in `when` and `oncePer` of notifications: `app.status.sync.status == 'OutOfSync'`.

In: text, and values by name. Out: the result, or an ExprError. Never: exceeds its steps; reads a clock, a file or a
Python attribute. The caller evaluates users' expressions in a confined worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.languages.evaluation_budget import MAX_STEPS, EvaluationBudget
from argosy.languages.expr.compiled_nodes import ExprScope, Node
from argosy.languages.expr.lexer import ExprError, tokenize
from argosy.languages.expr.parser import ExprParser

__all__ = ["CompiledExpression", "ExprError", "compile_expression"]
MAX_EXPRESSION_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A compiled expression. `names` are the values that it refers to."""

    text: str
    names: frozenset[str]
    _node: Node

    def evaluate(self, values: Mapping[str, Any], *, steps: int = MAX_STEPS) -> Any:
        try:
            return self._node(ExprScope(values, EvaluationBudget(steps)))
        except RecursionError as error:
            raise LimitError("it is nested too deeply; flatten it") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
            error_type = type(error).__name__
            raise ExprError(f"incompatible values ({error_type}); use values of one type") from error


def compile_expression(text: str) -> CompiledExpression:
    """Compile an expression. Raises ExprError with the position if it is invalid."""
    if len(text) > MAX_EXPRESSION_CHARACTERS:
        raise LimitError(f"the expression exceeds {MAX_EXPRESSION_CHARACTERS} characters; shorten it")
    parser = ExprParser(tokenize(text))
    try:
        node = parser.parse_expression()
    except RecursionError as error:
        raise LimitError("it is nested too deeply; flatten it") from error
    return CompiledExpression(text, frozenset(parser.names), node)
