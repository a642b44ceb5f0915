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

_SCHEMA_FILE = "values.schema.json"


def main() -> None:
    request = json.load(sys.stdin)
    try:
        answer = _render(request)
    except HelmError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


def _render(request: dict[str, Any]) -> dict[str, Any]:
    chart = _load_chart(request)
    values = json.dumps(_build_values(request))
    _check_with_dry_run(request, chart, values)
    options = {name: request[name] for name in ("name", "namespace", "kube_version", "api_versions") if request[name]}
    templates = json.loads(helm.call_string("helm_render", chart, values, json.dumps(options)))
    # Rendering drops disabled subcharts, and their CRDs with them.
    crds = json.loads(helm.call_string("helm_chart_crds", chart)) if request["include_crds"] else []
    return {"templates": templates, "crds": [[crd["filename"], crd["data"]] for crd in crds or []]}


def _check_with_dry_run(request: dict[str, Any], chart: Any, values: str) -> None:
    """Check a chart with kubeVersion by a dry-run install, which rejects it where rendering does not.

    It renders a second time, so only charts that need it are checked.
    """
    if not json.loads(helm.call_string("helm_chart_metadata", chart)).get("kubeVersion"):
        return
    keys = ("namespace", "kube_version", "api_versions", "skip_schema_validation")
    options = {"dry_run": "client", **{name: request[name] for name in keys if request[name]}}
    config = helm.call_handle("helm_config_new", json.dumps({"storage_driver": "memory"}))
    no_handle = helm.HANDLE(0)
    second_chart = _load_chart(request)
    helm.call_string(
        "helm_install", config, no_handle, second_chart, None, request["name"], values, json.dumps(options)
    )


def _load_chart(request: dict[str, Any]) -> Any:
    if not request["skip_schema_validation"]:
        return helm.call_handle("helm_chart_load", request["chart"])
    data = _build_archive_without_schemas(request["chart"])
    return helm.call_handle("helm_chart_load_archive", data, len(data))


def _build_archive_without_schemas(folder: str) -> Any:
    """Pack a chart without its schemas, because the library cannot skip schema validation."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for directory, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name != _SCHEMA_FILE:
                    file = os.path.join(directory, name)
                    archive.add(file, os.path.join("chart", os.path.relpath(file, folder)))
    data = buffer.getvalue()
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data)


def _build_values(request: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for where, text in request["values"]:
        try:
            _merge(values, json.loads(helm.call_string("helm_values_from_yaml", text)) or {})
        except HelmError as error:
            raise type(error)(f"failed to parse {where}: {error}") from error
    for kind in ("set", "set-string", "set-file"):
        for name, value in (setting[1:] for setting in request["settings"] if setting[0] == kind):
            try:
                _set_value(values, kind, name, value)
            except (HelmError, LookupError, TypeError, ValueError) as error:
                raise HelmError(f"failed parsing --{kind} data: {name}: {error}") from error
    return values


def _merge(target: dict[str, Any], overrides: dict[str, Any]) -> None:
    for key, value in overrides.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


def _set_value(values: dict[str, Any], kind: str, name: str, value: str) -> None:
    if not name or name.startswith("["):
        return  # Helm ignores it
    if kind == "set-file":
        parsed = json.loads(helm.call_string("helm_strvals_parse_string", f"{name}=-"))
    else:
        function = "helm_strvals_parse" if kind == "set" else "helm_strvals_parse_string"
        parsed = json.loads(helm.call_string(function, f"{name}={value}"))
    _set_at_steps(values, parsed, _split_name(name), value if kind == "set-file" else None)


def _split_name(name: str) -> list[str | int]:
    """Split a name such as `a.b[0].c` into keys and indexes; a backslash escapes a character."""
    steps: list[str | int] = []
    word, i = "", 0
    while i < len(name):
        character = name[i]
        if character == "\\" and i + 1 < len(name):
            word, i = word + name[i + 1], i + 1
        elif character == "." or character == "[":
            if word:
                steps.append(word)
            word = ""
            if character == "[" and "]" in name[i:]:
                end = name.index("]", i)
                steps.append(int(name[i + 1 : end]))
                i = end
        else:
            word += character
        i += 1
    return [*steps, word] if word else steps


def _set_at_steps(target: Any, parsed: Any, steps: list[str | int], text: str | None) -> None:
    """Set the parsed value at the given steps; an index changes one list element, it does not replace the list."""
    for step, next_step in pairwise(steps):
        parsed = parsed[step]
        target = _enter_step(target, step, [] if isinstance(next_step, int) else {})
    last = steps[-1]
    if isinstance(last, int):
        target.extend([None] * (last + 1 - len(target)))
    target[last] = parsed[last] if text is None else text


def _enter_step(target: Any, step: str | int, empty: Any) -> Any:
    if isinstance(step, int):
        target.extend([None] * (step + 1 - len(target)))
    child = target[step] if isinstance(step, int) else target.get(step)
    if child is None:
        target[step] = child = empty
    elif not isinstance(child, type(empty)):
        raise TypeError(f"{step} is already set and is not a {'list' if empty == [] else 'map'}")
    return child


if __name__ == "__main__":
    main()
