"""Reads overlays in the styles of real repositories. In: one text per style. Out: the files of each case.

Never: copies text of another repository.
"""

from __future__ import annotations

from support.paths import DATA

STYLES = DATA / "kustomize-styles"
Texts = dict[str, str]


def cases() -> dict[str, Texts]:
    all_cases: dict[str, Texts] = {}
    for file in sorted(STYLES.glob("*.txt")):
        all_cases |= parsed(file.read_text("utf-8"))
    return all_cases


def parsed(text: str) -> dict[str, Texts]:
    """`#### NAME` begins a case, `@@@@ NAME` shared files, `=== PATH` a file; `@use NAME` includes shared files."""
    shared: dict[str, Texts] = {}
    parsed_cases: dict[str, Texts] = {}
    files: Texts = {}
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        mark, _, argument = line.partition(" ")
        name = argument.strip()
        if mark in ("####", "@@@@"):
            files = (parsed_cases if mark == "####" else shared).setdefault(name, {})
            lines = []
        elif mark == "@use":
            files.update({path: text for path, text in shared[name].items() if path not in files})
        elif mark == "===":
            lines = []
            files[name] = ""
            path = name
        else:
            lines.append(line)
            files[path] = "".join(lines)
    return parsed_cases
