"""expr-lang expressions, as in `when` and `oncePer` of notifications: `app.status.sync.status == 'OutOfSync'`.

In: text, and values by name. Out: the result, or an ExprError. Never: exceeds its steps; reads a clock, a file or a
Python attribute. The caller evaluates users' expressions in a confined worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.languages.evaluation_budget import MOST_STEPS, Meter
from argosy.languages.expr.lexer import ExprError, tokens
from argosy.languages.expr.nodes import Node, Scope
from argosy.languages.expr.parser import Parser

__all__ = ["ExprError", "Expression", "compile_expression"]
MOST_TEXT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. `names` are the values that it refers to."""

    text: str
    names: frozenset[str]
    _node: Node

    def evaluate(self, values: Mapping[str, Any], *, steps: int = MOST_STEPS) -> Any:
        try:
            return self._node(Scope(values, Meter(steps)))
        except RecursionError as error:
            raise LimitError("it is nested too deeply; flatten it") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
            why = type(error).__name__
            raise ExprError(f"incompatible values ({why}); use values of one type") from error


def compile_expression(text: str) -> Expression:
    """Compile an expression. Raises ExprError with the position if it is invalid."""
    if len(text) > MOST_TEXT:
        raise LimitError(f"the expression exceeds {MOST_TEXT} characters; shorten it")
    parser = Parser(tokens(text))
    try:
        node = parser.whole()
    except RecursionError as error:
        raise LimitError("it is nested too deeply; flatten it") from error
    return Expression(text, frozenset(parser.names), node)
