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
            elif match := _FIELD.match(line):
                _add_field(current, match, comments)
        elif match := _STRUCT.match(line):
            declared = GoType(match[1], _markers(comments))
            package.types[match[1]] = declared
            current = None if match[2] else declared
        elif match := _NAMED.match(line):
            package.types[match[1]] = GoType(match[1], _markers(comments), underlying=match[2])
        elif match := _IMPORT.match(line.removeprefix("import ")):
            package.imports[match[1] or match[2].rsplit("/", 1)[-1]] = match[2]
        # A marker may stand before an empty line that ends its comment, so only code ends it.
        if text:
            comments = []


def _add_field(owner: GoType, match: re.Match[str], comments: list[str]) -> None:
    tags = dict(_TAG.findall(match["tags"]))
    if "json" not in tags:
        return
    name, *options = tags["json"].split(",")
    if name == "-":
        return
    proto = tags.get("protobuf", "").split(",")
    number = int(proto[1]) if len(proto) > 1 else 0
    proto_name = next((part[5:] for part in proto if part.startswith("name=")), "")
    if not name and "inline" not in options:
        name = match["name"] or match["type"].rsplit(".", 1)[-1]
    owner.fields.append(
        GoField(name, match["type"], "omitempty" in options, number, proto_name, tags, _markers(comments))
    )


def _markers(comments: list[str]) -> dict[str, list[str]]:
    markers: dict[str, list[str]] = {}
    for comment in comments:
        if match := _MARKER.match(comment):
            markers.setdefault(match[1], []).append((match[2] or "").strip())
    return markers
