"""Sorts the output of model server processes into one log per model.

In: process output, where lines may begin with the host of a model. Out: a log file per host, and its lines. Never: more
than a log file holds; a line of one model in the log of another.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from argosy.sandbox.simulators.pod_processes import container_log

LONGEST: Final = 16 << 10  # bytes of a line; a longer one is split


class Pages:
    def __init__(self, folder: Path) -> None:
        """Delete the logs of an earlier run."""
        self._folder = folder
        self._open: dict[str, container_log.Journal] = {}
        shutil.rmtree(folder, ignore_errors=True)

    def begin(self, host: str) -> None:
        """Start an empty log for a new Pod of this host."""
        self.end(host)
        self._open[host] = container_log.Journal(self._file(host))

    def end(self, host: str) -> None:
        if known := self._open.pop(host, None):
            known.close()
            for suffix in (".log", ".older"):
                self._file(host).with_suffix(suffix).unlink(missing_ok=True)

    def hearing(self, host: str = "") -> Callable[[bytes], None]:
        """Return an output handler for one process.

        With a host, every line belongs to that host; without one, every line begins with its host.
        """
        rest = b""

        def hear(data: bytes) -> None:
            nonlocal rest
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST:
                lines, rest = [*lines, rest], b""
            found: dict[str, bytearray] = {}
            for line in lines:
                first, _, told = line.partition(b" ")
                named = first.decode(errors="replace")
                is_told = named == host if host else named in self._open
                found.setdefault(named if is_told else host, bytearray()).extend((told if is_told else line) + b"\n")
            for each, text in found.items():
                if each in self._open:
                    self._open[each].write(bytes(text))

        return hear

    def lines(self, host: str, *, tail: int | None, follow: bool, is_over: Callable[[], bool]) -> AsyncIterator[str]:
        return container_log.lines(self._file(host), tail=tail, follow=follow, is_over=is_over)

    def close(self) -> None:
        for host in list(self._open):
            self.end(host)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, host: str) -> Path:
        return self._folder / f"{host}.log"
