"""Evaluates CEL rules of custom kinds.

In: a list of calls {rule, self, oldSelf?, optionalOldSelf?, message, messageExpression?}, plain JSON.
Out: one result per call: {outcome: ok}, or {outcome: failed | error | skipped, message}.
Never: raises, so that it can run in another process with limits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MAX_RULE_CHARACTERS = 16384
MAX_RULE_DEPTH = 120
_MAX_MESSAGE_CHARACTERS = 5120

JSON = Any


def evaluate(payload: JSON) -> JSON:
    """Return the results of all calls, in order."""
    return [_evaluate_call(call) for call in payload]


def find_compile_error(rule: str, *, is_message_expression: bool = False) -> str:
    """Return the server's message if a rule does not compile; "" if it does, or if this library does not support it."""
    prefix = "messageExpression compilation failed" if is_message_expression else "compilation failed"
    try:
        _compile_rule(rule)
    except _UnsupportedCel:
        return ""
    except ValueError as error:
        return f"{prefix}: {error}"
    return ""


class _UnsupportedCel(Exception):
    """The rule may be valid, but this library does not support its syntax."""


def _evaluate_call(call: dict[str, Any]) -> dict[str, Any]:
    try:
        outcome = _execute(call["rule"], call)
    except _UnsupportedCel as unsupported:
        return {"outcome": "skipped", "message": str(unsupported)}
    except (RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        return _describe_evaluation_error(call["rule"], error)
    if outcome is True:
        return {"outcome": "ok"}
    if outcome is not False:
        return {"outcome": "error", "message": "cel expression must evaluate to a bool"}
    return {"outcome": "failed", "message": _failure_message(call)}


def _describe_evaluation_error(rule: str, error: Exception) -> dict[str, Any]:
    if isinstance(error, KeyError):
        return {"outcome": "error", "message": f"no such key: {error.args[0] if error.args else ''}"}
    text = str(error)
    if text.startswith("Undefined variable or function"):
        name = text.partition("'")[2].partition("'")[0]
        return {"outcome": "skipped", "message": f"unsupported CEL function {name}"}
    return {
        "outcome": "error",
        "message": text.splitlines()[0].partition(". Check ")[0] if text else type(error).__name__,
    }


def _failure_message(call: dict[str, Any]) -> str:
    """Return the messageExpression's result, or the message if the expression is missing or fails."""
    expression = call.get("messageExpression")
    if expression:
        try:
            text = _execute(expression, call)
        except (_UnsupportedCel, RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, IndexError):
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text.strip() and len(text) <= _MAX_MESSAGE_CHARACTERS:
            return text.strip()
    return str(call.get("message") or f"failed rule: {call['rule']}")


def _execute(rule: str, call: dict[str, Any]) -> Any:
    import cel

    from argosy.kube.schema.cel.library import FUNCTIONS

    program = _compile_rule(rule)
    variables = {"self": call.get("self")}
    if call.get("optionalOldSelf"):
        has_old_self = "oldSelf" in call
        variables["oldSelf"] = cel.OptionalValue.of(call["oldSelf"]) if has_old_self else cel.OptionalValue.none()
    elif "oldSelf" in call:
        variables["oldSelf"] = call["oldSelf"]
    return program.execute(cel.Context(variables=variables, functions=FUNCTIONS))


@lru_cache(maxsize=2048)
def _compile_rule(rule: str) -> Any:
    """Compile a rule. Raises ValueError if it is not valid CEL, _UnsupportedCel if this library lacks its syntax."""
    if len(rule) > MAX_RULE_CHARACTERS:
        raise ValueError(f"the rule is longer than {MAX_RULE_CHARACTERS} characters")
    if _nesting_depth(rule) > MAX_RULE_DEPTH:
        raise ValueError(f"the rule is nested deeper than {MAX_RULE_DEPTH} levels")
    import cel

    try:
        return cel.compile(rule)
    except ValueError as error:
        text = str(error)
        if "unsupported syntax" in text:
            raise _UnsupportedCel(
                f"unsupported CEL syntax {text.partition('unsupported syntax ')[2].split()[0]}"
            ) from error
        reason = text.partition("ERROR: ")[2] or text
        raise ValueError("ERROR: " + reason if "ERROR: " in text else reason) from error


def _nesting_depth(rule: str) -> int:
    """Return the nesting depth of brackets and unary operators, because the parser's stack is limited."""
    deepest = depth = operator_run = 0
    for character in rule:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        operator_run = operator_run + 1 if character in "!-?" else 0
        deepest = max(deepest, depth, operator_run)
    return deepest
