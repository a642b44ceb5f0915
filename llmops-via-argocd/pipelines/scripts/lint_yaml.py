#!/usr/bin/env python3
"""Lints every YAML file of the folder, and the patches in kustomizations, which are YAML inside YAML.

In: nothing. Out: one line per finding; exit code 1 if there is one. Never: changes a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from documents import FOLDER, InvalidYaml, format_path, parse_documents, report

NEEDS_VALUE = ("add", "replace", "test")
NEEDS_FROM = ("move", "copy")


def lint_text(text: str) -> list[str]:
    findings = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\r"):
            findings.append(f"line {number}: Windows line ending; use LF")
        elif line != line.rstrip():
            findings.append(f"line {number}: spaces at the end")
        if "\t" in line[: len(line) - len(line.lstrip())]:
            findings.append(f"line {number}: a tab in the indentation")
    return findings if text.endswith("\n") else [*findings, "no line break at the end"]


def lint_operation(operation: Any) -> str:
    if not isinstance(operation, dict):
        return f"{operation!r} is not an operation"
    kind = operation.get("op")
    if kind not in (*NEEDS_VALUE, *NEEDS_FROM, "remove"):
        return f"op {kind!r} is unknown"
    if not str(operation.get("path", "")).startswith("/"):
        return f"{kind}: the path must begin with /"
    if kind in NEEDS_VALUE and "value" not in operation:
        return f"{kind} {operation['path']}: there is no value; is it indented like the path?"
    return f"{kind} {operation['path']}: there is no from" if kind in NEEDS_FROM and "from" not in operation else ""


def lint_patch(patch: Any) -> list[str]:
    if not isinstance(patch, dict):
        return [f"{patch!r} is not a patch"]
    if "patch" not in patch:
        return [] if "path" in patch else ["neither patch nor path; is it indented like the target?"]
    try:
        documents = parse_documents(str(patch["patch"]))
    except InvalidYaml as error:
        return [f"{error}; is everything indented correctly?"]
    if len(documents) == 1 and isinstance(documents[0], list):
        if "target" not in patch:
            return ["a list of operations needs a target"]
        return [finding for operation in documents[0] if (finding := lint_operation(operation))]
    is_manifest = documents and all(isinstance(document, dict) for document in documents)
    return [] if is_manifest else ["neither operations nor a manifest"]


def lint_document(document: Any) -> list[str]:
    if not isinstance(document, dict):
        return [f"a document is a {type(document).__name__}, not a mapping"]
    if document.get("kind") not in ("Kustomization", "Component"):
        return []
    patches = document.get("patches") or []
    return [f"patch {number}: {finding}" for number, patch in enumerate(patches, 1) for finding in lint_patch(patch)]


def lint(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    findings = lint_text(text)
    try:
        for document in parse_documents(text):
            findings += lint_document(document)
    except InvalidYaml as error:
        findings.append(str(error))
    return [f"{format_path(path)}: {finding}" for finding in findings]


if __name__ == "__main__":
    files = sorted(path for pattern in ("*.yaml", "*.yml") for path in FOLDER.rglob(pattern))
    report([finding for path in files for finding in lint(path)], f"{len(files)} YAML files are well formed")
