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
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.schema.bundled_crds.crd_notation_expansion import expand_definition

FOLDER: Final = Path(__file__).parent
SHARED_SHAPES_FILE: Final = FOLDER / "_shapes.yaml"


@cache
def list_definition_names() -> tuple[str, ...]:
    """Return the names of all bundled CRDs, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.yaml")))


@cache
def load_definition(name: str) -> Manifest:
    """Load a bundled CRD (cached); raise UserError if there is none of this name."""
    if name not in list_definition_names():
        similar_names = difflib.get_close_matches(name, list_definition_names(), n=1)
        hint = (
            f"did you mean {similar_names[0]}?"
            if similar_names
            else f"the bundled definitions are {', '.join(list_definition_names())}"
        )
        raise UserError(f"no bundled definition is named {name!r}: {hint}")
    return expand_definition(name, _load_yaml(FOLDER / f"{name}.yaml"), _load_shared_shapes())


def load_definitions(*definition_names: str) -> list[Manifest]:
    """Load the given CRDs in this order, or all if none is given."""
    return [load_definition(name) for name in definition_names or list_definition_names()]


@cache
def _load_shared_shapes() -> Mapping[str, Any]:
    return _load_yaml(SHARED_SHAPES_FILE)


def _load_yaml(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_yaml(file.read_text(encoding="utf-8"), where=file.name, strict=True)
    return content
