"""Recursive descent parser for templates; tokens are compiled to functions directly.

In: text. Out: templates by name; "" is the text itself. Never: evaluates anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError
from argosy.languages.go_templates import nodes
from argosy.languages.go_templates.functions import LAZY
from argosy.languages.go_templates.lexer import TemplateError, Token, pieces
from argosy.languages.go_templates.nodes import Command, Template, Value

MOST_DEPTH: Final = 60
ENDS: Final = ("end", "else")
_GO_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(pieces(text))
        self._at, self._depth, self._ranges = 0, 0, 0
        self._variables = ["$"]
        self._templates: dict[str, Template] = {}

    def templates(self) -> dict[str, Template]:
        body = self._body()
        if self._token.kind != "end":
            raise self._error("unexpected {{end}} or {{else}}")
        return {**self._templates, "": body}

    # -- words

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._token
        self._at += token.kind != "end"
        return token

    def _is(self, kind: str, *values: str) -> bool:
        return self._token.kind == kind and (not values or self._token.value in values)

    def _take(self, kind: str, *values: str) -> bool:
        found = self._is(kind, *values)
        self._at += found
        return found

    def _need(self, kind: str, value: str) -> None:
        if not self._take(kind, value):
            raise self._error(f"{value!r} is missing")

    def _error(self, why: str = "syntax error") -> TemplateError:
        token = self._token
        before = f" before {token.value[:30]!r}" if token.kind not in ("end", "text") else ""
        return TemplateError(f"{why}{before}; correct it", line=token.line)

    # -- parts

    def _body(self) -> Template:
        """Parse up to the closing action, which is not consumed."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        parts: list[Template] = []
        known = len(self._variables)
        while not self._is("end"):
            if self._is("text"):
                parts.append(nodes.text(self._next().value))
                continue
            if self._tokens[self._at + 1].kind == "word" and self._tokens[self._at + 1].value in ENDS:
                break
            self._next()
            part = self._action()
            if part is not None:
                parts.append(part)
        del self._variables[known:]
        self._depth -= 1
        return nodes.block(parts)

    def _action(self) -> Template | None:
        word = self._token.value if self._is("word") else ""
        parse = {
            "if": self._if, "with": self._with, "range": self._range, "define": self._define,
            "template": self._template, "block": self._block, "break": self._leave, "continue": self._leave,
        }.get(word)  # fmt: skip
        if parse is not None:
            self._next()
            return parse()
        value, is_silent = self._pipeline()
        self._need("close", "}}")
        return nodes.shown(value, is_silent=is_silent)

    def _if(self) -> Template:
        return self._branching(moves=False)

    def _with(self) -> Template:
        return self._branching(moves=True)

    def _branching(self, *, moves: bool) -> Template:
        known = len(self._variables)
        test, _ = self._pipeline()
        self._need("close", "}}")
        then, word = self._body(), self._ending()
        if word == "else" and self._take("word", "with" if moves else "if"):
            otherwise: Template | None = self._branching(moves=moves)
        else:
            otherwise = self._ended(word)
        del self._variables[known:]
        return nodes.conditional(test, then, otherwise, moves=moves)

    def _ended(self, word: str) -> Template | None:
        """Parse an optional {{else}} branch, and the {{end}}."""
        otherwise = None
        if word == "else":
            self._need("close", "}}")
            otherwise, word = self._body(), self._ending()
        if word != "end":
            raise self._error("{{end}} is missing")
        self._need("close", "}}")
        return otherwise

    def _ending(self) -> str:
        if self._is("end"):
            raise self._error("{{end}} is missing")
        self._need("open", "{{")
        return self._next().value

    def _range(self) -> Template:
        known = len(self._variables)
        names, declares = self._declared(most=2)
        of = self._commands(())
        if names and not declares:
            raise self._error("range needs := to declare its variables")
        self._need("close", "}}")
        self._variables += names
        self._ranges += 1
        body = self._body()
        self._ranges -= 1
        otherwise = self._ended(self._ending())
        del self._variables[known:]
        return nodes.each_of(of, names, body, otherwise)

    def _leave(self) -> Template:
        word = self._tokens[self._at - 1].value
        if not self._ranges:
            raise self._error(f"{word} outside of range")
        self._need("close", "}}")
        return nodes.leave(nodes.Broke if word == "break" else nodes.Continued)

    def _name(self) -> str:
        token = self._next()
        if token.kind != "string":
            raise self._error("the quoted name of a template is missing")
        return string_of(token)

    def _define(self) -> None:
        if self._depth > 1:
            raise self._error("define inside another action")
        name = self._name()
        self._need("close", "}}")
        self._templates[name] = self._apart()

    def _apart(self) -> Template:
        """Parse a body with its own variables, and its {{end}}."""
        before, self._variables = self._variables, ["$"]
        ranges, self._ranges = self._ranges, 0
        body = self._body()
        self._variables, self._ranges = before, ranges
        if self._ending() != "end":
            raise self._error("{{end}} is missing")
        self._need("close", "}}")
        return body

    def _template(self) -> Template:
        name = self._name()
        given = None if self._is("close") else self._pipeline()[0]
        self._need("close", "}}")
        return nodes.included(name, given)

    def _block(self) -> Template:
        name = self._name()
        given, _ = self._pipeline()
        self._need("close", "}}")
        self._templates[name] = self._apart()
        return nodes.included(name, given)

    # -- values

    def _declared(self, most: int = 1) -> tuple[list[str], bool]:
        """Return the variables before `:=` or `=`, and True if they are declared."""
        start, names = self._at, []
        while self._is("variable"):
            names.append(self._next().value)
            if not (len(names) < most and self._take("mark", ",")):
                break
        if names and self._is("mark", ":=", "="):
            return names, self._next().value == ":="
        self._at = start
        return [], False

    def _pipeline(self) -> tuple[Value, bool]:
        names, declares = self._declared()
        value = self._commands(names, declares=declares)
        if declares:
            self._variables += names
        elif any(name not in self._variables for name in names):
            raise self._error(f"undefined variable {names[0]}")
        return value, bool(names)

    def _commands(self, names: Sequence[str], *, declares: bool = False) -> Value:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        commands = [self._command()]
        while self._take("mark", "|"):
            commands.append(self._command())
        self._depth -= 1
        return nodes.pipeline(commands, names, declares=declares)

    def _command(self) -> Command:
        first = self._token
        if first.kind == "word" and first.value not in ("true", "false", "nil"):
            self._next()
            if first.value not in nodes.FUNCTIONS and first.value not in LAZY:
                raise TemplateError(f"function {first.value[:40]!r} not defined; leave it out", line=first.line)
            if self._is_chain():
                of: Value = _nullary(nodes.called(first.value, []))
                return self._fields(of)
            return nodes.called(first.value, self._arguments())
        value = self._term()
        return self._fields(value)

    def _fields(self, value: Value) -> Command:
        last = ""
        while self._is_chain():
            if last:
                value = nodes.chained(value, last)
            last = self._next().value[1:]
        arguments = self._arguments()
        return nodes.method(value, last, arguments) if last else nodes.operand(value, arguments)

    def _is_chain(self) -> bool:
        return self._is("field") and not self._token.is_apart

    def _arguments(self) -> list[Value]:
        found: list[Value] = []
        while not self._is("close") and not self._is("mark", "|", ")", ","):
            token = self._token
            if not token.is_apart and self._tokens[self._at - 1].kind != "mark":
                raise self._error("a space is missing")
            found.append(self._argument())
        return found

    def _argument(self) -> Value:
        token = self._token
        if token.kind == "word" and token.value not in ("true", "false", "nil"):
            self._next()
            if token.value not in nodes.FUNCTIONS and token.value not in LAZY:
                raise TemplateError(f"function {token.value[:40]!r} not defined; leave it out", line=token.line)
            value = _nullary(nodes.called(token.value, []))
        else:
            value = self._term()
        while self._is_chain():
            value = nodes.chained(value, self._next().value[1:])
        return value

    def _term(self) -> Value:
        token = self._next()
        match token.kind:
            case "field":
                name = token.value[1:]
                return lambda state, dot: nodes.field(dot, name, ())
            case "variable":
                if token.value not in self._variables:
                    self._at -= 1
                    raise self._error(f"undefined variable {token.value}")
                return lambda state, dot: state.look(token.value)
            case "string" | "char" | "number" | "word":
                constant = _constant(token)
                return lambda state, dot: constant
        if token.kind == "mark" and token.value == ".":
            return lambda state, dot: dot
        if token.kind == "mark" and token.value == "(":
            value, _ = self._pipeline()
            self._need("mark", ")")
            return value
        self._at -= token.kind != "end"
        raise self._error()


