"""Find names of definitions in texts: strings, comments, and documents.

In: a plan. Out: edits by offset in bytes. Never: takes a word of prose for a name: only full dotted paths below the
package, names that the same text imports, and names in backquotes that mean one definition.
"""

from __future__ import annotations

import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator

from renaming.plan import OWN, Plan
from renaming.scopes import SourceFile
from renaming.types import Definition

DOTTED = re.compile(rf"(?<![\w./-]){OWN}((?:\.\w+)+)(?::(\w+(?:\.\w+)*))?")
IMPORTED = re.compile(rf"from ({OWN}[\w.]*) import ((?:\w+(?:,\s*)?)+)")
QUOTED = re.compile(r"(?<!`)(`{1,2})([A-Za-z_]\w*(?:\.\w+)*)(\(\))?\1(?!`)")
FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)

Edit = tuple[int, int, bytes]


class Mentions:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._index = plan, plan.index
        self._new_names = frozenset(plan.names.values())
        self._classes, self._functions = self._list_unique()

    def _list_unique(self) -> tuple[dict[str, Definition], dict[str, Definition]]:
        """Classes by name, and functions by name, where one definition of the tree has it."""
        meant: dict[str, set[Definition]] = defaultdict(set)
        for file in self._index.files.values():
            for scope in file.root.walk():
                for name in scope.bindings:
                    meant[name].add(self._index.find(self._index.define(file, scope, name)))
        for info in self._index.types.infos.values():
            for name in info.names:
                meant[name].add(self._index.find(("attribute", info.fullname, name)))
        names = self._index.types.infos
        classes: dict[str, Definition] = {}
        functions: dict[str, Definition] = {}
        for name, roots in meant.items():
            root = next(iter(roots))
            if len(roots) != 1 or root[0] == "local":
                continue
            if name[:1].isupper() and not name.isupper() and root[0] == "global" and f"{root[1]}.{name}" in names:
                classes[name] = root
            elif "_" in name.strip("_") and root in self._plan.names:
                functions[name] = root
        return classes, functions

    def find_in_python(self, file: SourceFile) -> Iterator[Edit]:
        candidates = list(self.find_in_text(file.text, is_prose=True))
        if not candidates:
            return
        starts = [0]
        for line in file.lines:
            starts.append(starts[-1] + len(line) + 1)
        for token in file.tokens:
            if token.type not in (tokenize.STRING, tokenize.COMMENT):
                continue
            line, column = file.place_of(token)
            start = starts[line - 1] + column
            end = start + len(token.string.encode())
            yield from (edit for edit in candidates if start <= edit[0] and edit[1] <= end)

    def find_in_text(self, text: str, is_prose: bool = False) -> Iterator[Edit]:
        found: dict[int, tuple[int, str]] = {}
        for match in DOTTED.finditer(text):
            for start, end, new in self._read_dotted(match):
                found[start] = (end, new)
        if is_prose:
            for match in QUOTED.finditer(text):
                for start, end, new in self._read_quoted(match):
                    found.setdefault(start, (end, new))
        for start, (end, new) in sorted(found.items()):
            if text[start:end] not in self._new_names:
                offset = len(text[:start].encode())
                yield offset, offset + len(text[start:end].encode()), new.encode()

    def find_in_blocks(self, text: str) -> Iterator[Edit]:
        """Names that a fenced block of code imports."""
        for block in FENCED.finditer(text):
            yield from self._read_code(text, block.start(), block.end())

    def find_in_strings(self, file: SourceFile) -> Iterator[Edit]:
        """Names that code in a string imports."""
        if not IMPORTED.search(file.text):
            return
        lengths = [0]
        for line in file.text.splitlines(keepends=True):
            lengths.append(lengths[-1] + len(line))
        for token in file.tokens:
            if token.type == tokenize.STRING and IMPORTED.search(token.string):
                start = lengths[token.start[0] - 1] + token.start[1]
                yield from self._read_code(file.text, start, start + len(token.string))

    def _read_code(self, text: str, start: int, end: int) -> Iterator[Edit]:
        names: dict[str, str] = {}
        for match in IMPORTED.finditer(text, start, end):
            for name in re.findall(r"\w+", match[2]):
                new = self._plan.new_name(("global", match[1], name))
                if new != name:
                    names[name] = new
        for name, new in names.items():
            for match in re.compile(rf"(?:(?<![\w.])|(?<=\\n)){name}(?!\w|\s*=[^=])").finditer(text, start, end):
                offset = len(text[: match.start()].encode())
                yield offset, offset + len(name.encode()), new.encode()

    def _read_dotted(self, match: re.Match[str]) -> Iterator[tuple[int, int, str]]:
        parts = [OWN, *match[1][1:].split(".")]
        known = next(
            end for end in range(len(parts), 0, -1) if end == 1 or ".".join(parts[:end]) in self._index.modules
        )
        module = ".".join(parts[:known])
        rest = parts[known:]
        start = match.start() + len(module) + 1
        if match[2]:
            if rest:
                return
            rest, start = match[2].split("."), match.start(2)
        yield from self._follow(("global", module, rest[0]) if rest else None, rest, start)

    def _read_quoted(self, match: re.Match[str]) -> Iterator[tuple[int, int, str]]:
        parts = match[2].split(".")
        first = self._classes.get(parts[0]) or (self._functions.get(parts[0]) if len(parts) == 1 else None)
        if first is not None:
            yield from self._follow(first, parts, match.start(2))

    def _follow(self, first: Definition | None, parts: list[str], start: int) -> Iterator[tuple[int, int, str]]:
        definition = first
        for part in parts:
            if definition is None:
                return
            new = self._plan.new_name(definition)
            if new != part and self._index.find(definition) in self._plan.names:
                yield start, start + len(part), new
            start += len(part) + 1
            owner = self._index.types.infos.get(f"{definition[1]}.{definition[2]}")
            following = parts[parts.index(part) + 1 :][:1]
            found = self._index.types.find_attribute(owner, following[0]) if owner and following else None
            definition = min(found) if found else None
