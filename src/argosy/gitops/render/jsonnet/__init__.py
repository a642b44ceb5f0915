"""Evaluates the Jsonnet files of a directory source.

In: a tree, the files to evaluate, and their variables. Out: the manifests of each file.
Never: evaluates in this process; gives a file access to more than the files of its tree.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from argosy.errors import LimitError, ManifestError, RenderError
from argosy.gitops.application import JsonnetOptions, ToolVariable
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.jsonnet.imports import ImportClosure
from argosy.gitops.render.output_control_character_filter import last_lines, strip_control_characters
from argosy.isolation.errors import LimitExceeded
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import build_script_command, list_python_paths, run
from argosy.kube.objects import Manifest, read_json

JSONNET_LIMITS = ProgramLimits(wall=20, cpu=20, memory=512 << 20, output=64 << 20, scratch=1 << 20)
_ENGINE_SCRIPT = Path(__file__).with_name("engine.py")
_MAX_MESSAGE_CHARACTERS = 2000
_FILE_LOCATION = re.compile(r"^\t?(?P<file>[^\n\t]+?):(?:(?P<line>\d+)|\((?P<first>\d+)):\d", re.MULTILINE)


def evaluate_files(
    tree: FileTree,
    folder: str,
    files: Sequence[str],
    options: JsonnetOptions,
    environment: Mapping[str, str],
    *,
    limits: ProgramLimits = JSONNET_LIMITS,
) -> dict[str, list[Manifest]]:
    """Return the manifests of each file; `files` are paths in the tree, `folder` is the source's folder."""
    if not files:
        return {}
    if find_spec("_gojsonnet") is None:
        raise RenderError("Jsonnet support is not installed: run pip install 'argosy[jsonnet]'", where=files[0])
    external = _substitute_variables(options.external, environment)
    top_level = _substitute_variables(options.top_level, environment)
    closure = ImportClosure(tree, folder, options.libs)
    for path in files:
        closure.add_file(path)
    for code in (*external["codes"].values(), *top_level["codes"].values()):
        closure.add_code(code)
    request = {
        "files": list(files),
        "contents": {path: b64encode(data).decode() for path, data in closure.contents.items()},
        "imports": [[*import_key, path] for import_key, path in closure.imports.items()],
        "ext_vars": external["texts"],
        "ext_codes": external["codes"],
        "tla_vars": top_level["texts"],
        "tla_codes": top_level["codes"],
    }
    answers = _run_engine(request, files[0] if len(files) == 1 else folder or ".", limits)
    return {path: _read_manifests(path, answers[path], closure) for path in files}


def _substitute_variables(
    variables: Sequence[ToolVariable], environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    # argo: build variables are substituted in values and in code.
    return {
        "texts": {
            variable.name: substitute(variable.value, environment) for variable in variables if not variable.is_code
        },
        "codes": {variable.name: substitute(variable.value, environment) for variable in variables if variable.is_code},
    }


def _run_engine(request: Mapping[str, Any], where: str, limits: ProgramLimits) -> dict[str, dict[str, str]]:
    try:
        result = run(
            build_script_command(_ENGINE_SCRIPT),
            folder=_ENGINE_SCRIPT.parent,
            readable=list_python_paths(),
            stdin=json.dumps(request).encode(),
            limits=limits,
        )
    except LimitExceeded as problem:
        raise LimitExceeded(problem.limit, f"evaluating Jsonnet {problem.message}; simplify it", where=where) from None
    if result.code != 0:
        if b"goroutine stack exceeds" in result.stderr or b"stack overflow" in result.stderr:
            raise LimitError("the Jsonnet code is nested too deeply; flatten it", where=where)
        last_line = last_lines(result.stderr, 1) or f"the engine failed with code {result.code}"
        raise RenderError(f"cannot evaluate Jsonnet: {last_line}", where=where)
    answers: dict[str, dict[str, str]] = json.loads(result.stdout)
    return answers


def _read_manifests(path: str, answer: Mapping[str, str], closure: ImportClosure) -> list[Manifest]:
    if "error" in answer:
        raise _build_evaluation_error(path, answer["error"], closure)
    try:
        value = read_json(answer["json"].encode("utf-8", "surrogatepass"), where=path).value
    except ManifestError as problem:
        raise RenderError(f"does not evaluate to a manifest: {problem.message}", where=path) from None
    manifests = value if isinstance(value, list) else [value]  # argo: one manifest or an array of manifests
    for manifest in manifests:
        if not isinstance(manifest, dict):
            value_text = "a list" if isinstance(manifest, list) else json.dumps(manifest)[:40]
            raise RenderError(f"evaluates to {value_text}, not to a manifest; return an object or an array", where=path)
    return manifests


def _build_evaluation_error(path: str, engine_message: str, closure: ImportClosure) -> RenderError:
    """Convert the engine's message to an error at the first location that it names."""
    engine_message = strip_control_characters(engine_message)
    text = engine_message.removeprefix("RUNTIME ERROR: ").partition("\n\t")[0]
    for prefix, field in (("Missing argument: ", "tlas"), ("Undefined external variable: ", "extVars")):
        if text.startswith(prefix):
            text = f"{text.strip()}; add it to directory.jsonnet.{field}"
    for location in _FILE_LOCATION.finditer(engine_message):
        if location["file"] in closure.contents:
            prefix = location.group() if text.startswith(location.group()) else ""
            if prefix:
                text = text[len(prefix) :].partition(" ")[2].partition("\n")[0]
            line = int(location["line"] or location["first"])
            return RenderError(text.strip()[:_MAX_MESSAGE_CHARACTERS], where=location["file"], line=line)
    return RenderError(text.strip()[:_MAX_MESSAGE_CHARACTERS], where=path)
