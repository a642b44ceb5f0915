"""Kustomize's own cases with random mistakes: every build error names an existing file and a line in it."""

from __future__ import annotations

import json
import posixpath
import random
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.gitops.render.kustomize import build, trace_origins
from support.file_trees import TextTree

CASES = Path(__file__).parents[3] / "shared" / "data" / "kustomize"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="Kustomize's cases are not here")
TRIES = 150
NO_FILE = ("there is no kustomization.yaml", "there is no such folder")


def tidy(path: str) -> str:
    return "" if path in (".", "/") else posixpath.normpath(path).lstrip("/")


def broken(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    name = lines[at].split(":")[0]
    match chance.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines[at] = lines[at].replace(":", ": [", 1)
        case 2:
            lines[at] = f"  {lines[at]}"
        case 3:
            lines[at] = f"{name}: 5"
        case 4:
            lines[at] = f"{name}: {{a: b}}"
        case _:
            lines.insert(at, chance.choice(lines))
    return "\n".join(lines)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.tier("all")) for seed in range(1, 8))])
def test_build_error_names_file_and_line_and_successful_build_is_traceable(seed: int) -> None:
    cases = [case for case in json.loads((CASES / "krusty/cases.json").read_text()) if case["kubectl_agrees"]]
    chance = random.Random(seed)
    refused = 0
    for _ in range(TRIES):
        case = chance.choice(cases)
        files = {tidy(path): text for path, text in case["files"].items()}
        file = chance.choice(sorted(files))
        if chance.random() < 0.1:
            del files[file]
        else:
            files[file] = broken(files[file], chance)
        try:
            build(TextTree(files), tidy(case["root"]))
        except UserError as error:
            refused += 1
            if not error.message.startswith(NO_FILE):
                assert error.where in files, str(error)
                assert 1 <= error.line <= files[error.where].count("\n") + 1, str(error)
        else:
            trace_origins(TextTree(files), tidy(case["root"]))
    assert refused > TRIES / 3
