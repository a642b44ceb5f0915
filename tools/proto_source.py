"""Reads .proto files. In: the text of a file. Out: its messages with their fields, and its services with HTTP bindings.

Never: understands all of protobuf. It reads what Argo CD's files hold: proto2 and proto3, maps, oneofs, and the
annotation google.api.http.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.]+|[{}()\[\]<>=;,:]')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
HTTP_METHODS = ("get", "put", "post", "delete", "patch")


@dataclass(frozen=True)
class ProtoField:
    """`type` is as written; for a map, that of its values. `label` is required, optional, repeated, map or empty."""

    name: str
    type: str
    number: int
    label: str
    options: dict[str, str]
    is_oneof: bool = False


@dataclass(frozen=True)
class ProtoMethod:
    """`bindings` are (HTTP method, path, body), the best first."""

    name: str
    request: str
    response: str
    is_client_stream: bool
    is_server_stream: bool
    bindings: tuple[tuple[str, str, str], ...]


@dataclass
class ProtoFile:
    package: str = ""
    is_proto3: bool = False
    messages: dict[str, list[ProtoField]] = field(default_factory=dict)
    services: dict[str, list[ProtoMethod]] = field(default_factory=dict)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(_COMMENT.sub("", text))
        self._position = 0

    def __bool__(self) -> bool:
        return self._position < len(self._tokens)

    def peek(self) -> str:
        if not self:
            raise SystemExit("proto_source: the file ends too early")
        return str(self._tokens[self._position])

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if expected and token != expected:
            near = " ".join(self._tokens[max(0, self._position - 8) : self._position + 3])
            raise SystemExit(f"proto_source: expected {expected!r}, found {token!r} near: {near}")
        self._position += 1
        return token

    def skip(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self._position += 1
        return True

    def take_until(self, end: str) -> list[str]:
        tokens = []
        while not self.skip(end):
            tokens.append(self.take())
        return tokens


def read_proto(file: Path) -> ProtoFile:
    tokens, result = _Tokens(file.read_text()), ProtoFile()
    while tokens:
        match tokens.take():
            case "syntax":
                tokens.take("=")
                result.is_proto3 = tokens.take() == '"proto3"'
                tokens.take(";")
            case "package":
                result.package = tokens.take()
                tokens.take(";")
            case "import" | "option":
                tokens.take_until(";")
            case "message":
                name = tokens.take()
                tokens.take("{")
                result.messages[name] = list(_read_fields(tokens, is_oneof=False))
            case "service":
                name = tokens.take()
                tokens.take("{")
                result.services[name] = list(_read_methods(tokens))
            case ";":
                pass
            case other:
                raise SystemExit(f"proto_source: {file}: unexpected {other!r}")
    return result


def _read_fields(tokens: _Tokens, *, is_oneof: bool) -> Iterator[ProtoField]:
    while not tokens.skip("}"):
        word = tokens.take()
        if word == ";":
            continue
        if word in ("option", "reserved"):
            tokens.take_until(";")
        elif word == "oneof":
            tokens.take()
            tokens.take("{")
            yield from _read_fields(tokens, is_oneof=True)
        else:
            yield _read_field(tokens, word, is_oneof)


def _read_field(tokens: _Tokens, word: str, is_oneof: bool) -> ProtoField:
    label = word if word in ("required", "optional", "repeated", "map") else ""
    if label == "map":
        tokens.take("<")
        tokens.take("string")
        tokens.take(",")
        type_ = tokens.take()
        tokens.take(">")
    else:
        type_ = tokens.take() if label else word
    name = tokens.take()
    tokens.take("=")
    number = int(tokens.take())
    options = {}
    if tokens.skip("["):
        words = [word for word in tokens.take_until("]") if word not in "(),"]
        options = {words[index]: words[index + 2] for index in range(0, len(words), 3)}
    tokens.take(";")
    return ProtoField(name, type_, number, label, options, is_oneof)


def _read_methods(tokens: _Tokens) -> Iterator[ProtoMethod]:
    while not tokens.skip("}"):
        if tokens.skip(";"):
            continue
        tokens.take("rpc")
        name = tokens.take()
        request, is_client_stream = _read_method_type(tokens)
        tokens.take("returns")
        response, is_server_stream = _read_method_type(tokens)
        bindings: list[tuple[str, str, str]] = []
        if tokens.skip("{"):
            while not tokens.skip("}"):
                if not tokens.skip(";"):
                    bindings += _read_option(tokens)
        else:
            tokens.take(";")
        yield ProtoMethod(name, request, response, is_client_stream, is_server_stream, tuple(bindings))


def _read_method_type(tokens: _Tokens) -> tuple[str, bool]:
    tokens.take("(")
    is_stream = tokens.skip("stream")
    name = tokens.take()
    tokens.take(")")
    return name, is_stream


def _read_option(tokens: _Tokens) -> list[tuple[str, str, str]]:
    tokens.take("option")
    if not tokens.skip("("):
        tokens.take_until(";")
        return []
    if tokens.take() != "google.api.http":
        tokens.take_until(";")
        return []
    tokens.take(")")
    verb = tokens.take()
    if verb.startswith("."):
        tokens.take("=")
        path = tokens.take().strip('"')
        tokens.take(";")
        return [(verb[1:].upper(), path, "")]
    tokens.take("{")
    rules = list(_read_http_rule(tokens))
    tokens.skip(";")
    return rules


def _read_http_rule(tokens: _Tokens) -> Iterator[tuple[str, str, str]]:
    own: dict[str, Any] = {"body": ""}
    additional: list[tuple[str, str, str]] = []
    while not tokens.skip("}"):
        word = tokens.take()
        if word in (";", ","):
            continue
        if word == "additional_bindings":
            tokens.take("{")
            additional += _read_http_rule(tokens)
            continue
        tokens.take(":")
        value = tokens.take().strip('"')
        if word in HTTP_METHODS:
            own |= {"method": word.upper(), "path": value}
        else:
            own[word] = value
    yield own["method"], own["path"], own["body"]
    yield from additional
