"""Argo CD's gRPC services: methods with their messages and REST routes, loaded from a compact table on first use.

In: the path of a method. Out: Method, or None. Never: knows what a method does.

`tools/make_grpc_services.py` makes the table from the .proto files of Argo CD v3.5.6 and describes its format.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from argosy.kube.schema.builtin_go_struct_fields import BUILTIN_TYPES, Type, TypeTable

_DATA: Final = Path(__file__).parent / "data/services.json.gz"
_PATH_PARAMETER: Final = re.compile(r"\{([\w.]+)(=\*\*)?\}")


@dataclass(frozen=True)
class RestBinding:
    """The REST route of a method. `body` is the field of the message that is the body, * for all, or empty."""

    http_method: str
    path: str  # /api/v1/applications/{name}, or {subresource=**} for a parameter with slashes
    body: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(match[1] for match in _PATH_PARAMETER.finditer(self.path))

    def build_path(self, values: dict[str, str]) -> str:
        """`values`: percent-encoded parameters by name."""
        return _PATH_PARAMETER.sub(lambda match: values[match[1]], self.path)

    def is_wildcard(self, name: str) -> bool:
        return f"{{{name}=**}}" in self.path


@dataclass(frozen=True)
class Method:
    path: str  # /application.ApplicationService/List
    request: Type
    response: Type
    is_client_stream: bool
    is_server_stream: bool
    bindings: tuple[RestBinding, ...]  # the first whose parameters are all set is used

    @property
    def service(self) -> str:
        return self.path.split("/")[1]


@cache
def load_table() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(zlib.decompress(_DATA.read_bytes(), wbits=31))  # 31: with gzip's header
    return content


MESSAGE_TYPES: Final = TypeTable(lambda: load_table()["types"], BUILTIN_TYPES)


@cache
def list_methods() -> dict[str, Method]:
    return {path: _build_method(path, text) for path, text in load_table()["methods"].items()}


def find_method(path: str) -> Method | None:
    return list_methods().get(path)


@cache
def list_services() -> frozenset[str]:
    return frozenset(method.service for method in list_methods().values())


def _build_method(path: str, text: str) -> Method:
    head, *routes = text.split("\n")
    request, response, streams = head.split(" ")
    bindings = []
    for route in routes:
        http_method, rest_path, body = route.split(" ")
        bindings.append(RestBinding(http_method, rest_path, body.removeprefix("-")))
    request_type, response_type = MESSAGE_TYPES.get_type(request), MESSAGE_TYPES.get_type(response)
    return Method(path, request_type, response_type, "c" in streams, "s" in streams, tuple(bindings))
