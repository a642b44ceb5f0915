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


class InvalidYaml(Exception):
    """Invalid YAML; the message contains the line."""


class UniqueKeyLoader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen_keys: set[str] = set()
        for key, _ in node.value:
            if key.value in seen_keys:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
            seen_keys.add(key.value)
        return super().construct_mapping(node, deep)


def parse_documents(text: str) -> list[Any]:
    try:
        return [document for document in yaml.load_all(text, UniqueKeyLoader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise InvalidYaml(f"line {mark.line + 1}: {error.problem}" if mark else str(error.problem)) from None
    except yaml.YAMLError as error:
        raise InvalidYaml(" ".join(str(error).split())) from None


def read_mappings(path: Path) -> list[dict[str, Any]]:
    """Return the mappings of a file. Exit on invalid YAML, which the linter reports."""
    try:
        return [
            document for document in parse_documents(path.read_text(encoding="utf-8")) if isinstance(document, dict)
        ]
    except (InvalidYaml, UnicodeDecodeError, OSError) as error:
        sys.exit(f"{format_path(path)}: {error}")


def read_environments(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the manifests of each environment from the output of render.sh."""
    environments = {path.stem: read_mappings(path) for path in sorted(folder.glob("*.yaml"))}
    return environments or sys.exit(f"{folder}: nothing was rendered; run pipelines/scripts/render.sh first")


def format_path(path: Path) -> str:
    return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else str(path)


def format_name(manifest: dict[str, Any]) -> str:
    return f"{manifest.get('kind')}/{get_nested(manifest, 'metadata', 'name')}"


def get_nested(value: Any, *path: str) -> Any:
    """Return the value at the path, or None: a manifest under test may have any structure."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def iterate_mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from iterate_mappings(child)


def report(findings: list[str], checked: str) -> None:
    for finding in findings:
        print(f"✗ {finding}")
    if findings:
        sys.exit(1)
    print(f"✓ {checked}")
