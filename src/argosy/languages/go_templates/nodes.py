"""Nodes of a template as functions of a state and the dot.

In: nodes. Out: a node. Never: reads a Python attribute: a field is one of plain data, or a method of a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.languages import go_time
from argosy.languages.evaluation_budget import Meter
from argosy.languages.go_format import NO_VALUE, text_of
from argosy.languages.go_templates.functions import BUILTIN, LAZY, truth
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.sprig import SPRIG

FUNCTIONS: Final = {**SPRIG, **BUILTIN}
Template = Callable[["State", Any], None]
Value = Callable[["State", Any], Any]
Command = Callable[["State", Any, Sequence[Any]], Any]  # the last argument is the piped value, if any


class Broke(Exception):
    """`break` or `continue` of the innermost range."""


class Continued(Broke):
    pass


class State:
    def __init__(self, templates: Mapping[str, Template], meter: Meter, now: datetime, root: Any) -> None:
        self.templates, self.meter, self.now = templates, meter, now
        self.out: list[str] = []
        self.variables: list[tuple[str, Any]] = [("$", root)]

    def write(self, text: str) -> None:
        self.meter.grow(len(text))
        self.out.append(text)

    def look(self, name: str) -> Any:
        for known, value in reversed(self.variables):
            if known == name:
                return value
        raise TemplateError(f"undefined variable {name}; declare it with {name} := …")

    def change(self, name: str, value: Any) -> None:
        for at in range(len(self.variables) - 1, -1, -1):
            if self.variables[at][0] == name:
                self.variables[at] = (name, value)
                return
        raise TemplateError(f"undefined variable {name}; declare it with {name} := …")


def text(value: str) -> Template:
    return lambda state, dot: state.write(value)


def block(parts: Sequence[Template]) -> Template:
    def run(state: State, dot: Any) -> None:
        mark = len(state.variables)
        for each in parts:
            state.meter.step()
            each(state, dot)
        del state.variables[mark:]

    return run


def shown(value: Value, *, is_silent: bool) -> Template:
    def run(state: State, dot: Any) -> None:
        found = value(state, dot)
        if not is_silent:
            state.write(NO_VALUE if found is None else text_of(found))

    return run


def conditional(test: Value, then: Template, otherwise: Template | None, *, moves: bool) -> Template:
    """`if`, or `with`, which sets the dot."""

    def run(state: State, dot: Any) -> None:
        mark = len(state.variables)
        found = test(state, dot)
        if truth(found):
            then(state, found if moves else dot)
        elif otherwise is not None:
            otherwise(state, dot)
        del state.variables[mark:]

    return run


def each_of(of: Value, names: Sequence[str], body: Template, otherwise: Template | None) -> Template:
    def run(state: State, dot: Any) -> None:
        mark = len(state.variables)
        items = _items(of(state, dot), state.meter)
        for key, item in items:
            state.meter.step()
            given = [item] if len(names) == 1 else [key, item]
            state.variables += zip(names, given, strict=False)
            try:
                body(state, item)
            except Continued:
                pass
            except Broke:
                break
            finally:
                del state.variables[mark:]
        if not items and otherwise is not None:
            otherwise(state, dot)

    return run


def _items(value: Any, meter: Meter) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [(name, value[name]) for name in sorted(value, key=str)]
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, int) and not isinstance(value, bool):
        meter.grow(max(0, value))
        return [(at, at) for at in range(value)]
    if value is None:
        return []
    raise TemplateError(f"range cannot iterate over {text_of(value)[:40]!r}; use a list or a map")


def included(name: str, given: Value | None) -> Template:
    def run(state: State, dot: Any) -> None:
        template = state.templates.get(name)
        if template is None:
            raise TemplateError(f"undefined template {name[:60]!r}; define it")
        value = given(state, dot) if given else None
        before, state.variables = state.variables, [("$", value)]
        with state.meter.deeper():
            template(state, value)
        state.variables = before

    return run


def leave(kind: type[Broke]) -> Template:
    def run(state: State, dot: Any) -> None:
        raise kind

    return run


# -- values


def pipeline(commands: Sequence[Command], names: Sequence[str], *, declares: bool) -> Value:
    def run(state: State, dot: Any) -> Any:
        found: Any = None
        for place, command in enumerate(commands):
            state.meter.step()
            found = command(state, dot, () if place == 0 else (found,))
        for name in names:
            if declares:
                state.variables.append((name, found))
            else:
                state.change(name, found)
        return found

    return run


def called(name: str, arguments: Sequence[Value]) -> Command:
    if name in LAZY:
        return lambda state, dot, given: LAZY[name](
            *((lambda each=each: each(state, dot)) for each in arguments), *((lambda each=each: each) for each in given)
        )
    function = FUNCTIONS[name]

    def run(state: State, dot: Any, given: Sequence[Any]) -> Any:
        state.meter.step(5)
        values = [*(each(state, dot) for each in arguments), *given]
        try:
            found = function(state, *values)
        except UserError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            what = ", ".join(text_of(each)[:20] for each in values)
            raise TemplateError(f"wrong arguments for {name}: ({what[:100]}); check what it takes") from error
        if isinstance(found, str | list | dict):
            state.meter.grow(len(found))
        return found

    return run


def operand(value: Value, arguments: Sequence[Value]) -> Command:
    """An operand is not a function and takes no arguments, except for a method at the end of a chain."""

    def run(state: State, dot: Any, given: Sequence[Any]) -> Any:
        if arguments or given:
            raise TemplateError("it has arguments but cannot be invoked as a function; put `call` before it")
        return value(state, dot)

    return run


def method(of: Value, name: str, arguments: Sequence[Value]) -> Command:
    """The last field of a chain: a method if the value has one of this name, else a field."""

    def run(state: State, dot: Any, given: Sequence[Any]) -> Any:
        state.meter.step()
        found = of(state, dot)
        values = [*(each(state, dot) for each in arguments), *given]
        if values and name not in go_time.METHODS.get(type(found), {}):
            raise TemplateError(f"{name} has arguments but cannot be invoked as a function; put `call` before it")
        return field(found, name, values)

    return run


def chained(of: Value, name: str) -> Value:
    def run(state: State, dot: Any) -> Any:
        state.meter.step()
        return field(of(state, dot), name, ())

    return run


def field(value: Any, name: str, arguments: Sequence[Any]) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(name)
    known = go_time.METHODS.get(type(value), {})
    if name in known:
        try:
            return known[name](value, *arguments)
        except TypeError as error:
            raise TemplateError(f"wrong arguments for {name}; check what it takes") from error
    raise TemplateError(f"cannot evaluate field {name} in {text_of(value)[:40]!r}; it has no fields")
