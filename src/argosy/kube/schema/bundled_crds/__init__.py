"""The definitions of the custom kinds that GitOps and model serving need, with the names and columns of the originals.

In: the name of a definition, such as `applications.argoproj.io`. Out: a CustomResourceDefinition that a server takes.
Never: reads a file before somebody asks for it, or needs a cluster. Each file is written in the notation of `notation`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.objects import Manifest, load
from argosy.kube.schema.bundled_crds.notation import expand

FOLDER: Final = Path(__file__).parent
SHAPES: Final = FOLDER / "_shapes.yaml"


@cache
def names() -> tuple[str, ...]:
    """Of all definitions, in order."""
    return tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.yaml")))


@cache
def definition(name: str) -> Manifest:
    """Read once. Raises UserError where there is none of this name."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names())}"
        raise UserError(f"there is no definition {name!r}: {advice}")
    return expand(name, _read(FOLDER / f"{name}.yaml"), _shapes())


def definitions(*wanted: str) -> list[Manifest]:
    """These, in this order; all, where none is named."""
    return [definition(name) for name in wanted or names()]


@cache
def _shapes() -> Mapping[str, Any]:
    return _read(SHAPES)


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = load(file.read_text(encoding="utf-8"), where=file.name, strict=True)
    return found
