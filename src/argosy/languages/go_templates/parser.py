"""Recursive descent parser for templates; tokens are compiled to functions directly.

In: text. Out: templates by name; "" is the text itself. Never: evaluates anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError
from argosy.languages.go_templates import compiled_nodes
from argosy.languages.go_templates.compiled_nodes import Command, Template, Value
from argosy.languages.go_templates.functions import LAZY_FUNCTIONS
from argosy.languages.go_templates.lexer import TemplateError, TemplateToken, tokenize

MAX_DEPTH: Final = 60
CLOSING_WORDS: Final = ("end", "else")
_GO_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIMPLE_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class TemplateParser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokenize(text))
        self._position, self._depth, self._range_depth = 0, 0, 0
        self._variables = ["$"]
        self._templates: dict[str, Template] = {}

    def parse_templates(self) -> dict[str, Template]:
        body = self._parse_body()
        if self._token.kind != "end":
            raise self._build_error("unexpected {{end}} or {{else}}")
        return {**self._templates, "": body}

    # -- words

    @property
    def _token(self) -> TemplateToken:
        return self._tokens[self._position]

    def _next_token(self) -> TemplateToken:
        token = self._token
        self._position += token.kind != "end"
        return token

    def _is_token(self, kind: str, *values: str) -> bool:
        return self._token.kind == kind and (not values or self._token.value in values)

    def _take(self, kind: str, *values: str) -> bool:
        is_match = self._is_token(kind, *values)
        self._position += is_match
        return is_match

    def _require(self, kind: str, value: str) -> None:
        if not self._take(kind, value):
            raise self._build_error(f"{value!r} is missing")

    def _build_error(self, reason: str = "syntax error") -> TemplateError:
        token = self._token
        before = f" before {token.value[:30]!r}" if token.kind not in ("end", "text") else ""
        return TemplateError(f"{reason}{before}; correct it", line=token.line)

    # -- parts

    def _parse_body(self) -> Template:
        """Parse up to the closing action, which is not consumed."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        parts: list[Template] = []
        variable_count = len(self._variables)
        while not self._is_token("end"):
            if self._is_token("text"):
                parts.append(compiled_nodes.build_text(self._next_token().value))
                continue
            if (
                self._tokens[self._position + 1].kind == "word"
                and self._tokens[self._position + 1].value in CLOSING_WORDS
            ):
                break
            self._next_token()
            part = self._parse_action()
            if part is not None:
                parts.append(part)
        del self._variables[variable_count:]
        self._depth -= 1
        return compiled_nodes.build_block(parts)

    def _parse_action(self) -> Template | None:
        word = self._token.value if self._is_token("word") else ""
        parse = {
            "if": self._parse_if,
            "with": self._parse_with,
            "range": self._parse_range,
            "define": self._parse_define,
            "template": self._parse_template_call,
            "block": self._parse_block,
            "break": self._parse_range_exit,
            "continue": self._parse_range_exit,
        }.get(word)
        if parse is not None:
            self._next_token()
            return parse()
        value, is_silent = self._parse_pipeline()
        self._require("close", "}}")
        return compiled_nodes.build_output(value, is_silent=is_silent)

    def _parse_if(self) -> Template:
        return self._parse_conditional(sets_dot=False)

    def _parse_with(self) -> Template:
        return self._parse_conditional(sets_dot=True)

    def _parse_conditional(self, *, sets_dot: bool) -> Template:
        variable_count = len(self._variables)
        test, _ = self._parse_pipeline()
        self._require("close", "}}")
        then, word = self._parse_body(), self._parse_closing_word()
        if word == "else" and self._take("word", "with" if sets_dot else "if"):
            otherwise: Template | None = self._parse_conditional(sets_dot=sets_dot)
        else:
            otherwise = self._parse_else(word)
        del self._variables[variable_count:]
        return compiled_nodes.build_conditional(test, then, otherwise, sets_dot=sets_dot)

    def _parse_else(self, word: str) -> Template | None:
        """Parse an optional {{else}} branch, and the {{end}}."""
        otherwise = None
        if word == "else":
            self._require("close", "}}")
            otherwise, word = self._parse_body(), self._parse_closing_word()
        if word != "end":
            raise self._build_error("{{end}} is missing")
        self._require("close", "}}")
        return otherwise

    def _parse_closing_word(self) -> str:
        if self._is_token("end"):
            raise self._build_error("{{end}} is missing")
        self._require("open", "{{")
        return self._next_token().value

    def _parse_range(self) -> Template:
        variable_count = len(self._variables)
        names, declares = self._parse_variables(max_count=2)
        collection = self._parse_commands(())
        if names and not declares:
            raise self._build_error("range needs := to declare its variables")
        self._require("close", "}}")
        self._variables += names
        self._range_depth += 1
        body = self._parse_body()
        self._range_depth -= 1
        otherwise = self._parse_else(self._parse_closing_word())
        del self._variables[variable_count:]
        return compiled_nodes.build_range(collection, names, body, otherwise)

    def _parse_range_exit(self) -> Template:
        word = self._tokens[self._position - 1].value
        if not self._range_depth:
            raise self._build_error(f"{word} outside of range")
        self._require("close", "}}")
        return compiled_nodes.build_range_exit(
            compiled_nodes.RangeBreak if word == "break" else compiled_nodes.RangeContinue
        )

    def _parse_template_name(self) -> str:
        token = self._next_token()
        if token.kind != "string":
            raise self._build_error("the quoted name of a template is missing")
        return unquote_string(token)

    def _parse_define(self) -> None:
        if self._depth > 1:
            raise self._build_error("define inside another action")
        name = self._parse_template_name()
        self._require("close", "}}")
        self._templates[name] = self._parse_separate_body()

    def _parse_separate_body(self) -> Template:
        """Parse a body with its own variables, and its {{end}}."""
        outer_variables, self._variables = self._variables, ["$"]
        outer_range_depth, self._range_depth = self._range_depth, 0
        body = self._parse_body()
        self._variables, self._range_depth = outer_variables, outer_range_depth
        if self._parse_closing_word() != "end":
            raise self._build_error("{{end}} is missing")
        self._require("close", "}}")
        return body

    def _parse_template_call(self) -> Template:
        name = self._parse_template_name()
        argument = None if self._is_token("close") else self._parse_pipeline()[0]
        self._require("close", "}}")
        return compiled_nodes.build_template_call(name, argument)

    def _parse_block(self) -> Template:
        name = self._parse_template_name()
        argument, _ = self._parse_pipeline()
        self._require("close", "}}")
        self._templates[name] = self._parse_separate_body()
        return compiled_nodes.build_template_call(name, argument)

    # -- values

    def _parse_variables(self, max_count: int = 1) -> tuple[list[str], bool]:
        """Return the variables before `:=` or `=`, and True if they are declared."""
        start, names = self._position, []
        while self._is_token("variable"):
            names.append(self._next_token().value)
            if not (len(names) < max_count and self._take("mark", ",")):
                break
        if names and self._is_token("mark", ":=", "="):
            return names, self._next_token().value == ":="
        self._position = start
        return [], False

    def _parse_pipeline(self) -> tuple[Value, bool]:
        names, declares = self._parse_variables()
        value = self._parse_commands(names, declares=declares)
        if declares:
            self._variables += names
        elif any(name not in self._variables for name in names):
            raise self._build_error(f"undefined variable {names[0]}")
        return value, bool(names)

    def _parse_commands(self, names: Sequence[str], *, declares: bool = False) -> Value:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        commands = [self._parse_command()]
        while self._take("mark", "|"):
            commands.append(self._parse_command())
        self._depth -= 1
        return compiled_nodes.build_pipeline(commands, names, declares=declares)

    def _parse_command(self) -> Command:
        first = self._token
        if first.kind == "word" and first.value not in ("true", "false", "nil"):
            self._next_token()
            if first.value not in compiled_nodes.FUNCTIONS and first.value not in LAZY_FUNCTIONS:
                raise TemplateError(f"function {first.value[:40]!r} not defined; leave it out", line=first.line)
            if self._is_chain():
                receiver: Value = _call_without_pipe(compiled_nodes.build_function_call(first.value, []))
                return self._parse_fields(receiver)
            return compiled_nodes.build_function_call(first.value, self._parse_arguments())
        value = self._parse_term()
        return self._parse_fields(value)

    def _parse_fields(self, value: Value) -> Command:
        last = ""
        while self._is_chain():
            if last:
                value = compiled_nodes.build_field_access(value, last)
            last = self._next_token().value[1:]
        arguments = self._parse_arguments()
        return (
            compiled_nodes.build_method_call(value, last, arguments)
            if last
            else compiled_nodes.build_operand(value, arguments)
        )

    def _is_chain(self) -> bool:
        return self._is_token("field") and not self._token.is_apart

    def _parse_arguments(self) -> list[Value]:
        arguments: list[Value] = []
        while not self._is_token("close") and not self._is_token("mark", "|", ")", ","):
            token = self._token
            if not token.is_apart and self._tokens[self._position - 1].kind != "mark":
                raise self._build_error("a space is missing")
            arguments.append(self._parse_argument())
        return arguments

    def _parse_argument(self) -> Value:
        token = self._token
        if token.kind == "word" and token.value not in ("true", "false", "nil"):
            self._next_token()
            if token.value not in compiled_nodes.FUNCTIONS and token.value not in LAZY_FUNCTIONS:
                raise TemplateError(f"function {token.value[:40]!r} not defined; leave it out", line=token.line)
            value = _call_without_pipe(compiled_nodes.build_function_call(token.value, []))
        else:
            value = self._parse_term()
        while self._is_chain():
            value = compiled_nodes.build_field_access(value, self._next_token().value[1:])
        return value

    def _parse_term(self) -> Value:
        token = self._next_token()
        match token.kind:
            case "field":
                name = token.value[1:]
                return lambda state, dot: compiled_nodes.get_field(dot, name, ())
            case "variable":
                if token.value not in self._variables:
                    self._position -= 1
                    raise self._build_error(f"undefined variable {token.value}")
                return lambda state, dot: state.get_variable(token.value)
            case "string" | "char" | "number" | "word":
                constant = _read_constant(token)
                return lambda state, dot: constant
        if token.kind == "mark" and token.value == ".":
            return lambda state, dot: dot
        if token.kind == "mark" and token.value == "(":
            value, _ = self._parse_pipeline()
            self._require("mark", ")")
            return value
        self._position -= token.kind != "end"
        raise self._build_error()


