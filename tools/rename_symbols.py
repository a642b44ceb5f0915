"""Rename functions, classes, attributes, parameters and local variables by a table, with type information.

In: tables (see tools/renaming/tables.py for their format). Out: src, tests, tools and bench rewritten, with names in
strings, comments and documents; a report of entries that were refused and of uses that were assumed or left; module
renames as a table for move_modules.py, which runs afterwards.
Never: moves modules, or guesses: a rename that collides is refused, a use whose owner is unknown is reported.

Run: .venv/bin/python tools/rename_symbols.py TABLE... [--check] [--moves FILE] [--report FILE] [--no-format]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterable
from pathlib import Path

from renaming.index import Index
from renaming.mentions import Edit, Mentions
from renaming.plan import OWN, Plan, make_plan
from renaming.scopes import SourceFile
from renaming.tables import Entry, read_tables
from renaming.types import TypeIndex, list_source_files

FOLDERS = ["src", "tests", "tools", "bench"]
TEXT_SUFFIXES = {".md", ".toml", ".yaml", ".yml", ".txt", ".sh", ".cfg"}
MAX_LINE = 120
PRAGMAS = ("# noqa", "# type:", "# fmt:")
UNTOUCHED = ("CHANGELOG.md", "tools/module_moves", "llmops-via-argocd")


def build_index(entries: Iterable[Entry]) -> Index:
    own = Path("tools")
    files = [
        SourceFile(path, module)
        for path, module in list_source_files(FOLDERS)
        if path != own / "rename_symbols.py" and own / "renaming" not in path.parents
    ]
    wanted = frozenset(entry.old for entry in entries if entry.kind != "module")
    return Index({str(file.path): file for file in files}, TypeIndex(files, FOLDERS, wanted))


def list_edits(plan: Plan) -> dict[Path, set[Edit]]:
    mentions = Mentions(plan)
    edits: dict[Path, set[Edit]] = {}
    for path, places in plan.index.places.items():
        file = plan.index.files[path]
        starts = [0]
        for line in file.lines:
            starts.append(starts[-1] + len(line) + 1)
        renamed = {place: (name[-1], plan.new_name(name)) for place, name in places.items()}
        for unknown, new in plan.assumed:
            if unknown.path == path and file.holds(unknown.place, unknown.name):
                renamed[unknown.place] = (unknown.name, new)
        found: set[Edit] = set()
        for (line, column), (old, new) in renamed.items():
            if old != new:
                start = starts[line - 1] + column
                found.add((start, start + len(old.encode()), new.encode()))
        found.update(mentions.find_in_python(file))
        found.update(mentions.find_in_strings(file))
        if found:
            edits[file.path] = found
    for path in list_text_files():
        text = path.read_text()
        in_text = {*mentions.find_in_text(text, is_prose=path.suffix == ".md"), *mentions.find_in_blocks(text)}
        if in_text:
            edits[path] = in_text
    return edits


def list_text_files() -> Iterable[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = Path(name)
        if path.suffix in TEXT_SUFFIXES and not name.startswith(UNTOUCHED) and path.is_file():
            yield path


def apply_edits(edits: dict[Path, set[Edit]]) -> None:
    for path, found in edits.items():
        data = path.read_bytes()
        before = len(data) + 1
        for start, end, new in sorted(found, reverse=True):
            if end > before:
                print(f"{path}: two edits at byte {start}", file=sys.stderr)
                continue
            data = data[:start] + new + data[end:]
            before = start
        path.write_bytes(data)


def format_files(paths: Iterable[Path]) -> None:
    names = [str(path) for path in paths if path.suffix == ".py"]
    ruff = [sys.executable, "-m", "ruff"]
    if not names:
        return
    subprocess.run([*ruff, "check", "-q", "--fix", "--select", "I,RUF022,RUF023", *names], check=False)
    subprocess.run([*ruff, "format", "-q", *names], check=False)
    for path in map(Path, names):
        lift_comments(path)
    subprocess.run([*ruff, "format", "-q", *names], check=False)
    # Prints what is too long still, or looks like a password by its new name.
    subprocess.run([*ruff, "check", "-q", "--output-format", "concise", *names], check=False)


def lift_comments(path: Path) -> None:
    """Put a comment above its line where both are too long together now."""
    lines = path.read_text().splitlines(keepends=True)
    if path.suffix != ".py" or all(len(line.rstrip("\n")) <= MAX_LINE for line in lines):
        return
    with path.open() as file:
        comments = [token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    for token in reversed(comments):
        number, column = token.start
        line = lines[number - 1]
        code = line[:column].rstrip()
        if len(line.rstrip("\n")) > MAX_LINE and code and not token.string.startswith(PRAGMAS):
            indent = line[: len(line) - len(line.lstrip())]
            lines[number - 1 : number] = [f"{indent}{token.string}\n", f"{code}\n"]
    path.write_text("".join(lines))


def render_moves(entries: Iterable[Entry]) -> str:
    moves = {(entry.old, entry.new) for entry in entries if entry.kind == "module"}
    return "".join(f"{old.removeprefix(OWN + '.')} {new.removeprefix(OWN + '.')}\n" for old, new in sorted(moves))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="only report")
    parser.add_argument("--moves", type=Path, help="write module renames here, for move_modules.py")
    parser.add_argument("--report", type=Path, help="write the report here instead of printing it")
    parser.add_argument("--no-format", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    entries, complaints = read_tables(options.tables)
    index = build_index(entries)
    print(f"index: {time.monotonic() - began:.0f} s", file=sys.stderr)
    plan = make_plan(index, [entry for entry in entries if entry.kind != "module"])
    report = [f"unreadable: {line}" for line in complaints] + [f"refused: {line}" for line in plan.refused]
    report += [f"left: {line}" for line in plan.notes]
    for unknown, new in plan.assumed:
        report.append(f"assumed: {unknown.path}:{unknown.place[0]}: {unknown.name} -> {new} ({unknown.what})")
    moves = render_moves(entries)
    if options.moves:
        options.moves.write_text(moves)
    elif moves:
        report += [f"move: {line}" for line in moves.splitlines()]
    edits = list_edits(plan)
    count = sum(map(len, edits.values()))
    report.append(f"{len(entries)} entries, {len(plan.names)} renames, {count} edits in {len(edits)} files")
    if options.report:
        options.report.write_text("\n".join(report) + "\n")
    else:
        print("\n".join(report))
    if not options.check:
        apply_edits(edits)
        if not options.no_format:
            format_files(edits)
    print(f"done: {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to free millions of mypy's nodes takes a minute


if __name__ == "__main__":
    main()
