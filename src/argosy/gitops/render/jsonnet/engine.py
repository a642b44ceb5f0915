"""Evaluates Jsonnet in a confined process that has access to its input only.

In: files, imports and variables as JSON. Out: JSON or an error message for each file. Never: opens a file.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from typing import Any

import _gojsonnet


class Importer:
    """Resolves imports from the request; `missing` is the last name that was not found."""

    def __init__(self, contents: dict[str, bytes], imports: dict[tuple[str, str], str]) -> None:
        self._contents, self._imports = contents, imports
        self.missing = ""

    def __call__(self, folder: str, name: str) -> tuple[str, bytes]:
        path = self._imports.get((folder, name))
        if path is None:
            self.missing = name
            raise RuntimeError("missing")
        return path, self._contents[path]


def evaluate_file(request: dict[str, Any], path: str, contents: dict[str, bytes]) -> dict[str, str]:
    imports = {(folder, name): target for folder, name, target in request["imports"]}
    importer = Importer(contents, imports)
    variables = {name: request[name] for name in ("ext_vars", "ext_codes", "tla_vars", "tla_codes")}
    try:
        text = contents[path].decode()
        return {"json": _gojsonnet.evaluate_snippet(path, text, import_callback=importer, **variables)}
    except UnicodeDecodeError as problem:
        if problem.object == contents[path]:
            return {"error": f"is not UTF-8 at byte {problem.start}"}
        return {"error": _format_missing_import(importer, "")}
    except RuntimeError as problem:
        message = str(problem)
        return {"error": _format_missing_import(importer, message) if "importer error" in message[:64] else message}


def _format_missing_import(importer: Importer, engine_message: str) -> str:
    # The engine appends bytes of its own to the importer's message.
    trace = engine_message.partition("\n\t")[2]
    return f"RUNTIME ERROR: imports {importer.missing!r}, which is not in the repository; correct it\n\t{trace}"


def main() -> None:
    request = json.load(sys.stdin.buffer)
    contents = {path: b64decode(data) for path, data in request["contents"].items()}
    json.dump({path: evaluate_file(request, path, contents) for path in request["files"]}, sys.stdout)


if __name__ == "__main__":
    main()
