"""The settings in .gitmodules are the ones that git reads from the same text."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from argosy.errors import SourceError
from argosy.gitops.application.gitmodules import read_settings

SECTIONS = ('[submodule "a"]', '[Submodule "A.b"]', "[submodule.Ab]", "[x]", '[submodule "q\\"\\\\"]', "[ ]", "[a", "")
SIGNS = ("\t", " ", "  ", "\n", "\n", "\r\n", "\\\n", "\\n", "\\x", '"', "#", ";", "=", "-", "_", "]", "\\\\", '\\"')
WORDS = ("path", "URL", "lib", "a b", '"l # b"', "é", "1", "\ufeff")


def make_text(choice: random.Random) -> str:
    """A section and some settings, most of them valid."""
    lines = [choice.choice(SECTIONS) + choice.choice(("\n", "\r\n", " ", ""))]
    for _ in range(choice.randint(1, 3)):
        value = choice.choices((*SIGNS, *WORDS), k=choice.randint(0, 5))
        lines.append(choice.choice(("path = ", "URL=", " update =\t", "url\n", "")) + "".join(value) + "\n")
    return "".join(lines)


def list_settings_of_git(text: str, file: Path) -> list[tuple[str, str | None]] | None:
    """Return None if git rejects the text."""
    file.write_bytes(text.encode())
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(file.parent)}
    done = subprocess.run(["git", "config", "-z", "-l", "-f", str(file)], env=env, capture_output=True, check=False)
    if done.returncode:
        return None
    entries = [entry.partition("\n") for entry in done.stdout.decode().split("\0")[:-1]]
    return [(name, value if separator else None) for name, separator, value in entries]


def list_settings(text: str) -> list[tuple[str, str | None]] | None:
    try:
        return [
            (".".join(filter(None, (setting.section, setting.subsection, setting.name))), setting.value)
            for setting in read_settings(text)
        ]
    except SourceError:
        return None


def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    choice = random.Random(7)
    texts = [make_text(choice) for _ in range(200)]
    results = {text: list_settings(text) for text in texts}
    assert results == {text: list_settings_of_git(text, tmp_path / "settings") for text in texts}
    assert 50 < sum(result is None for result in results.values()) < 150
