"""Reads transcripts of kubectl commands, runs them against a server, and compares the results.

In: `table/*.txt`. Out: rows (a command line, its exit code and output), and messages about differences.
Lines of a transcript: `=== NAME` begins a scenario in a namespace of that name · `%%% FILE` … `%%%` is one of its
files · `$ ` a shell command line · `? ` its exit code if not 0 · `| ` its stdout · `! ` its stderr ·
`~ ` / `!~ ` a pattern that its stdout / stderr must contain, instead of the exact text · `# ` a comment.
"""

from __future__ import annotations

import datetime
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.clusters import QUICK
from support.deadlines import HANG_SECONDS
from support.paths import TESTS, VENV

TABLE = TESTS / "kubectl" / "table"
BESIDE = 3

# Values that differ between runs, and their placeholders. Column padding depends on the width of the AGE column.
VOLATILE = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "JWT"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000( UTC)?)?", "TIME"),
        (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"\b([Rr]esource ?[Vv]ersion\"?:\s*)\"?\d+\"?", r"\1VERSION"),
        (r"https://127\.0\.0\.1:\d+", "SERVER"),
        (r"\b10\.(0|96)\.\d+\.\d+\b", "ADDRESS"),
        (r"\b3[0-2]\d{3}(?=/(TCP|UDP))", "PORT"),
        (r"(nodePort:\s+)\d+", r"\1PORT"),
        (r"^([WIE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", r"\1 "),
        (r"\S*/(LIVE|MERGED)-\d+/", r"\1/"),
        (r"\S*/kubectl-edit-\d+\.(yaml|json)", "EDITED"),
        (r"\b(generated-)[a-z0-9]{5}\b", r"\1RANDOM"),
        (r"(?<![^\s(])(\d{1,3}[ydhm])?\d{1,3}[ydhs](?=[\s,)]|$)", "AGE"),
        (r"(?<=\s)\d{1,2}m(?=\s|$)", "AGE"),
        (r"(?<=\S) {2,}", "   "),
        (r"\s+$", ""),
    )
)

# client-go logs only sometimes that kubectl ended a watch at its deadline.
CLIENT_NOISE = re.compile(r"[WE]\d{4} .* reflector\.go:\d+\]")


@dataclass(frozen=True)
class Row:
    """One command line and its expected result."""

    line: int
    command: str
    code: int
    out: tuple[str, ...]
    err: tuple[str, ...]
    out_patterns: tuple[str, ...]
    err_patterns: tuple[str, ...]


@dataclass
class Scenario:
    """Rows that run in order in one namespace, because they depend on each other."""

    name: str
    source: Path
    files: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: tuple[str, ...]
    err: tuple[str, ...]


def scenarios(table: Path = TABLE) -> list[Scenario]:
    return [scenario for source in sorted(table.glob("*.txt")) for scenario in read(source)]


def cases(always: Collection[str]) -> list[Any]:
    """Return all scenarios as test parameters; those in `always` always run, the others only in `make test-all`."""
    all_scenarios = scenarios()
    unknown = set(always) - {scenario.name for scenario in all_scenarios}
    assert not unknown, unknown
    return [
        case if case.name in always else pytest.param(case, marks=pytest.mark.tier("all")) for case in all_scenarios
    ]


def read(source: Path) -> Iterator[Scenario]:
    """Parse a transcript. A line in an unknown format is an error."""
    scenario: Scenario | None = None
    parts: list[tuple[int, str]] = []
    lines = enumerate(source.read_text().splitlines(), 1)
    for number, line in lines:
        if line.startswith("=== "):
            if scenario:
                scenario.rows = _rows(parts)
                yield scenario
            scenario, parts = Scenario(line[4:].strip(), source), []
        elif line.startswith("%%% ") and scenario:
            text = iter(lambda: next(lines)[1], "%%%")
            scenario.files[line[4:].strip()] = "".join(f"{file_line}\n" for file_line in text)
        elif line and not line.startswith("#"):
            if not re.match(r"(\$|\?|\||!~?|~)( |$)", line):
                raise ValueError(f"{source.name}:{number}: {line!r} is no line of a transcript")
            parts.append((number, line))
    if scenario:
        scenario.rows = _rows(parts)
        yield scenario


def _rows(parts: Sequence[tuple[int, str]]) -> list[Row]:
    starts = [index for index, (_, line) in enumerate(parts) if line.startswith("$ ")]
    return [_row(parts[start:end]) for start, end in zip(starts, [*starts[1:], len(parts)])]


def _row(parts: Sequence[tuple[int, str]]) -> Row:
    lines_by_mark: dict[str, list[str]] = {mark: [] for mark in ("$", "?", "|", "!", "~", "!~")}
    for _, line in parts:
        mark, _, content = line.partition(" ")
        lines_by_mark[mark].append(content)
    code = int(lines_by_mark["?"][0]) if lines_by_mark["?"] else 0
    words = (tuple(lines_by_mark[mark]) for mark in ("|", "!", "~", "!~"))
    return Row(parts[0][0], lines_by_mark["$"][0], code, *words)


def steady(output_lines: Iterable[str]) -> tuple[str, ...]:
    """Replace values that differ between runs by placeholders in the lines of a command's output."""
    lines = []
    for line in output_lines:
        if CLIENT_NOISE.match(line):
            continue
        for pattern, word in VOLATILE:
            line = pattern.sub(word, line)
        lines.append(line)
    return tuple(lines)


