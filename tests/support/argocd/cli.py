"""The real `argocd` command against the servers of both sides.

In: a pair. Out: what the same command printed and returned on each side, without what differs in any two runs.
Never: uses the configuration of the person who runs the tests.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import bcrypt
import yaml

from support.argocd.comparison import Difference, find_differences, normalize_value
from support.argocd.pair import CONTROL, Pair, Side
from support.clusters import ARGOSY, environment
from support.control_plane import die_with_parent, free_ports
from support.deadlines import HANG_SECONDS, wait_until
from support.failure_report import record_log

PASSWORD: Final = "password of a test"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@dataclass
class ServerOfSide:
    """One API server, with a logged-in `argocd`."""

    side: Side
    port: int
    folder: Path
    program: Path

    def run(self, *arguments: str, input: str | None = None, timeout: float = HANG_SECONDS) -> Answer:
        """Run `argocd` against this server."""
        config = self.folder / "config"
        words = [f"127.0.0.1:{self.port}" if word == "<server>" else word for word in arguments]
        done = subprocess.run(
            [str(self.program), *words, "--config", str(config)],
            env={
                "HOME": str(self.folder),
                "PATH": os.environ["PATH"],
                "KUBECONFIG": str(self.side.server.kubeconfig),
                "NO_PROXY": "*",
                "KUBECTL_EXTERNAL_DIFF": "diff -u",
            },
            cwd=self.folder,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, self._hide_address(done.stdout), self._hide_address(done.stderr))

    def login(self) -> Answer:
        address = f"127.0.0.1:{self.port}"
        return self.run("login", address, "--plaintext", "--username", "admin", "--password", PASSWORD)

    def _hide_address(self, text: str) -> str:
        return text.replace(f"127.0.0.1:{self.port}", "<server>").replace(str(self.folder), "<home>")


@dataclass
class Servers:
    """The API servers of both sides."""

    argocd: ServerOfSide
    argosy: ServerOfSide

    def compare(self, *arguments: str, input: str | None = None) -> list[Difference]:
        """Run a command against both servers, and compare exit codes and outputs."""
        subject = f"argocd {' '.join(arguments)}"
        answers = [server.run(*arguments, input=input) for server in (self.argocd, self.argosy)]
        is_structured = bool({"json", "yaml"} & set(arguments)) or arguments[:2] in _PRINTS_YAML
        left, right = ({"exit code": answer.code, **read_output(answer, is_structured)} for answer in answers)
        left["stdout"], right["stdout"] = align_lines(left["stdout"], right["stdout"])
        return list(find_differences(subject, left, right))


_LEVEL_AND_TIME: Final = re.compile(r'time="[^"]*" ?|\{"level":"(\w+)","msg":(".*"),"time":"[^"]*"\}')
_PRINTS_YAML: Final = {("app", "patch"), ("cluster", "get")}
_FATAL: Final = re.compile(r'fatal "rpc error: code = (\w+) desc = (.*)"')
# What a watch sees of a running operation depends on time: only the end of `app sync` and `app wait` is compared.
_PROGRESS: Final = re.compile(
    r"TIMESTAMP GROUP KIND .*|<time> .*\b(Synced|OutOfSync|Running|Succeeded|Failed|Pruned)\b.*"
)
# Argo CD prints these in the order of a Go map.
_IN_ANY_ORDER: Final = re.compile(
    r"[\w.-]+ (Deployment|Application) [\w-]+ [\w-]+ (true|false)|metadata\..*|apiVersion .*|kind .*|data\..*|"
)
# Argo CD cuts the first word of each line of a log, where a real cluster has the time of the line.
_SIMULATED_TIME: Final = re.compile(r"^\S+ (?=container started from )", re.MULTILINE)
_VERSION_OF_OBJECT: Final = re.compile(r'(\bresourceVersion:? +)"?\d+"?')
_AGE: Final = re.compile(r"(?<![\w-])\d+[smhd](\d+[smh])?(?![\w-])")


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?\+0000( UTC)?|\+00:00|Z)")
_METADATA_PER_RUN: Final = frozenset({"managedFields", "generation", "resourceVersion"})
_COUNTS_OF_OBJECTS: Final = frozenset({"resourcesCount"})  # each side has objects of its own program
_DIFF_FOLDER: Final = re.compile(r"/tmp/argocd-diff\d+")


def read_output(answer: Answer, is_structured: bool) -> Mapping[str, Any]:
    """Return JSON and YAML as values, and all other text as lines of words, because columns fit what they hold."""
    error = _LEVEL_AND_TIME.sub(r"\1 \2", answer.err)
    out = _read_values(answer.out) if is_structured else _sort_lines(normalize_value(_split_words(answer.out)))
    return {"stdout": out, **_read_errors(normalize_value(_split_words(error)))}


def _read_errors(lines: list[str]) -> dict[str, Any]:
    """Return the code and the message of a failed call, and other lines."""
    if len(lines) == 1 and (match := _FATAL.fullmatch(lines[0])):
        return {"stderr": {"code": match[1], "message": match[2]}}
    return {"stderr": lines}


def _sort_lines(lines: list[str]) -> list[str]:
    """Return the lines without progress; neighbors that Argo CD prints in any order are sorted."""
    lines = [line for line in lines if not _PROGRESS.fullmatch(line)]
    groups = itertools.groupby(lines, key=lambda line: _IN_ANY_ORDER.fullmatch(line) is not None)
    return [line for in_any_order, group in groups for line in (sorted(group) if in_any_order else group)]


def align_lines(left: Any, right: Any) -> tuple[Any, Any]:
    """Insert None where only the other side has a line, so that one additional line is one difference."""
    if not (_is_text(left) and _is_text(right)):
        return left, right
    aligned: tuple[list[str | None], list[str | None]] = ([], [])
    for _, start, end, other_start, other_end in difflib.SequenceMatcher(None, left, right, False).get_opcodes():
        length = max(end - start, other_end - other_start)
        for lines, part in zip(aligned, (left[start:end], right[other_start:other_end]), strict=True):
            lines.extend([*part, *[None] * (length - len(part))])
    return aligned


def _is_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _read_values(text: str) -> Any:
    """JSON is YAML, too."""
    try:
        return _drop_managers(normalize_value(yaml.safe_load(text)))
    except yaml.YAMLError:
        return normalize_value(_split_words(text))


def _drop_managers(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _drop_managers(item) for name, item in value.items() if name not in _METADATA_PER_RUN}
        kept |= dict.fromkeys(_COUNTS_OF_OBJECTS & kept.keys(), "any")
        return {name: item for name, item in kept.items() if name != "annotations" or item}
    if not isinstance(value, list):
        return value
    items = [_drop_managers(item) for item in value]
    if items and all(isinstance(item, dict) and "Disabled" in item for item in items):
        return sorted(items, key=json.dumps)  # actions, which Argo CD prints in the order of a Go map
    return items


def _split_words(text: str) -> list[str]:
    text = _VERSION_OF_OBJECT.sub(r"\1<version>", _SIMULATED_TIME.sub("", text))
    text = _AGE.sub("<age>", _DIFF_FOLDER.sub("<folder>", _TIME.sub("<time>", text)))
    return [" ".join(line.split()) for line in text.splitlines()]


def set_password(pair: Pair) -> None:
    """Give admin the password of the tests, on both sides."""
    digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    data = {"admin.password": digest, "admin.passwordMtime": "2026-01-01T00:00:00Z"}
    pair.patch(f"/api/v1/namespaces/{CONTROL}/secrets/argocd-secret", {"stringData": data})


@contextlib.contextmanager
def run_servers(pair: Pair, folder: Path) -> Iterator[Servers]:
    """Start the API server of each side, and log in to both."""
    set_password(pair)
    program = pair.programs.installation.folder / "argocd"
    argocd_port, [argosy_port] = pair.programs.start_server(), free_ports(1)
    with _run_argosy_server(pair.argosy, folder / "server", argosy_port):
        servers = [
            ServerOfSide(side, port, folder / side.name, program)
            for side, port in ((pair.argocd, argocd_port), (pair.argosy, argosy_port))
        ]
        for server in servers:
            server.folder.mkdir(parents=True)
            wait_until(lambda server=server: server.login().code == 0, f"login to {server.side.name}")
        yield Servers(*servers)


@contextlib.contextmanager
def _run_argosy_server(side: Side, folder: Path, port: int) -> Iterator[None]:
    folder.mkdir(parents=True)
    with open(record_log(folder / "server.log"), "ab") as log:
        process = subprocess.Popen(
            [str(ARGOSY), "serve", "--kubeconfig", str(side.server.kubeconfig), "-n", CONTROL, "--port", str(port),
             "--no-browser"],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            env={**environment(folder), "GIT_CONFIG_GLOBAL": os.devnull},
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()
