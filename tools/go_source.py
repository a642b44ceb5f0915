"""Reads Go type declarations. In: a package's source text. Out: structs, their fields and tags, named types, markers.

Never: understands all of Go. It reads what API packages hold: structs, named types, imports, comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_FIELD = re.compile(r"^\t(?:(?P<name>\w+)[ \t]+)?(?P<type>[^\s`]+)[ \t]*`(?P<tags>[^`]*)`")
_TAG = re.compile(r'(\w+):"((?:[^"\\]|\\.)*)"')
_STRUCT = re.compile(r"^type (\w+) struct ?\{(\})?")
_NAMED = re.compile(r"^type (\w+) =? ?([^\s{]+)$")
_IMPORT = re.compile(r'^\s*(?:(\w+) )?"([\w./-]+)"$')
_MARKER = re.compile(r"^\+([\w:.()-]+)(?:=(.*))?$")


@dataclass(frozen=True)
class GoField:
    """`name` is the JSON name, empty for an embedded struct that JSON flattens."""

    name: str
    go_type: str
    omitempty: bool
    number: int
    proto_name: str
    tags: dict[str, str]
    markers: dict[str, list[str]]

    def marker(self, name: str) -> str:
        return (self.markers.get(name) or [""])[0]


@dataclass
class GoType:
    """A struct has `fields`; every other named type has `underlying`."""

    name: str
    markers: dict[str, list[str]]
    underlying: str = ""
    fields: list[GoField] = field(default_factory=list)


@dataclass
class GoPackage:
    path: str
    types: dict[str, GoType] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """`metav1.Time` and `Pod` as full names: import path, dot, name."""
        alias, dot, local = name.rpartition(".")
        return f"{self.imports[alias]}.{local}" if dot else f"{self.path}.{name}"


def read_package(path: str, folder: Path) -> GoPackage:
    package = GoPackage(path)
    for file in sorted(folder.glob("*.go")):
        if not file.name.endswith("_test.go") and "generated" not in file.name:
            _read_file(package, file.read_text().splitlines())
    return package


def _read_file(package: GoPackage, lines: list[str]) -> None:
    comments: list[str] = []
    current: GoType | None = None
    for line in lines:
        text = line.strip()
        if text.startswith("//"):
            comments.append(text[2:].strip())
            continue
        if current is not None:
            if line.startswith("}"):
                current = None
            elif found := _FIELD.match(line):
                _add_field(current, found, comments)
        elif found := _STRUCT.match(line):
            declared = GoType(found[1], _markers(comments))
            package.types[found[1]] = declared
            current = None if found[2] else declared
        elif found := _NAMED.match(line):
            package.types[found[1]] = GoType(found[1], _markers(comments), underlying=found[2])
        elif found := _IMPORT.match(line.removeprefix("import ")):
            package.imports[found[1] or found[2].rsplit("/", 1)[-1]] = found[2]
        # A marker may stand before an empty line that ends its comment, so only code ends it.
        if text:
            comments = []


def _add_field(owner: GoType, found: re.Match[str], comments: list[str]) -> None:
    tags = dict(_TAG.findall(found["tags"]))
    if "json" not in tags:
        return
    name, *options = tags["json"].split(",")
    if name == "-":
        return
    proto = tags.get("protobuf", "").split(",")
    number = int(proto[1]) if len(proto) > 1 else 0
    proto_name = next((part[5:] for part in proto if part.startswith("name=")), "")
    if not name and "inline" not in options:
        name = found["name"] or found["type"].rsplit(".", 1)[-1]
    owner.fields.append(
        GoField(name, found["type"], "omitempty" in options, number, proto_name, tags, _markers(comments))
    )


def _markers(comments: list[str]) -> dict[str, list[str]]:
    markers: dict[str, list[str]] = {}
    for comment in comments:
        if found := _MARKER.match(comment):
            markers.setdefault(found[1], []).append((found[2] or "").strip())
    return markers