class Shell:
    """Runs command lines with a given kubectl and kubeconfig."""

    def __init__(self, kubectl: Path, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        self._config = kubeconfig.read_text()
        programs = folder / "bin"
        programs.mkdir(parents=True)
        (programs / "kubectl").symlink_to(kubectl)
        self._environment = {
            "HOME": str(folder / "home"),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "CERTIFICATE": str(folder / "tls.crt"),
            "KEY": str(folder / "tls.key"),
            **QUICK,
        }
        key_pair(folder / "tls.crt", folder / "tls.key")

    def enter(self, scenario: Scenario) -> Place:
        """Create a namespace and a folder with the scenario's files."""
        folder = self.folder / scenario.name
        folder.mkdir()
        config = yaml.safe_load(self._config)
        for context in config["contexts"]:
            context["context"]["namespace"] = scenario.name
        (folder / ".kubeconfig").write_text(json.dumps(config))
        for name, text in scenario.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        scenario_place = Place(folder, {**self._environment, "KUBECONFIG": str(folder / ".kubeconfig")})
        # Sequentially: kubectl fails if it waits for two objects and neither exists yet.
        waiting = f"kubectl wait --for=create --timeout={HANG_SECONDS:g}s"
        result = scenario_place.run(
            f"kubectl create namespace {scenario.name} && {waiting} serviceaccount/default"
            f" && {waiting} configmap/kube-root-ca.crt"
        )
        assert result.code == 0, result
        return scenario_place


@dataclass(frozen=True)
class Place:
    """The namespace and folder of a scenario."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, command: str) -> Outcome:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=dict(self.environment),
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            texts = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            texts = process.communicate()
        out, err = (text.replace(str(self.folder), "FOLDER").splitlines() for text in texts)
        return Outcome(process.returncode, steady(out), steady(err))


def key_pair(certificate: Path, key: Path) -> None:
    """Write a key pair for rows that create a TLS Secret."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "example.com")])
    now = datetime.datetime.now(datetime.UTC)
    signed_certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed_certificate.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def differences(row: Row, outcome: Outcome, *, words: bool = True) -> Iterator[str]:
    """Yield a message for each difference from the expected result."""
    if row.code != outcome.code:
        yield f"exit code {outcome.code}, not {row.code}: " + "\n".join((*outcome.out[-5:], *outcome.err[-5:]))
    if not words:
        return
    for name, exact, patterns, actual in (
        ("stdout", row.out, row.out_patterns, outcome.out),
        ("stderr", row.err, row.err_patterns, outcome.err),
    ):
        text = "\n".join(actual)
        yield from (
            f"{name} does not hold {pattern!r}: {text}" for pattern in patterns if not re.search(pattern, text, re.M)
        )
        expected = steady(exact)
        if not patterns and expected != actual:
            yield "\n".join(difflib.unified_diff(expected, actual, f"{name} expected", f"{name} told", "", "", 9, ""))


def outcomes(scenario: Scenario, shell: Shell) -> list[Outcome]:
    """Run all rows in order; return their results."""
    scenario_place = shell.enter(scenario)
    return [scenario_place.run(row.command) for row in scenario.rows]


def play(chosen: Sequence[Scenario], shell: Shell) -> dict[str, list[Outcome]]:
    """Run all scenarios, several of them concurrently, because many rows wait."""
    with ThreadPoolExecutor(BESIDE) as pool:
        played = pool.map(lambda scenario: outcomes(scenario, shell), chosen)
        return dict(zip((scenario.name for scenario in chosen), played))


def complaints(scenario: Scenario, actual_outcomes: Sequence[Outcome], *, words: bool = True) -> str:
    """Return the differences by row; empty if there are none."""
    messages = []
    for row, outcome in zip(scenario.rows, actual_outcomes, strict=True):
        position = f"{scenario.source.name}:{row.line} $ {row.command}"
        messages += [f"{position}\n{difference}" for difference in differences(row, outcome, words=words)]
    return "\n\n".join(messages)


def kubectl_of(version: str, programs: Sequence[Path | None]) -> Path | None:
    """Return the first kubectl whose version starts with this prefix ("" matches any version)."""
    for program in programs:
        if program and program.exists():
            ask = [program, "version", "--client"]
            result = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
            if f"Client Version: v{version}" in result.stdout:
                return program
    return None


def oracle_kubectl() -> Path | None:
    """Return kubectl 1.32, which recorded the transcripts."""
    environment = VENV
    return kubectl_of(
        "1.32.", [environment / "kubectl-1.32" / "kubectl", _path(shutil.which("kubectl")), Path("/usr/bin/kubectl")]
    )


def newest_kubectl() -> Path | None:
    return kubectl_of("", [VENV / "bin" / "kubectl"])


def _path(program: str | None) -> Path | None:
    return Path(program) if program else None


def recorded(source: Path, outcomes: Mapping[int, Outcome]) -> str:
    """Return the transcript with the recorded output replaced by the current output; patterns are kept."""
    lines, keep = [], True
    for number, line in enumerate(source.read_text().splitlines(), 1):
        mark = line.partition(" ")[0]
        if number in outcomes:
            keep = False
            block = [line, *_told(source, number, outcomes[number])]
            lines += block
        elif keep or mark not in ("?", "|", "!", "~", "!~"):
            lines.append(line)
            keep = keep or mark not in ("?", "|", "!", "~", "!~")
    return "\n".join(lines) + "\n"


def _told(source: Path, number: int, outcome: Outcome) -> Iterator[str]:
    row = next(row for scenario in read(source) for row in scenario.rows if row.line == number)
    if outcome.code:
        yield f"? {outcome.code}"
    for mark, patterns, output in (("|", row.out_patterns, outcome.out), ("!", row.err_patterns, outcome.err)):
        pattern_mark = "~" if mark == "|" else "!~"
        yield from (f"{pattern_mark} {text}" for text in patterns)
        if not patterns:
            yield from (f"{mark} {text}".rstrip() for text in output)
