"""Tracks which entry of a kustomization is being processed. In: its fields. Out: the entry's path in the file.

Never: reads the file; `error_lines` finds the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.errors import UserError
from argosy.gitops.render.kustomize.error_lines import APPLICATION_LOCATION, KustomizationPath, ReadFile, set_error_line
from argosy.gitops.render.kustomize.kustomization_file import KustomizationFile


class EntryCursor:
    """A kustomization and its current entry, for error messages and origins."""

    def __init__(self, kustomization: KustomizationFile) -> None:
        self.kustomization = kustomization
        self.file = kustomization.file
        self.file_fields = kustomization.fields  # as in the file, without the Application's overrides
        self.current_path: KustomizationPath = ()

    def iterate_entries(self, field: str) -> Iterator[Any]:
        """Iterate over a list field; each entry is the current one while it is processed."""
        for i, entry in enumerate(self.kustomization.get_list(field)):
            self.current_path = (field, i)
            yield entry

    def get_current_entry(self) -> Any:
        value: Any = self.kustomization.fields
        for step in self.current_path:
            value = value[step] if isinstance(step, int) else value.get(step)
        return value

    def find_path_in_file(self) -> KustomizationPath | None:
        """Return the path of the current entry in the file; None if the Application set it."""
        entry_path = self.current_path
        if not entry_path or self.kustomization.fields is self.file_fields:
            return entry_path
        current_value: Any
        current_value, file_value = (
            self.kustomization.fields.get(str(entry_path[0])),
            self.file_fields.get(str(entry_path[0])),
        )
        if current_value is file_value or len(entry_path) == 1 or not isinstance(entry_path[1], int):
            return entry_path if current_value == file_value or isinstance(file_value, dict) else None
        index = next(
            (index for index, item in enumerate(file_value or ()) if item == current_value[entry_path[1]]), None
        )
        return None if index is None else (entry_path[0], index, *entry_path[2:])

    def set_error_location(self, error: UserError, read: ReadFile) -> None:
        """Set the line of an error to the current entry, unless a closer location is known."""
        entry_path = self.find_path_in_file()
        if entry_path is None and error.where in ("", self.file):
            error.where = APPLICATION_LOCATION
        set_error_line(error, self.file, entry_path or (), read)
