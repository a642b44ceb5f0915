"""Accepts outputs of a run as golden outputs.

In: an executed notebook, a golden notebook, cell indexes. Out: the golden notebook with the new outputs. Never: changes
other cells, or sources.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from argosy.errors import UserError
from argosy.features.notebooks.files.notebook_file import Notebook
from argosy.features.notebooks.runner.golden import Difference, compared
from argosy.features.notebooks.runner.order import Comparison


def waiting(executed: Notebook, golden: Notebook, comparison: Comparison) -> list[Difference]:
    """Differences that can be accepted."""
    return list(compared(executed, golden, comparison).differences)


def accepted(executed: Notebook, golden: Notebook, cells: Collection[int], differences: list[Difference]) -> Notebook:
    """The new golden notebook; without cell indexes, all differences are accepted."""
    unknown = sorted(set(cells) - {each.cell for each in differences})
    if unknown:
        known = ", ".join(str(each.cell) for each in differences) or "none"
        raise UserError(f"cell {unknown[0]}: does not differ from the golden notebook; cells that do: {known}")
    chosen = [each for each in differences if not cells or each.cell in cells]
    if any(each.kind in ("missing_cell", "extra_cell") for each in chosen):
        if len(chosen) == len(differences):
            return _stripped(executed)
        message = "cells were added or removed; accept all differences, without --cells"
        raise UserError(message)
    found = copy.deepcopy(golden)
    places = _places(executed, golden)
    for each in chosen:
        new = copy.deepcopy(executed["cells"][each.cell])
        old = found["cells"][places[each.cell]]
        if new.get("cell_type") == "code" and old.get("cell_type") == "code":
            old["outputs"], old["execution_count"] = new.get("outputs") or [], new.get("execution_count")
        else:
            found["cells"][places[each.cell]] = new
    return found


def _stripped(executed: Notebook) -> Notebook:
    found: dict[str, Any] = copy.deepcopy(executed)
    (found.get("metadata") or {}).pop("papermill", None)
    return found


def _places(executed: Notebook, golden: Notebook) -> dict[int, int]:
    """Map cell indexes of the executed notebook to the golden one: the same, since both have equally many cells."""
    if len(executed["cells"]) != len(golden["cells"]):
        raise UserError("the notebooks do not have the same cells; accept all differences, without --cells")
    return {index: index for index in range(len(executed["cells"]))}
