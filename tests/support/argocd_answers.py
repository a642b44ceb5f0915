"""Replays recorded Argo CD commands and compares exit code and shape of the output.

In: a table of commands, a Scene. Out: argosy's output for each, and its differences from the record. Never: ignores a
difference.

A line of a record is a printed line, with two spaces between columns and these placeholders for values that differ
between runs: GITURL, COMMIT (seven characters), FULL (the whole commit), TIME, STAMP and ANY. `...` is any number of
lines. HANG in a command is replaced by the timeout in seconds.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Said, Scene
from support.engine import config_map
from support.paths import DATA

RECORD = DATA / "argocd" / "recorded.yaml"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} \w+"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)"
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


@dataclass(frozen=True)
class Command:
    line: str
    code: int = 0
    out: str | None = None  # the shape of stdout; empty: no output
    json: Mapping[str, Any] = field(default_factory=dict)  # values by path
    err: str = ""  # a part of stderr; a failing command must print to stderr in any case
    before: str = ""  # an action that runs before the command


def recorded() -> list[Command]:
    return [Command(**row) for row in read_yaml(RECORD.read_bytes())["commands"]]


def differences(command: Command, said: Said, placeholders: Mapping[str, str]) -> list[str]:
    """All differences between an answer and the record."""
    messages = [] if said.code == command.code else [f"exit code {said.code}, not {command.code}: {said.err}"]
    if command.out is not None:
        messages += _shape(command.out.splitlines(), said.out.splitlines(), placeholders)
    if command.json:
        data = json.loads(said.out)
        wrong = {path: _at(data, path) for path, value in command.json.items() if _at(data, path) != value}
        messages += [f"{path} is {value!r}, not {command.json[path]!r}" for path, value in wrong.items()]
    if command.err not in said.err or (command.code == 20 and not said.err):
        messages.append(f"stderr is {said.err!r}")
    return messages


def _shape(expected_lines: Sequence[str], lines: Sequence[str], placeholders: Mapping[str, str]) -> list[str]:
    """Not recursive over `...`, which would hide the difference: the longest match is reported."""
    position = 0
    skips = False
    for want in expected_lines:
        if want.strip() == "...":
            skips = True
            continue
        pattern = re.compile(_pattern(want, placeholders))
        if skips:
            position = next(
                (at for at in range(position, len(lines)) if pattern.fullmatch(lines[at].rstrip())), len(lines)
            )
        if position >= len(lines) or not pattern.fullmatch(lines[position].rstrip()):
            actual_line = lines[position] if position < len(lines) else "the end"
            return [f"line {position + 1} is {actual_line!r}, not {want!r}, of {list(lines)}"]
        position, skips = position + 1, False
    return [] if skips or position == len(lines) else [f"line {position + 1} is not in the record: {lines[position]!r}"]


def _pattern(want: str, placeholders: Mapping[str, str]) -> str:
    text = re.escape(want.rstrip()).replace("\\ ", " ")
    text = re.sub(r" {2,}", " {2,}", text)
    if want.startswith("  "):
        text = text.replace(" {2,}", " +", 1)
    for name, value in {
        **{key: re.escape(placeholder_value) for key, placeholder_value in placeholders.items()},
        "TIME": TIME,
        "STAMP": STAMP,
    }.items():
        text = re.sub(rf"\b{name}\b", lambda _, value=value: value, text)  # type: ignore[misc]
    return re.sub(r"\bANY\b", ".*", text)


def _at(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data[int(part)] if isinstance(data, list) else data[part]
    return data


async def play(desk: Scene, folder: Path, commands: Iterable[Command]) -> list[tuple[Command, Said, dict[str, str]]]:
    """Run the commands in order, each after its `before` action."""
    played = []
    for command in commands:
        if command.before:
            await EVENTS[command.before](desk, folder)
        placeholders = {"GITURL": desk.repository.url, "FULL": desk.repository.head, "COMMIT": desk.repository.head[:7]}
        line = command.line.replace("GITURL", desk.repository.url).replace("FOLDER", str(folder)).replace("HANG", HANG)
        answer = await desk.argosy(*shlex.split(line), program="/usr/local/bin/argocd")
        played.append((command, answer, placeholders))
    return played


# -- actions between commands --------------------------------------------------------------------------------------


async def _looked_at(desk: Scene, folder: Path) -> None:
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")


async def _synced(desk: Scene, folder: Path) -> None:
    await desk.until_synced()


async def _drift(desk: Scene, folder: Path) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"a": "other"}})
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")


async def _push(desk: Scene, folder: Path) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="two")})


async def _second(desk: Scene, folder: Path) -> None:
    desk.repository.push({"app/zsecond.yaml": config_map("second", a="one")})


async def _second_gone(desk: Scene, folder: Path) -> None:
    desk.repository.push({"app/zsecond.yaml": None})


async def _file(desk: Scene, folder: Path) -> None:
    source = {"repoURL": desk.repository.url, "targetRevision": "main"}
    spec = {
        "project": "default",
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
        "sources": [{**source, "path": "app", "name": "first"}],
    }
    whole = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "several"}, "spec": spec}
    (folder / "several.yaml").write_text(json.dumps(whole))


async def _manual(desk: Scene, folder: Path) -> None:
    await desk.until_synced()
    await desk.until(lambda status: status["operationState"]["phase"] == "Succeeded")


EVENTS: Mapping[str, Callable[[Scene, Path], Awaitable[None]]] = {
    "it is looked at": _looked_at,
    "it is synced": _synced,
    "somebody changes the object": _drift,
    "somebody pushes": _push,
    "a second object is pushed": _second,
    "the second object is taken away": _second_gone,
    "a file with sources is written": _file,
    "auto-sync has ended": _manual,
}
