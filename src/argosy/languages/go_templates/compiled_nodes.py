"""Nodes of a template as functions of a state and the dot.

In: nodes. Out: a node. Never: reads a Python attribute: a field is one of plain data, or a method of a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.languages import go_time
from argosy.languages.evaluation_budget import EvaluationBudget
from argosy.languages.go_printf import NO_VALUE, format_value
from argosy.languages.go_templates.functions import BUILTIN_FUNCTIONS, LAZY_FUNCTIONS, is_truthy
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.sprig import SPRIG_FUNCTIONS

FUNCTIONS: Final = {**SPRIG_FUNCTIONS, **BUILTIN_FUNCTIONS}
Template = Callable[["TemplateState", Any], None]
Value = Callable[["TemplateState", Any], Any]
Command = Callable[["TemplateState", Any, Sequence[Any]], Any]  # the last argument is the piped value, if any


class RangeBreak(Exception):
    """`break` or `continue` of the innermost range."""


class RangeContinue(RangeBreak):
    pass


class TemplateState:
    def __init__(self, templates: Mapping[str, Template], budget: EvaluationBudget, now: datetime, root: Any) -> None:
        self.templates, self.budget, self.now = templates, budget, now
        self.out: list[str] = []
        self.variables: list[tuple[str, Any]] = [("$", root)]

    def write(self, text: str) -> None:
        self.budget.spend_characters(len(text))
        self.out.append(text)

    def get_variable(self, name: str) -> Any:
        for variable_name, value in reversed(self.variables):
            if variable_name == name:
                return value
        raise TemplateError(f"undefined variable {name}; declare it with {name} := …")

    def set_variable(self, name: str, value: Any) -> None:
        for i in range(len(self.variables) - 1, -1, -1):
            if self.variables[i][0] == name:
                self.variables[i] = (name, value)
                return
        raise TemplateError(f"undefined variable {name}; declare it with {name} := …")


def build_text(value: str) -> Template:
    return lambda state, dot: state.write(value)


def build_block(parts: Sequence[Template]) -> Template:
    def render(state: TemplateState, dot: Any) -> None:
        variable_count = len(state.variables)
        for part in parts:
            state.budget.spend_steps()
            part(state, dot)
        del state.variables[variable_count:]

    return render


def build_output(value: Value, *, is_silent: bool) -> Template:
    def render(state: TemplateState, dot: Any) -> None:
        result = value(state, dot)
        if not is_silent:
            state.write(NO_VALUE if result is None else format_value(result))

    return render


def build_conditional(test: Value, then: Template, otherwise: Template | None, *, sets_dot: bool) -> Template:
    """`if`, or `with`, which sets the dot."""

    def render(state: TemplateState, dot: Any) -> None:
        variable_count = len(state.variables)
        result = test(state, dot)
        if is_truthy(result):
            then(state, result if sets_dot else dot)
        elif otherwise is not None:
            otherwise(state, dot)
        del state.variables[variable_count:]

    return render


def build_range(collection: Value, names: Sequence[str], body: Template, otherwise: Template | None) -> Template:
    def render(state: TemplateState, dot: Any) -> None:
        variable_count = len(state.variables)
        items = _list_items(collection(state, dot), state.budget)
        for key, item in items:
            state.budget.spend_steps()
            loop_values = [item] if len(names) == 1 else [key, item]
            state.variables += zip(names, loop_values, strict=False)
            try:
                body(state, item)
            except RangeContinue:
                pass
            except RangeBreak:
                break
            finally:
                del state.variables[variable_count:]
        if not items and otherwise is not None:
            otherwise(state, dot)

    return render


def _list_items(value: Any, budget: EvaluationBudget) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [(name, value[name]) for name in sorted(value, key=str)]
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, int) and not isinstance(value, bool):
        budget.spend_characters(max(0, value))
        return [(i, i) for i in range(value)]
    if value is None:
        return []
    raise TemplateError(f"range cannot iterate over {format_value(value)[:40]!r}; use a list or a map")


def build_template_call(name: str, argument: Value | None) -> Template:
    def render(state: TemplateState, dot: Any) -> None:
        template = state.templates.get(name)
        if template is None:
            raise TemplateError(f"undefined template {name[:60]!r}; define it")
        value = argument(state, dot) if argument else None
        outer_variables, state.variables = state.variables, [("$", value)]
        with state.budget.enter_nested():
            template(state, value)
        state.variables = outer_variables

    return render


def build_range_exit(kind: type[RangeBreak]) -> Template:
    def render(state: TemplateState, dot: Any) -> None:
        raise kind

    return render


# -- values


def build_pipeline(commands: Sequence[Command], names: Sequence[str], *, declares: bool) -> Value:
    def evaluate(state: TemplateState, dot: Any) -> Any:
        result: Any = None
        for i, command in enumerate(commands):
            state.budget.spend_steps()
            result = command(state, dot, () if i == 0 else (result,))
        for name in names:
            if declares:
                state.variables.append((name, result))
            else:
                state.set_variable(name, result)
        return result

    return evaluate


def build_function_call(name: str, arguments: Sequence[Value]) -> Command:
    if name in LAZY_FUNCTIONS:
        return lambda state, dot, piped: LAZY_FUNCTIONS[name](
            *((lambda argument=argument: argument(state, dot)) for argument in arguments),
            *((lambda argument=argument: argument) for argument in piped),
        )
    function = FUNCTIONS[name]

    def evaluate(state: TemplateState, dot: Any, piped: Sequence[Any]) -> Any:
        state.budget.spend_steps(5)
        values = [*(argument(state, dot) for argument in arguments), *piped]
        try:
            result = function(state, *values)
        except UserError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            values_text = ", ".join(format_value(argument)[:20] for argument in values)
            raise TemplateError(f"wrong arguments for {name}: ({values_text[:100]}); check what it takes") from error
        if isinstance(result, str | list | dict):
            state.budget.spend_characters(len(result))
        return result

    return evaluate


def build_operand(value: Value, arguments: Sequence[Value]) -> Command:
    """An operand is not a function and takes no arguments, except for a method at the end of a chain."""

    def evaluate(state: TemplateState, dot: Any, piped: Sequence[Any]) -> Any:
        if arguments or piped:
            raise TemplateError("it has arguments but cannot be invoked as a function; put `call` before it")
        return value(state, dot)

    return evaluate


def build_method_call(receiver: Value, name: str, arguments: Sequence[Value]) -> Command:
    """The last field of a chain: a method if the value has one of this name, else a field."""

    def evaluate(state: TemplateState, dot: Any, piped: Sequence[Any]) -> Any:
        state.budget.spend_steps()
        receiver_value = receiver(state, dot)
        values = [*(argument(state, dot) for argument in arguments), *piped]
        if values and name not in go_time.METHODS.get(type(receiver_value), {}):
            raise TemplateError(f"{name} has arguments but cannot be invoked as a function; put `call` before it")
        return get_field(receiver_value, name, values)

    return evaluate


def build_field_access(receiver: Value, name: str) -> Value:
    def evaluate(state: TemplateState, dot: Any) -> Any:
        state.budget.spend_steps()
        return get_field(receiver(state, dot), name, ())

    return evaluate


def get_field(value: Any, name: str, arguments: Sequence[Any]) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(name)
    methods = go_time.METHODS.get(type(value), {})
    if name in methods:
        try:
            return methods[name](value, *arguments)
        except TypeError as error:
            raise TemplateError(f"wrong arguments for {name}; check what it takes") from error
    raise TemplateError(f"cannot evaluate field {name} in {format_value(value)[:40]!r}; it has no fields")
