"""Expressions of expr-lang, as `when` and `oncePer` of notifications are: `app.status.sync.status == 'OutOfSync'`.

In: a text, and values by name. Out: what it is, or an ExprError. Never: runs longer than its steps; reads a clock, a
file or an attribute of Python. Who evaluates a text of a user does it in a confined worker.
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
    """A compiled text. `names` are those that its values must come from."""

    text: str
    names: frozenset[str]
    _node: Node

    def evaluate(self, values: Mapping[str, Any], *, steps: int = MOST_STEPS) -> Any:
        try:
            return self._node(Scope(values, Meter(steps)))
        except RecursionError as error:
            raise LimitError("it is nested too deeply; write it flatter") from error
        except UserError:
            raise
        except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
            why = type(error).__name__
            raise ExprError(f"its values do not fit together ({why}); compare like with like") from error


def compile_expression(text: str) -> Expression:
    """Raises ExprError where the text is none, with the place."""
    if len(text) > MOST_TEXT:
        raise LimitError(f"an expression has at most {MOST_TEXT} characters; write it shorter")
    parser = Parser(tokens(text))
    try:
        node = parser.whole()
    except RecursionError as error:
        raise LimitError("it is nested too deeply; write it flatter") from error
    return Expression(text, frozenset(parser.names), node)
