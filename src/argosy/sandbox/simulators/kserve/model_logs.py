"""What models print, sorted by model.

In: what processes print, where lines may begin with the host of a model. Out: a journal for each host, and its lines.
Never: more than a journal holds; a line of one model in the journal of another.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from argosy.sandbox.simulators.pod_processes import container_log

LONGEST: Final = 16 << 10  # bytes of a line; a longer one is cut into several


class Pages:
    def __init__(self, folder: Path) -> None:
        """What an earlier run left there goes."""
        self._folder = folder
        self._open: dict[str, container_log.Journal] = {}
        shutil.rmtree(folder, ignore_errors=True)

    def begin(self, host: str) -> None:
        """An empty page: who reads it reads of a new Pod."""
        self.end(host)
        self._open[host] = container_log.Journal(self._file(host))

    def end(self, host: str) -> None:
        if known := self._open.pop(host, None):
            known.close()
            for suffix in (".log", ".older"):
                self._file(host).with_suffix(suffix).unlink(missing_ok=True)

    def hearing(self, host: str = "") -> Callable[[bytes], None]:
        """For one process: that of this host, whose every line is its own; or one whose every line names its host."""
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
