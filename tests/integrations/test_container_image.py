"""deploy/Containerfile: its instructions, and that the wheel it installs is complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KNOWN = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT"}


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def test_containerfile_has_two_stages_and_a_nonroot_final_stage() -> None:
    parsed_instructions = instructions()
    assert {word for word, _ in parsed_instructions} <= KNOWN
    stages = [number for number, (word, _) in enumerate(parsed_instructions) if word == "FROM"]
    assert len(stages) == 2 and parsed_instructions[0][1].endswith(" AS wheels")
    last = parsed_instructions[stages[-1] :]
    assert dict(last)["USER"] == "65532:0" and json.loads(dict(last)["ENTRYPOINT"]) == ["argosy"]
    assert not [word for word, _ in last if word == "COPY"], "sources stay in the first stage"
    for word, rest in parsed_instructions:
        if word == "COPY":
            *sources, _ = rest.split()
            assert [source for source in sources if not (ROOT / source).exists()] == []
        if word == "RUN" and (listed := re.search(r"\[.*\]$", rest)):
            assert json.loads(listed[0])[0] == "pip"
    users = next(rest for word, rest in last if "useradd" in rest)
    assert "--uid 65532 --gid 0" in users and "git" in users and "openssh-client" in users


@pytest.mark.tier("all")
def test_wheel_installed_in_a_fresh_environment_runs_argosy(tmp_path: Path) -> None:
    environ = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    built = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "No matching distribution" in built.stderr or "connection" in built.stderr.lower():
        pytest.skip("hatchling cannot be fetched here")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("argosy-*.whl")
    venv.create(tmp_path / "fresh", with_pip=False)
    python = tmp_path / "fresh" / "bin" / "python"
    installed = subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    (packages,) = (tmp_path / "fresh" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # as pip would install them
    home = {**environ, "HOME": str(tmp_path)}
    for words in (["version"], ["install"], ["health", "list"]):
        done = subprocess.run(
            [str(tmp_path / "fresh" / "bin" / "argosy"), *words],
            env=home, capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout
    where = [str(python), "-c", "import argosy; print(argosy.__file__)"]
    assert subprocess.check_output(where, env=home, text=True, cwd=tmp_path).startswith(str(tmp_path))
