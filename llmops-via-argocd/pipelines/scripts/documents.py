"""Reads YAML files for the checks.

In: paths. Out: documents as plain data, with their file; findings as lines of text.
Never: ignores a duplicate key, as YAML parsers usually do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import yaml
except ImportError:
    sys.exit("The checks need PyYAML: python3 -m pip install -r pipelines/requirements.txt")

FOLDER = Path(__file__).resolve().parents[2]


class Broken(Exception):
    """Invalid YAML; the message contains the line."""


class Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str) -> list[Any]:
    try:
        return [document for document in yaml.load_all(text, Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Broken(f"line {mark.line + 1}: {error.problem}" if mark else str(error.problem)) from None
    except yaml.YAMLError as error:
        raise Broken(" ".join(str(error).split())) from None


def read(path: Path) -> list[dict[str, Any]]:
    """Return the mappings of a file. Exit on invalid YAML, which the linter reports."""
    try:
        return [document for document in parse(path.read_text(encoding="utf-8")) if isinstance(document, dict)]
    except (Broken, UnicodeDecodeError, OSError) as error:
        sys.exit(f"{shown(path)}: {error}")


def rendered(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the manifests of each environment from the output of render.sh."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.yaml"))}
    return found or sys.exit(f"{folder}: nothing was rendered; run pipelines/scripts/render.sh first")


def shown(path: Path) -> str:
    return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else str(path)


def name_of(manifest: dict[str, Any]) -> str:
    return f"{manifest.get('kind')}/{dig(manifest, 'metadata', 'name')}"


def dig(value: Any, *path: str) -> Any:
    """Return the value at the path, or None: a manifest under test may have any structure."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(child)


def conclude(findings: list[str], checked: str) -> None:
    for finding in findings:
        print(f"✗ {finding}")
    if findings:
        sys.exit(1)
    print(f"✓ {checked}")
