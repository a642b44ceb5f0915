"""Reads Go composite literals, as generated OpenAPI definitions hold them, into plain data.

In: the text of a generated file. Out: one dict for each definition. Never: evaluates code; a call is kept as its text.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|`[^`]*`|[-\w.*/&]+|\[\]|[{}()\[\]:,])')
_ENTRY = re.compile(r'^\t\t"([^"]+)":\s+(schema_\w+)\(ref\),$', re.M)
_FUNCTION = re.compile(r"^func (schema_\w+)\(ref [^)]*\) common\.OpenAPIDefinition \{\n(.*?)^\}", re.M | re.S)
_SCHEMA = "Schema: spec.Schema"


def read_definitions(text: str) -> dict[str, dict[str, Any]]:
    """Full Go type name -> its spec.Schema literal."""
    bodies = dict(_FUNCTION.findall(text.replace("]interface{}{", "]any{")))
    definitions = {}
    for go_name, function in _ENTRY.findall(text):
        body = bodies.get(function, "")
        start = body.find(_SCHEMA)
        if start >= 0:
            definitions[go_name] = _Reader(body, start + len("Schema: ")).value()
    return definitions


class _Reader:
    def __init__(self, text: str, position: int) -> None:
        self.tokens = _TOKEN.finditer(text, position)
        self.token = ""
        self.advance()

    def advance(self) -> str:
        before, match = self.token, next(self.tokens, None)
        self.token = match[1] if match else ""
        return before

    def value(self) -> Any:
        token = self.advance()
        if token.startswith('"'):
            return json.loads(token)
        if token.startswith("`"):
            return token[1:-1]
        # The rest of a type: []string, map[string]spec.Schema
        while self.token not in {"{", "(", ",", "}", ")", ":", ""}:
            token += self.advance()
        if self.token == "{":
            value = self.composite()
            # A method call on a literal, like JSON{}.OpenAPISchemaType().
            return self.call(token) if self.token.startswith(".") else value
        if self.token == "(":
            return self.call(token)
        return {"true": True, "false": False, "nil": None}.get(token, _number(token))

    def call(self, name: str) -> Any:
        while self.token not in {"(", ""}:
            name += self.advance()
        self.advance()
        inside = []
        depth = 1
        while depth:
            token = self.advance()
            depth += {"(": 1, ")": -1}.get(token, 0)
            inside.append(token)
        arguments = "".join(inside[:-1])
        return {"ref": json.loads(arguments)} if name == "ref" else {"call": f"{name}({arguments})"}

    def composite(self) -> Any:
        self.advance()
        keyed: dict[str, Any] = {}
        listed: list[Any] = []
        while self.token != "}":
            if self.token == "{":
                listed.append(self.composite())
            else:
                first = self.value()
                if self.token == ":":
                    self.advance()
                    keyed[first] = self.composite() if self.token == "{" else self.value()
                else:
                    listed.append(first)
            if self.token == ",":
                self.advance()
        self.advance()
        return listed or keyed


def _number(token: str) -> Any:
    try:
        return int(token)
    except ValueError:
        try:
            return float(token)
        except ValueError:
            return token
