"""Read tables of renames.

In: text files; a line `[module]` (or `[path/to/file.py]`) opens the section of a module, and each further line renames:
`module -> new.path`, `name -> new`, `Class.attribute -> new`, `function(parameter) -> new`, or
`function: local -> new, other -> new` (`<module>:` for loops and comprehensions outside functions). `#` starts a
comment.
Out: entries in order, and complaints about lines that cannot be read. Never: looks at source files.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SECTION = re.compile(r"\[([\w./-]+)\]$")
PAIR = re.compile(r"([\w.]+)\s*(?:->|→)\s*([\w.]+)$")
PARAMETER = re.compile(r"([\w.]+)\((\w+)\)\s*(?:->|→)\s*(\w+)$")
LOCALS = re.compile(r"([\w.]+|<module>)(?:\(\))?:\s*(.*)$")


@dataclass(frozen=True)
class Entry:
    source: str  # table:line
    module: str
    kind: str  # module, name, parameter, local
    path: tuple[str, ...]  # of the definition; for parameters and locals, of the function
    old: str
    new: str

    def __str__(self) -> str:
        path = ".".join(self.path)
        what = {"parameter": f"{path}({self.old})", "local": f"{path or '<module>'}: {self.old}"}.get(self.kind, path)
        return f"{self.source}: {self.module}: {what} -> {self.new}"


def read_tables(paths: Iterable[Path]) -> tuple[list[Entry], list[str]]:
    entries: list[Entry] = []
    complaints: list[str] = []
    for path in paths:
        module = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.partition("#")[0].strip()
            source = f"{path.name}:{number}"
            if not text:
                continue
            if section := SECTION.match(text):
                module = section[1]
                continue
            found = list(_read_line(source, module, text))
            if not found:
                complaints.append(f"{source}: cannot read: {text}")
            for entry in found:
                if entry.kind != "module" and (not entry.new.isidentifier() or keyword.iskeyword(entry.new)):
                    complaints.append(f"{entry}: not a name")
                elif entry.old != entry.new:
                    entries.append(entry)
    return entries, complaints


def _read_line(source: str, module: str, text: str) -> Iterable[Entry]:
    if match := PARAMETER.match(text):
        yield Entry(source, module, "parameter", tuple(match[1].split(".")), match[2], match[3])
    elif match := LOCALS.match(text):
        path = () if match[1] == "<module>" else tuple(match[1].split("."))
        for part in filter(None, (part.strip() for part in re.split(r"[,;]", match[2]))):
            if pair := PAIR.match(part):
                yield Entry(source, module, "local", path, pair[1], pair[2])
            else:
                yield Entry(source, module, "local", path, part, "?")
    elif match := PAIR.match(text):
        if match[1] == "module":
            yield Entry(source, module, "module", (), module, match[2])
        else:
            path = tuple(match[1].split("."))
            yield Entry(source, module, "name", path, path[-1], match[2].rpartition(".")[2])
