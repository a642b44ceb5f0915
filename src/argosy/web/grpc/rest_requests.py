"""Turns a gRPC call into the REST request of its google.api.http annotation.

In: a method, its messages as JSON. Out: RestRequest. Never: decides whether the caller may do that; more parameters
than the limits allow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson

from argosy.web.grpc.call_status import CallError, StatusCode
from argosy.web.grpc.service_table import Method, RestBinding
from argosy.web.query_text import unescape_query_text

MAX_PARAMETERS: Final = 10_000  # values outside the path and the body of the REST request
MAX_PARAMETER_BYTES: Final = 3 << 20  # of their names and values
_CLUSTER_SERVICE: Final = "cluster.ClusterService"
_LIST_CLUSTERS: Final = "/cluster.ClusterService/List"
_SERVER_SIDE_DIFF: Final = "/application.ApplicationService/ServerSideDiff"
_OBJECT_NAME_FIELDS: Final = ("group", "kind", "namespace", "name")


@dataclass(frozen=True)
class RestRequest:
    http_method: str
    raw_path: str  # percent-encoded
    parameters: tuple[tuple[str, str], ...]  # never part of a URL, which could not hold them
    body: bytes


def build_rest_request(method: Method, message: dict[str, Any]) -> RestRequest:
    if method.service == _CLUSTER_SERVICE and method.path != _LIST_CLUSTERS:
        message = _set_cluster_id(message)
    elif method.path == _SERVER_SIDE_DIFF:
        message = _drop_live_states(message)
    binding, values = _choose_binding(method, message)
    path = binding.build_path(
        {name: quote(value, safe="/" if binding.is_wildcard(name) else "") for name, value in values.items()}
    )
    if binding.body == "*":
        return RestRequest(binding.http_method, path, (), orjson.dumps(message))
    body = orjson.dumps(message.get(binding.body)) if binding.body else b""
    fields = {name: value for name, value in message.items() if name != binding.body}
    return RestRequest(binding.http_method, path, _list_parameters(fields, values.keys()), body)


def build_stream_request(method: Method) -> RestRequest:
    """Build the request of a client stream, whose body follows: a JSON document per line."""
    binding = method.bindings[0]
    return RestRequest(binding.http_method, binding.build_path({}), (), b"")


def _list_parameters(message: dict[str, Any], path_parameters: Collection[str]) -> tuple[tuple[str, str], ...]:
    parameters: list[tuple[str, str]] = []
    size = 0
    for name, value in _flatten("", message):
        if _is_below(name, path_parameters):
            continue
        size += len(name) + len(value)
        if len(parameters) >= MAX_PARAMETERS or size > MAX_PARAMETER_BYTES:
            limit = f"{MAX_PARAMETERS} parameters, or {MAX_PARAMETER_BYTES} bytes of them"
            raise CallError(StatusCode.RESOURCE_EXHAUSTED, f"the message has more than {limit}")
        parameters.append((name, value))
    return tuple(parameters)


def _choose_binding(method: Method, message: dict[str, Any]) -> tuple[RestBinding, dict[str, str]]:
    """Choose the first route whose parameters all have a value."""
    missing = ""
    for binding in method.bindings:
        values = {name: _get_text(message, name) for name in binding.parameter_names}
        empty = [name for name, value in values.items() if not value and not binding.is_wildcard(name)]
        if not empty:
            return binding, values
        missing = missing or empty[0]
    raise CallError(StatusCode.INVALID_ARGUMENT, f"{missing} is required")


def _get_text(message: dict[str, Any], path: str) -> str:
    value: Any = message
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _set_cluster_id(message: dict[str, Any]) -> dict[str, Any]:
    """argo: the CLI names a cluster by id, server or name; a path needs the id. An id is escaped once."""
    if _get_text(message, "id.value"):
        return {**message, "id": {**message["id"], "value": unescape_query_text(message["id"]["value"], "id.value")}}
    named = message.get("cluster") or message
    for kind in ("server", "name"):
        if named.get(kind):
            return {**message, "id": {"type": kind, "value": named[kind]}}
    return message


def _drop_live_states(message: dict[str, Any]) -> dict[str, Any]:
    """The server reads live objects itself; their states would make the parameters too long."""
    resources = message.get("liveResources") or []
    names = [{name: resource.get(name, "") for name in _OBJECT_NAME_FIELDS} for resource in resources]
    return {**message, "liveResources": names}


def _flatten(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield query parameters; empty texts are left out, because REST has no difference between empty and absent."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flatten(f"{prefix}.{name}" if prefix else name, item)
    elif isinstance(value, list):
        for item in value:
            yield prefix, orjson.dumps(item).decode() if isinstance(item, dict | list) else _format(item)
    elif value is not None and value != "":
        yield prefix, _format(value)


def _format(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_below(name: str, fields: Collection[str]) -> bool:
    return any(name == field or name.startswith(f"{field}.") for field in fields)