def _call_without_pipe(command: Command) -> Value:
    return lambda state, dot: command(state, dot, ())


def _read_constant(token: TemplateToken) -> Any:
    if token.kind == "word":
        return {"true": True, "false": False, "nil": None}[token.value]
    if token.kind == "string":
        return unquote_string(token)
    if token.kind == "char":
        return ord(unquote_string(token)[:1] or "\0")
    text = token.value.replace("_", "")
    try:
        value = int(text, 0) if re.fullmatch(r"[+-]?(0|[1-9]\d*|0[xXbBoO]\w+)", text) else float(text)
    except ValueError as error:
        raise TemplateError(f"invalid number {token.value[:30]!r}; correct it", line=token.line) from error
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise TemplateError(f"number {token.value[:30]!r} is too large; use a smaller number", line=token.line)
    return value


def unquote_string(token: TemplateToken) -> str:
    inner = token.value[1:-1]
    if token.value[0] == "`":
        return inner
    if "\\" not in inner:
        return inner
    try:
        return _GO_ESCAPE.sub(_unescape, inner)
    except ValueError as error:
        quoted_text = json.dumps(inner[:30])
        raise TemplateError(f"{quoted_text} has an invalid escape; correct it", line=token.line) from error


def _unescape(match: re.Match[str]) -> str:
    word = match[1]
    if word[0] in "xuU" and len(word) > 1:
        number = int(word[1:], 16)
        if 0xD800 <= number < 0xE000:
            raise ValueError
        return chr(number)
    if len(word) == 3:
        return chr(int(word, 8))
    return _SIMPLE_ESCAPES.get(word, word)
