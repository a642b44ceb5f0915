"""Runs Helm's library in its own confined process.

In: a request as JSON on stdin. Out: the rendered templates or Helm's error, as JSON on stdout.
Never: runs in the caller's process: the library brings Go's runtime, and charts may loop forever.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import sys
import tarfile
from itertools import pairwise
from typing import Any

from helm_python import _native as helm
from helm_python.errors import HelmError

_SCHEMA = "values.schema.json"


def main() -> None:
    request = json.load(sys.stdin)
    try:
        answer = _rendered(request)
    except HelmError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


def _rendered(request: dict[str, Any]) -> dict[str, Any]:
    chart = _loaded(request)
    values = json.dumps(_values(request))
    _check(request, chart, values)
    options = {name: request[name] for name in ("name", "namespace", "kube_version", "api_versions") if request[name]}
    templates = json.loads(helm.call_string("helm_render", chart, values, json.dumps(options)))
    # Rendering drops disabled subcharts, and their CRDs with them.
    crds = json.loads(helm.call_string("helm_chart_crds", chart)) if request["include_crds"] else []
    return {"templates": templates, "crds": [[each["filename"], each["data"]] for each in crds or []]}


def _check(request: dict[str, Any], chart: Any, values: str) -> None:
    """Check a chart with kubeVersion by a dry-run install, which rejects it where rendering does not.

    It renders a second time, so only charts that need it are checked.
    """
    if not json.loads(helm.call_string("helm_chart_metadata", chart)).get("kubeVersion"):
        return
    keys = ("namespace", "kube_version", "api_versions", "skip_schema_validation")
    options = {"dry_run": "client", **{name: request[name] for name in keys if request[name]}}
    config = helm.call_handle("helm_config_new", json.dumps({"storage_driver": "memory"}))
    none = helm.HANDLE(0)
    again = _loaded(request)
    helm.call_string("helm_install", config, none, again, None, request["name"], values, json.dumps(options))


def _loaded(request: dict[str, Any]) -> Any:
    if not request["skip_schema_validation"]:
        return helm.call_handle("helm_chart_load", request["chart"])
    data = _archive_without_schemas(request["chart"])
    return helm.call_handle("helm_chart_load_archive", data, len(data))


def _archive_without_schemas(folder: str) -> Any:
    """Pack a chart without its schemas, because the library cannot skip schema validation."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for at, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name != _SCHEMA:
                    file = os.path.join(at, name)
                    archive.add(file, os.path.join("chart", os.path.relpath(file, folder)))
    data = packed.getvalue()
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data)


def _values(request: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for where, text in request["values"]:
        try:
            _merge(values, json.loads(helm.call_string("helm_values_from_yaml", text)) or {})
        except HelmError as error:
            raise type(error)(f"failed to parse {where}: {error}") from error
    for kind in ("set", "set-string", "set-file"):
        for name, value in (each[1:] for each in request["settings"] if each[0] == kind):
            try:
                _set(values, kind, name, value)
            except (HelmError, LookupError, TypeError, ValueError) as error:
                raise HelmError(f"failed parsing --{kind} data: {name}: {error}") from error
    return values


def _merge(into: dict[str, Any], given: dict[str, Any]) -> None:
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _set(values: dict[str, Any], kind: str, name: str, value: str) -> None:
    if not name or name.startswith("["):
        return  # Helm ignores it
    if kind == "set-file":
        parsed = json.loads(helm.call_string("helm_strvals_parse_string", f"{name}=-"))
    else:
        function = "helm_strvals_parse" if kind == "set" else "helm_strvals_parse_string"
        parsed = json.loads(helm.call_string(function, f"{name}={value}"))
    _overlay(values, parsed, _steps(name), value if kind == "set-file" else None)


def _steps(name: str) -> list[str | int]:
    """Split a name such as `a.b[0].c` into keys and indexes; a backslash escapes a character."""
    steps: list[str | int] = []
    word, at = "", 0
    while at < len(name):
        sign = name[at]
        if sign == "\\" and at + 1 < len(name):
            word, at = word + name[at + 1], at + 1
        elif sign == "." or sign == "[":
            if word:
                steps.append(word)
            word = ""
            if sign == "[" and "]" in name[at:]:
                end = name.index("]", at)
                steps.append(int(name[at + 1 : end]))
                at = end
        else:
            word += sign
        at += 1
    return [*steps, word] if word else steps


def _overlay(into: Any, parsed: Any, steps: list[str | int], text: str | None) -> None:
    """Set the parsed value at the given steps; an index changes one list element, it does not replace the list."""
    for step, after in pairwise(steps):
        parsed = parsed[step]
        into = _entered(into, step, [] if isinstance(after, int) else {})
    last = steps[-1]
    if isinstance(last, int):
        into.extend([None] * (last + 1 - len(into)))
    into[last] = parsed[last] if text is None else text


def _entered(into: Any, step: str | int, empty: Any) -> Any:
    if isinstance(step, int):
        into.extend([None] * (step + 1 - len(into)))
    held = into[step] if isinstance(step, int) else into.get(step)
    if held is None:
        into[step] = held = empty
    elif not isinstance(held, type(empty)):
        raise TypeError(f"{step} is already set and is not a {'list' if empty == [] else 'map'}")
    return held


if __name__ == "__main__":
    main()
