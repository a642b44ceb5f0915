"""Evaluates CEL rules of custom kinds.

In: a list of calls {rule, self, oldSelf?, optionalOldSelf?, message, messageExpression?}, plain JSON.
Out: one result per call: {outcome: ok}, or {outcome: failed | error | skipped, message}.
Never: raises, so that it can run in another process with limits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST_RULE = 16384
DEEPEST_RULE = 120
_LONGEST_MESSAGE = 5120

JSON = Any


def evaluate(payload: JSON) -> JSON:
    """Return the results of all calls, in order."""
    return [_evaluate(call) for call in payload]


def problem(rule: str, *, message: bool = False) -> str:
    """Return the server's message if a rule does not compile; "" if it does, or if this library does not support it."""
    what = "messageExpression compilation failed" if message else "compilation failed"
    try:
        _program(rule)
    except _Unsupported:
        return ""
    except ValueError as error:
        return f"{what}: {error}"
    return ""


class _Unsupported(Exception):
    """The rule may be valid, but this library does not support its syntax."""


def _evaluate(call: dict[str, Any]) -> dict[str, Any]:
    try:
        outcome = _run(call["rule"], call)
    except _Unsupported as unsupported:
        return {"outcome": "skipped", "message": str(unsupported)}
    except (RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        return _unevaluated(call["rule"], error)
    if outcome is True:
        return {"outcome": "ok"}
    if outcome is not False:
        return {"outcome": "error", "message": "cel expression must evaluate to a bool"}
    return {"outcome": "failed", "message": _message(call)}


def _unevaluated(rule: str, error: Exception) -> dict[str, Any]:
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


def _message(call: dict[str, Any]) -> str:
    """Return the messageExpression's result, or the message if the expression is missing or fails."""
    expression = call.get("messageExpression")
    if expression:
        try:
            text = _run(expression, call)
        except (_Unsupported, RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, IndexError):
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text.strip() and len(text) <= _LONGEST_MESSAGE:
            return text.strip()
    return str(call.get("message") or f"failed rule: {call['rule']}")


def _run(rule: str, call: dict[str, Any]) -> Any:
    import cel

    from argosy.kube.schema.cel.library import FUNCTIONS

    program = _program(rule)
    variables = {"self": call.get("self")}
    if call.get("optionalOldSelf"):
        known = "oldSelf" in call
        variables["oldSelf"] = cel.OptionalValue.of(call["oldSelf"]) if known else cel.OptionalValue.none()
    elif "oldSelf" in call:
        variables["oldSelf"] = call["oldSelf"]
    return program.execute(cel.Context(variables=variables, functions=FUNCTIONS))


@lru_cache(maxsize=2048)
def _program(rule: str) -> Any:
    """Compile a rule. Raises ValueError if it is not valid CEL, _UnsupportedCel if this library lacks its syntax."""
    if len(rule) > LONGEST_RULE:
        raise ValueError(f"the rule is longer than {LONGEST_RULE} characters")
    if _depth(rule) > DEEPEST_RULE:
        raise ValueError(f"the rule is nested deeper than {DEEPEST_RULE} levels")
    import cel

    try:
        return cel.compile(rule)
    except ValueError as error:
        text = str(error)
        if "unsupported syntax" in text:
            raise _Unsupported(
                f"unsupported CEL syntax {text.partition('unsupported syntax ')[2].split()[0]}"
            ) from error
        reason = text.partition("ERROR: ")[2] or text
        raise ValueError("ERROR: " + reason if "ERROR: " in text else reason) from error


def _depth(rule: str) -> int:
    """Return the nesting depth of brackets and unary operators, because the parser's stack is limited."""
    deepest = depth = run = 0
    for character in rule:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        run = run + 1 if character in "!-?" else 0
        deepest = max(deepest, depth, run)
    return deepest
