"""Bundled CRDs of the custom kinds that GitOps and model serving need, with the names and columns of the originals.

In: the name of a CRD, such as `applications.argoproj.io`. Out: a CustomResourceDefinition that a server accepts.
Never: reads a file before it is needed; needs a cluster. The files use the short notation of `notation`.
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
    """Return the names of all bundled CRDs, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.yaml")))


@cache
def definition(name: str) -> Manifest:
    """Load a bundled CRD (cached); raise UserError if there is none of this name."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        advice = f"did you mean {near[0]}?" if near else f"the bundled definitions are {', '.join(names())}"
        raise UserError(f"no bundled definition is named {name!r}: {advice}")
    return expand(name, _read(FOLDER / f"{name}.yaml"), _shapes())


def definitions(*wanted: str) -> list[Manifest]:
    """Load the given CRDs in this order, or all if none is given."""
    return [definition(name) for name in wanted or names()]


@cache
def _shapes() -> Mapping[str, Any]:
    return _read(SHAPES)


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = load(file.read_text(encoding="utf-8"), where=file.name, strict=True)
    return found
