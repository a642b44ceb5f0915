"""Tracks which entry of a kustomization is being processed. In: its fields. Out: the entry's path in the file.

Never: reads the file; `error_lines` finds the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.errors import UserError
from argosy.gitops.render.kustomize.error_lines import APPLICATION, Path, Read, locate
from argosy.gitops.render.kustomize.kustomization_file import Kustomization


class Cursor:
    """A kustomization and its current entry, for error messages and origins."""

    def __init__(self, kustomization: Kustomization) -> None:
        self.kustomization = kustomization
        self.file = kustomization.file
        self.own = kustomization.fields  # as in the file, without the Application's overrides
        self.at: Path = ()

    def entries(self, field: str) -> Iterator[Any]:
        """Iterate over a list field; each entry is the current one while it is processed."""
        for number, each in enumerate(self.kustomization.listed(field)):
            self.at = (field, number)
            yield each

    def entry_at_hand(self) -> Any:
        value: Any = self.kustomization.fields
        for step in self.at:
            value = value[step] if isinstance(step, int) else value.get(step)
        return value

    def written_at(self) -> Path | None:
        """Return the path of the current entry in the file; None if the Application set it."""
        at = self.at
        if not at or self.kustomization.fields is self.own:
            return at
        now: Any
        now, own = self.kustomization.fields.get(str(at[0])), self.own.get(str(at[0]))
        if now is own or len(at) == 1 or not isinstance(at[1], int):
            return at if now == own or isinstance(own, dict) else None
        place = next((place for place, each in enumerate(own or ()) if each == now[at[1]]), None)
        return None if place is None else (at[0], place, *at[2:])

    def locate(self, error: UserError, read: Read) -> None:
        """Set the line of an error to the current entry, unless a closer location is known."""
        at = self.written_at()
        if at is None and error.where in ("", self.file):
            error.where = APPLICATION
        locate(error, self.file, at or (), read)
