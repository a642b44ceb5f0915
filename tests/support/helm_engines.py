"""Runs tests with both Helm engines (the helm binary and the library), on small charts.

In: file contents by path. Out: the rendered manifests. Never: uses the network.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import pytest

from argosy.gitops.application import Application, Destination, HelmOptions
from argosy.gitops.render import helm
from argosy.gitops.render.helm.engine_choice import find_helm_program, has_helm_library
from argosy.gitops.render.helm.engine_interface import HelmEngine
from argosy.gitops.render.helm.helm_binary_engine import HelmProgram
from argosy.gitops.render.helm.helm_library_engine import HelmLibrary
from support.file_trees import TextTree

APP = Application(name="web", destination=Destination(namespace="shop"))
CHART = "apiVersion: v2\nname: shop\nversion: 1.2.3\n"
SHOWN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata:\n  values: {{ toJson .Values | quote }}\n"

_PROGRAM = pytest.param(
    "program", marks=pytest.mark.skipif(not find_helm_program(), reason="helm: there is none on PATH (make install)")
)
_LIBRARY = pytest.param(
    "library",
    marks=pytest.mark.skipif(not has_helm_library(), reason="helm-python-sdk is not installed (make install)"),
)
both_engines = pytest.mark.parametrize("engine", [_PROGRAM, _LIBRARY])


def _in_test_all(engine: Any) -> Any:
    return pytest.param(*engine.values, marks=[*engine.marks, pytest.mark.tier("all")])


# For tests where both engines behave the same: `make test` runs only one of them, and the tests alternate.
program_first = pytest.mark.parametrize("engine", [_PROGRAM, _in_test_all(_LIBRARY)])
library_first = pytest.mark.parametrize("engine", [_in_test_all(_PROGRAM), _LIBRARY])


def engines_in_turn(name: str, cases: Iterable[Any], *, in_test_all: Container[Any] = ()) -> Any:
    """Parametrize every case with both engines. `make test` runs one of them, usually the binary, which is faster.
    The cases in `in_test_all` run only in `make test-all`."""
    turns = ([_PROGRAM, _in_test_all(_LIBRARY)],) * 5 + ([_in_test_all(_PROGRAM), _LIBRARY],)
    rows = [
        pytest.param(
            *engine.values,
            case,
            marks=(_in_test_all(engine) if case in in_test_all else engine).marks,
            id=f"{engine.values[0]}-{case}",
        )
        for number, case in enumerate(cases)
        for engine in turns[number % len(turns)]
    ]
    return pytest.mark.parametrize(("engine", name), rows)


needs_both = pytest.mark.skipif(
    not (find_helm_program() and has_helm_library()), reason="helm or helm-python-sdk is missing"
)
needs_one = pytest.mark.skipif(
    not (find_helm_program() or has_helm_library()), reason="helm and helm-python-sdk are missing"
)


def the_engine(name: str) -> HelmEngine:
    return HelmProgram(find_helm_program()) if name == "program" else HelmLibrary()


def a_chart(files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> TextTree:
    """Build a repository with a chart in charts/shop; paths with a leading slash are relative to the repository."""
    texts: dict[str, str | bytes] = {"charts/shop/Chart.yaml": CHART}
    texts |= {path[1:] if path.startswith("/") else f"charts/shop/{path}": text for path, text in files.items()}
    return TextTree(
        texts, {path[1:] if path[0] == "/" else f"charts/shop/{path}": to for path, to in (links or {}).items()}
    )


def render(engine: str | None, tree: TextTree, options: HelmOptions | None = None, **more: Any) -> list[dict[str, Any]]:
    more.setdefault("kube_version", "1.32.0")
    more.setdefault("app", APP)
    selected = the_engine(engine) if engine else None
    return helm.template(tree, more.pop("path", "charts/shop"), options=options, engine=selected, **more).manifests
