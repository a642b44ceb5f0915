"""Random changes to files, as made by editors, operating systems and people. In: a text. Out: a changed text.

Never: checks if the changed text is valid.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

SCALARS = [
    "1e3", "0x10", "012", "1_000", "yes", "No", "on", "null", "~", "'null'", '"1e3"', "'0x10'", "1.0", "1.50", ".5", "",
    "'yes'", "0o17", "0b11", "2024-01-01", "12:30", "true", "'true'", "5", "-1", "1e400", "123456789012345678901", "{}",
    "[]", "x: y", "- x", "'it''s'", '"a\\u00e9\\n"', "é", "🚀 emoji", "\u00a0nbsp", "a\tb", "%x", "@x", "`x`", "*star",
    "&anchor x", "!tag x", "!!str 5", "!!int '5'", "| ", ">-", "#", "a #b", "a#b", "?", ": x", ",", "C:\\dir\\x", "=",
    "<<", "${VAR}", "$(VAR)", "{{ .x }}", "'{{ .x }}'", "x" * 3000, "0.1e-7", "+5", "00", "-0", "1.", "5.0e+3", "Null",
]  # fmt: skip
KINDS = ["ConfigMapList", "List", "Foo", "namespace", "", "null", "Deployment", "Kustomization", "ClusterRole", "5"]
Change = Callable[[str, random.Random], str]


def _line(change: Callable[[str, random.Random], str]) -> Change:
    def changed(text: str, rng: random.Random) -> str:
        lines = text.splitlines(keepends=True) or ["\n"]
        at = rng.randrange(len(lines))
        lines[at] = change(lines[at], rng)
        return "".join(lines)

    return changed


def _scalar(line: str, rng: random.Random) -> str:
    return re.sub(r"(: |- )[^\n]*", lambda match: match[1] + rng.choice(SCALARS), line, count=1)


def _inner(line: str, rng: random.Random) -> str:
    """Replace a value that is nested in a flow mapping."""
    parts = re.split(r"(: )([^,{}\[\]\n]+)(?=[,}])", line)
    positions = range(2, len(parts), 3)
    if positions:
        parts[rng.choice(positions)] = rng.choice(SCALARS)
    return "".join(parts)


def _indent(line: str, rng: random.Random) -> str:
    return rng.choice([" " + line, "  " + line, line.removeprefix(" "), line.removeprefix("  "), "\t" + line])


def _kind(text: str, rng: random.Random) -> str:
    return re.sub(r"kind: \w+", lambda _: f"kind: {rng.choice(KINDS)}", text, count=1)


def _swap(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    rng.shuffle(lines[:2])
    return "".join(lines[1:] + lines[:1])


CHANGES: list[Change] = [
    lambda text, _: text.replace("\n", "\r\n"),
    lambda text, _: "\ufeff" + text,
    lambda text, _: "---\n" + text,
    lambda text, _: "--- # first\n---\n" + text,
    lambda text, _: text + "---\n",
    lambda text, _: text + "...\n",
    lambda text, _: text + "---\n# nothing\n---\n\n",
    lambda text, _: "# a comment\n\n" + text + "# the end",
    lambda text, _: "%YAML 1.2\n---\n" + text,
    lambda text, _: text.rstrip("\n"),
    lambda text, _: text.replace("---\n", "--- \n").replace("---\r\n", "---\t\r\n"),
    lambda text, _: text.replace(": ", ":  "),
    lambda text, _: text.replace("\n", " \n"),
    lambda text, _: text.replace("/", "\\"),
    lambda text, _: "",
    _kind,
    _swap,
    *[_line(_scalar)] * 8,
    *[_line(_inner)] * 8,
    *[_line(_indent)] * 4,
    *[_line(lambda line, _: line + line)] * 3,
    *[_line(lambda line, _: "")] * 5,
    _line(lambda line, _: line.rstrip("\n") + " # why\n"),
    _line(lambda line, _: "# " + line),
    _line(lambda line, _: line + "\n"),
    _line(lambda line, _: line.rstrip("\n") + "\t\n"),
    _line(lambda line, _: line.upper()),
]


def noisy(texts: dict[str, str], rng: random.Random) -> dict[str, str]:
    """Return the files of a tree with one or two random changes."""
    changed = dict(texts)
    for _ in range(rng.randint(1, 2)):
        path = rng.choice(sorted(texts))
        changed[path] = rng.choice(CHANGES)(changed[path], rng)
    return changed
