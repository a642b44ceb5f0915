"""Accepts outputs of a run as golden outputs.

In: an executed notebook, a golden notebook, cell indexes. Out: the golden notebook with the new outputs. Never: changes
other cells, or sources.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from argosy.errors import UserError
from argosy.features.notebooks.files.notebook_file import NotebookData
from argosy.features.notebooks.runner.golden_notebook_comparison import CellDifference, compare_notebooks
from argosy.features.notebooks.runner.run_request import ComparisonConfig


def list_differences(
    executed: NotebookData, golden: NotebookData, comparison: ComparisonConfig
) -> list[CellDifference]:
    """Differences that can be accepted."""
    return list(compare_notebooks(executed, golden, comparison).differences)


def accept_outputs(
    executed: NotebookData, golden: NotebookData, cells: Collection[int], differences: list[CellDifference]
) -> NotebookData:
    """The new golden notebook; without cell indexes, all differences are accepted."""
    unknown_cells = sorted(set(cells) - {difference.cell for difference in differences})
    if unknown_cells:
        cells_text = ", ".join(str(difference.cell) for difference in differences) or "none"
        raise UserError(
            f"cell {unknown_cells[0]}: does not differ from the golden notebook; cells that do: {cells_text}"
        )
    accepted_differences = [difference for difference in differences if not cells or difference.cell in cells]
    if any(difference.kind in ("missing_cell", "extra_cell") for difference in accepted_differences):
        if len(accepted_differences) == len(differences):
            return _copy_without_parameters(executed)
        message = "cells were added or removed; accept all differences, without --cells"
        raise UserError(message)
    new_golden = copy.deepcopy(golden)
    index_map = _map_cell_indexes(executed, golden)
    for difference in accepted_differences:
        new_cell = copy.deepcopy(executed["cells"][difference.cell])
        old_cell = new_golden["cells"][index_map[difference.cell]]
        if new_cell.get("cell_type") == "code" and old_cell.get("cell_type") == "code":
            old_cell["outputs"], old_cell["execution_count"] = (
                new_cell.get("outputs") or [],
                new_cell.get("execution_count"),
            )
        else:
            new_golden["cells"][index_map[difference.cell]] = new_cell
    return new_golden


def _copy_without_parameters(executed: NotebookData) -> NotebookData:
    copied: dict[str, Any] = copy.deepcopy(executed)
    (copied.get("metadata") or {}).pop("papermill", None)
    return copied


def _map_cell_indexes(executed: NotebookData, golden: NotebookData) -> dict[int, int]:
    """Map cell indexes of the executed notebook to the golden one: the same, since both have equally many cells."""
    if len(executed["cells"]) != len(golden["cells"]):
        raise UserError("the notebooks do not have the same cells; accept all differences, without --cells")
    return {index: index for index in range(len(executed["cells"]))}