def _nullary(command: Command) -> Value:
    return lambda state, dot: command(state, dot, ())


def _constant(token: Token) -> Any:
    if token.kind == "word":
        return {"true": True, "false": False, "nil": None}[token.value]
    if token.kind == "string":
        return string_of(token)
    if token.kind == "char":
        return ord(string_of(token)[:1] or "\0")
    text = token.value.replace("_", "")
    try:
        value = int(text, 0) if re.fullmatch(r"[+-]?(0|[1-9]\d*|0[xXbBoO]\w+)", text) else float(text)
    except ValueError as error:
        raise TemplateError(f"invalid number {token.value[:30]!r}; correct it", line=token.line) from error
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise TemplateError(f"number {token.value[:30]!r} is too large; use a smaller number", line=token.line)
    return value


def string_of(token: Token) -> str:
    inner = token.value[1:-1]
    if token.value[0] == "`":
        return inner
    if "\\" not in inner:
        return inner
    try:
        return _GO_ESCAPE.sub(_unescaped, inner)
    except ValueError as error:
        shown = json.dumps(inner[:30])
        raise TemplateError(f"{shown} has an invalid escape; correct it", line=token.line) from error


def _unescaped(found: re.Match[str]) -> str:
    word = found[1]
    if word[0] in "xuU" and len(word) > 1:
        number = int(word[1:], 16)
        if 0xD800 <= number < 0xE000:
            raise ValueError
        return chr(number)
    if len(word) == 3:
        return chr(int(word, 8))
    return _PLAIN.get(word, word)
