"""Fuzz YAML edits: the result has the requested value, and no other lines change.

ARGOSY_PROOF_SEED repeats a run.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ArgosyError, ManifestError
from argosy.kube.objects import dump_yaml_documents, read_yaml_documents, yaml_edits, yaml_entry_splice
from argosy.kube.objects.yaml_edits import REMOVED, YamlEdit, edited
from argosy.kube.objects.yaml_entry_splice import splice_entry
from argosy.kube.objects.yaml_node_offsets import OutlineEntry, OutlineNode
from support.fuzzer import Found, feed, mutated

pytestmark = pytest.mark.tier("test", "prove")
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "llmops-via-argocd", "deploy")
VALUES: list[Any] = [
    "x", "a: b", "yes", "1", "line\nmore\n", " lead", "trail ", "#c", "", 1, 0, True, None, 1.5, [], {}, ["a"],
    {"a": 1}, {"a": {"b": ["c", {"d": 1, "e": "f"}]}}, "é\u2028", "a # b", "[x]", "x\n\ny", "x\n\n", [[1, 2], []],
    "2020-01-01", "image:v1.2", "- a", "---", "*a", "\t", "a\tb", "\U0001f4a9", "&a", "!x", "%", "@", "null",
    "0x1f", "=", "<<",
]  # fmt: skip
KEYS = ["new", "n/a", "y", "a b", "<<", "1", "", "#", "null"]


def ours() -> list[str]:
    """Return the YAML files of this repository that parse as plain YAML (no templates)."""
    texts = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.y*ml")):
            text = path.read_bytes().decode()
            if len(text) < 6000:
                try:
                    read_yaml_documents(text)
                except ArgosyError:
                    continue
                texts.append(text)
    return texts


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in items:
        yield from paths(child, (*path, step))


def get_value(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def some_edit(rng: random.Random, value: Any) -> YamlEdit:
    path = rng.choice(list(paths(value)))
    here, how = get_value(value, path), rng.random()
    if how < 0.3 and path:
        return YamlEdit(path)
    if how < 0.5 and isinstance(here, dict | list):
        return YamlEdit((*path, rng.choice(KEYS) if isinstance(here, dict) else len(here)), rng.choice(VALUES))
    if how < 0.7 and isinstance(here, list):
        here = copy.deepcopy(here)
        here.insert(rng.randrange(len(here) + 1), rng.choice(VALUES))
        return YamlEdit(path, here)
    return YamlEdit(path, rng.choice(VALUES))


def applied(value: Any, edit: YamlEdit) -> Any:
    """Apply the edit to the parsed value: a second, independent implementation."""
    if not edit.path:
        return edit.value
    value = copy.deepcopy(value)
    above, last = get_value(value, edit.path[:-1]), edit.path[-1]
    if edit.value is REMOVED:
        del above[last]
    elif isinstance(last, int) and last == len(above):
        above.append(edit.value)
    else:
        above[last] = edit.value
    return value


def as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def lost(before: str, after: str) -> list[str]:
    """Return the old lines from the first to the last changed line."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old


def changed(rng: random.Random, text: str) -> str:
    if rng.random() < 0.1:
        text = text.replace("\n", "\r\n")
    return text.removesuffix("\n").removesuffix("\r") if rng.random() < 0.1 else text


def check_edits(rng: random.Random, count: int) -> None:
    """Make that many edits; check that each has the requested value and changes no other line."""
    texts, refused = ours(), 0
    assert len(texts) > 30
    for _ in range(count):
        text = changed(rng, rng.choice(texts))
        values = read_yaml_documents(text)
        filled = [number for number, value in enumerate(values) if value is not None]
        if not filled:
            continue
        document = rng.randrange(len(filled))
        edit = some_edit(rng, values[filled[document]])
        try:
            after = edited(text, [edit], document_index=document)
        except ManifestError as error:
            assert "edit it by hand" in str(error), (text, edit)
            refused += 1
            continue
        values[filled[document]] = applied(values[filled[document]], edit)
        assert as_json(read_yaml_documents(after)) == as_json(values), f"says something else after {edit}: {text}"
        check_lines(text, after, edit, at_or_none(read_yaml_documents(text)[filled[document]], edit.path))
    assert refused < count / 20, "an editor that refuses this often edits nothing"


def test_edits_change_the_requested_value_and_no_other_lines(rng: random.Random, size: Callable[..., int]) -> None:
    check_edits(rng, size(20_000, test=100))


def at_or_none(value: Any, path: tuple[str | int, ...]) -> Any:
    try:
        return get_value(value, path)
    except (KeyError, IndexError, TypeError):
        return None


def check_lines(text: str, after: str, edit: YamlEdit, old: Any) -> None:
    if not edit.path or isinstance(old, dict | list) or (isinstance(old, str) and "\n" in old):
        return
    taken = lost(text, after)
    assert len(taken) <= 3 + len(str(old)) // 30, f"{edit} touches other lines, {len(taken)}: {text}"


def check_mutated(rng: random.Random, count: int) -> None:
    """Edit that many malformed YAML texts; none may raise anything but an ArgosyError."""
    good = [text.encode() for text in ours()] + [
        b"a: &x {b: [1, 2]}\nc: *x\nd:\n  <<: *x\n", b"? a\n: b\n", b"- - a\n  - b: |+\n      x\n\n  -\n-\n", b"a\r\nb",
    ]  # fmt: skip

    def take(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        values = read_yaml_documents(text)
        filled = [value for value in values if value is not None]
        if filled:
            edited(text, [some_edit(rng, filled[0])])

    def short() -> Iterator[bytes]:
        for _ in range(count):
            whole = rng.choice(good)
            begin = rng.randrange(len(whole))
            yield mutated(rng, whole[begin : begin + rng.choice((40, 200, 800))], good)

    feed(short(), take)


def test_malformed_yaml_is_edited_or_rejected(rng: random.Random, size: Callable[[int], int]) -> None:
    check_mutated(rng, size(20_000))


def drop_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_comments(*args: Any) -> str:
        lines = splice_entry(*args).splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("#"))

    monkeypatch.setattr(yaml_edits, "splice_entry", without_comments)


def write_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        yaml_edits, "splice_entry", lambda *args: dump_yaml_documents(read_yaml_documents(splice_entry(*args)))
    )


def edit_another_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_edits, "_find_document_index", lambda values, document, where: len(values) - 1)


@pytest.mark.parametrize(
    ("seed_bug", "finding"),
    [
        (drop_comments, "touches other lines"),
        (write_anew, "touches other lines"),
        (edit_another_document, "says something else"),
    ],
)
def test_fuzzer_detects_seeded_editor_bugs(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None], finding: str
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(AssertionError, match=finding):
        check_edits(rng, 300)


def test_fuzzer_detects_an_editor_that_requires_existing_keys(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path may end at a key that does not exist yet; here its lookup raises."""

    def entry(node: OutlineNode, step: str | int) -> OutlineEntry:
        return node.entries[step] if isinstance(step, int) else {child.key: child for child in node.entries}[step]

    monkeypatch.setattr(yaml_entry_splice, "_find_entry", entry)
    with pytest.raises(Found, match=r"^(KeyError|IndexError): "):
        check_mutated(rng, 5_000)
