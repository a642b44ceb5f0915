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
from argosy.gitops.application import JsonnetOptions, Variable
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.jsonnet.imports import Closure
from argosy.gitops.render.program_output import cleaned, last_lines
from argosy.isolation.errors import OverLimit
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.program import python_places, python_script, run
from argosy.kube.objects import Manifest, load_json

LIMITS = ProgramLimits(wall=20, cpu=20, memory=512 << 20, output=64 << 20, scratch=1 << 20)
_ENGINE = Path(__file__).with_name("engine.py")
_MOST_TEXT = 2000
_PLACE = re.compile(r"^\t?(?P<file>[^\n\t]+?):(?:(?P<line>\d+)|\((?P<first>\d+)):\d", re.MULTILINE)


def evaluate(
    tree: Tree,
    folder: str,
    files: Sequence[str],
    options: JsonnetOptions,
    environment: Mapping[str, str],
    *,
    limits: ProgramLimits = LIMITS,
) -> dict[str, list[Manifest]]:
    """Return the manifests of each file; `files` are paths in the tree, `folder` is the source's folder."""
    if not files:
        return {}
    if find_spec("_gojsonnet") is None:
        raise RenderError("Jsonnet support is not installed: run pip install 'argosy[jsonnet]'", where=files[0])
    external = _told(options.external, environment)
    top_level = _told(options.top_level, environment)
    closure = Closure(tree, folder, options.libs)
    for path in files:
        closure.add_file(path)
    for code in (*external["codes"].values(), *top_level["codes"].values()):
        closure.add_code(code)
    order = {
        "files": list(files),
        "contents": {path: b64encode(data).decode() for path, data in closure.contents.items()},
        "imports": [[*question, path] for question, path in closure.imports.items()],
        "ext_vars": external["texts"],
        "ext_codes": external["codes"],
        "tla_vars": top_level["texts"],
        "tla_codes": top_level["codes"],
    }
    answers = _run(order, files[0] if len(files) == 1 else folder or ".", limits)
    return {path: _manifests(path, answers[path], closure) for path in files}


def _told(variables: Sequence[Variable], environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    # argo: build variables are substituted in values and in code.
    return {
        "texts": {each.name: substitute(each.value, environment) for each in variables if not each.is_code},
        "codes": {each.name: substitute(each.value, environment) for each in variables if each.is_code},
    }


def _run(order: Mapping[str, Any], where: str, limits: ProgramLimits) -> dict[str, dict[str, str]]:
    try:
        done = run(
            python_script(_ENGINE),
            folder=_ENGINE.parent,
            readable=python_places(),
            stdin=json.dumps(order).encode(),
            limits=limits,
        )
    except OverLimit as problem:
        raise OverLimit(problem.limit, f"evaluating Jsonnet {problem.message}; simplify it", where=where) from None
    if done.code != 0:
        if b"goroutine stack exceeds" in done.stderr or b"stack overflow" in done.stderr:
            raise LimitError("the Jsonnet code is nested too deeply; flatten it", where=where)
        last = last_lines(done.stderr, 1) or f"the engine failed with code {done.code}"
        raise RenderError(f"cannot evaluate Jsonnet: {last}", where=where)
    answers: dict[str, dict[str, str]] = json.loads(done.stdout)
    return answers


def _manifests(path: str, answer: Mapping[str, str], closure: Closure) -> list[Manifest]:
    if "error" in answer:
        raise _error(path, answer["error"], closure)
    try:
        value = load_json(answer["json"].encode("utf-8", "surrogatepass"), where=path).value
    except ManifestError as problem:
        raise RenderError(f"does not evaluate to a manifest: {problem.message}", where=path) from None
    found = value if isinstance(value, list) else [value]  # argo: one manifest or an array of manifests
    for each in found:
        if not isinstance(each, dict):
            what = "a list" if isinstance(each, list) else json.dumps(each)[:40]
            raise RenderError(f"evaluates to {what}, not to a manifest; return an object or an array", where=path)
    return found


def _error(path: str, said: str, closure: Closure) -> RenderError:
    """Convert the engine's message to an error at the first location that it names."""
    said = cleaned(said)
    text = said.removeprefix("RUNTIME ERROR: ").partition("\n\t")[0]
    for lead, field in (("Missing argument: ", "tlas"), ("Undefined external variable: ", "extVars")):
        if text.startswith(lead):
            text = f"{text.strip()}; add it to directory.jsonnet.{field}"
    for place in _PLACE.finditer(said):
        if place["file"] in closure.contents:
            lead = place.group() if text.startswith(place.group()) else ""
            if lead:
                text = text[len(lead) :].partition(" ")[2].partition("\n")[0]
            line = int(place["line"] or place["first"])
            return RenderError(text.strip()[:_MOST_TEXT], where=place["file"], line=line)
    return RenderError(text.strip()[:_MOST_TEXT], where=path)
