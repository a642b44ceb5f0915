"""Predicts how a container ends whose command has only one possible outcome, such as `false` or `sleep 5`.

In: a Pod. Out: the exit code and the run time of its container, or None. Never: runs a program; interprets any other
shell script.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects import Manifest

_PROGRAM_FOLDERS: Final = ("/bin/", "/usr/bin/")
_SHELLS: Final = ("sh", "bash", "ash", "dash")
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", re.ASCII)
_SECONDS_PER_UNIT: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PLAIN_WORD: Final = re.compile(r"[a-z0-9./]+", re.ASCII)  # what no shell expands or interprets
_EXIT_CODE: Final = re.compile(r"\d{1,3}", re.ASCII)
MAX_EXIT_CODE: Final = 255
MAX_RUN_SECONDS: Final = 10 * 365 * 86400.0


@dataclass(frozen=True)
class CommandOutcome:
    exit_code: int
    run_seconds: float  # infinite if the program does not end


def predict_outcome(pod: Manifest) -> CommandOutcome | None:
    """Predict how the container of a Pod ends, or return None if the Pod has several, or its command is another."""
    containers: list[dict[str, Any]] = list(pod["spec"].get("containers") or ())
    return _predict_container_outcome(containers[0]) if len(containers) == 1 else None


def _predict_container_outcome(container: dict[str, Any]) -> CommandOutcome | None:
    if not container.get("command"):  # the entrypoint of the image runs, with `args` as its arguments
        return None
    program, *arguments = [str(word) for word in (*container["command"], *(container.get("args") or ()))]
    name = _remove_program_folder(program)
    if name not in _SHELLS:
        return _predict_program_outcome(name, arguments)
    match arguments:
        case ["-c", "--", script, *_] | ["-c", script, *_]:
            return _predict_script_outcome(script)
    return None


def _remove_program_folder(program: str) -> str:
    for folder in _PROGRAM_FOLDERS:
        if program.startswith(folder):
            return program.removeprefix(folder)
    return program


def _predict_script_outcome(script: str) -> CommandOutcome | None:
    words = script.strip().split(" ")
    if not all(_PLAIN_WORD.fullmatch(word) for word in words):
        return None
    match words:
        case ["exit"]:
            return CommandOutcome(0, 0.0)
        case ["exit", code] if _EXIT_CODE.fullmatch(code) and int(code) <= MAX_EXIT_CODE:
            return CommandOutcome(int(code), 0.0)
        case [program, *arguments]:
            return _predict_program_outcome(_remove_program_folder(program), arguments)
    return None


def _predict_program_outcome(name: str, arguments: list[str]) -> CommandOutcome | None:
    match name, arguments:
        case "true", _:
            return CommandOutcome(0, 0.0)
        case "false", _:
            return CommandOutcome(1, 0.0)
        case "sleep", ["infinity"]:
            return CommandOutcome(0, math.inf)
        case "sleep", [text] if duration := _DURATION.fullmatch(text):
            seconds = float(duration[1]) * _SECONDS_PER_UNIT[duration[2]]
            return CommandOutcome(0, min(seconds, MAX_RUN_SECONDS))
    return None
