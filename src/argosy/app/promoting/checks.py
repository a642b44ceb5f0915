"""`argosy check`, on a repository as it would be. In: a survey and files. Out: whether it is green, and a sentence.

Never: a file outside of a folder of its own, which goes with the answer.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from argosy.app.promoting.surveying import Survey
from argosy.model.errors import ArgosyError
from argosy.model.tree import Tree

MOST_BYTES: Final = 64 << 20  # of a repository that is checked; what is larger than a file of YAML is left out
_LARGEST: Final = 1 << 20


def checked(survey: Survey, files: Mapping[str, bytes]) -> tuple[bool, str]:
    from argosy.advise.finding import Severity
    from argosy.app.checking.checking import check

    with TemporaryDirectory(prefix="argosy-promote-") as folder:
        _export(survey.tree, files, Path(folder))
        try:
            found = check([folder], talk=lambda _: None)
        except ArgosyError as error:
            return False, f"cannot be judged: {error}".replace(f"{folder}/", "")
        bad = [each for each in found.findings if each.severity.weight >= Severity.WARNING.weight]
        if not bad:
            return True, f"no errors, no warnings in {found.objects} objects"
        first = bad[0]
        place = str(first.sight.place).replace(f"{folder}/", "")
        return False, f"{len(bad)} findings, such as {place}: {first.rule.id} {first.sight.message}"


def _export(tree: Tree, files: Mapping[str, bytes], folder: Path) -> None:
    left = MOST_BYTES
    for path, content in _contents(tree, files):
        if len(content) > _LARGEST:
            continue
        left -= len(content)
        if left < 0:
            return
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _contents(tree: Tree, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    waiting = [""]
    while waiting:
        here = waiting.pop()
        for entry in tree.listing(here):
            path = posixpath.join(here, entry.name)
            if os.path.normpath(path) != path or path.startswith(("/", "../")):
                continue
            if entry.kind == "folder":
                waiting.append(path)
            elif entry.kind == "file":
                yield path, files[path] if path in files else tree.read(path)
