"""Sorts the output of model server processes into one log per model.

In: process output, where lines may begin with the host of a model. Out: a log file per host, and its lines. Never: more
than a log file holds; a line of one model in the log of another.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from argosy.sandbox.simulators.pod_processes import container_log_file

MAX_LINE_BYTES: Final = 16 << 10  # bytes of a line; a longer one is split


class ModelLogs:
    def __init__(self, folder: Path) -> None:
        """Delete the logs of an earlier run."""
        self._folder = folder
        self._log_files: dict[str, container_log_file.ContainerLogFile] = {}
        shutil.rmtree(folder, ignore_errors=True)

    def start_log(self, host: str) -> None:
        """Start an empty log for a new Pod of this host."""
        self.delete_log(host)
        self._log_files[host] = container_log_file.ContainerLogFile(self._build_log_path(host))

    def delete_log(self, host: str) -> None:
        if log_file := self._log_files.pop(host, None):
            log_file.close()
            for suffix in (".log", ".older"):
                self._build_log_path(host).with_suffix(suffix).unlink(missing_ok=True)

    def build_output_handler(self, host: str = "") -> Callable[[bytes], None]:
        """Return an output handler for one process.

        With a host, every line belongs to that host; without one, every line begins with its host.
        """
        partial_line = b""

        def handle_output(data: bytes) -> None:
            nonlocal partial_line
            *lines, partial_line = (partial_line + data).split(b"\n")
            if len(partial_line) > MAX_LINE_BYTES:
                lines, partial_line = [*lines, partial_line], b""
            text_by_host: dict[str, bytearray] = {}
            for line in lines:
                first, _, message = line.partition(b" ")
                first_word = first.decode(errors="replace")
                has_host = first_word == host if host else first_word in self._log_files
                text_by_host.setdefault(first_word if has_host else host, bytearray()).extend(
                    (message if has_host else line) + b"\n"
                )
            for line_host, text in text_by_host.items():
                if line_host in self._log_files:
                    self._log_files[line_host].write(bytes(text))

        return handle_output

    def lines(self, host: str, *, tail: int | None, follow: bool, is_over: Callable[[], bool]) -> AsyncIterator[str]:
        return container_log_file.read_lines(self._build_log_path(host), tail=tail, follow=follow, is_over=is_over)

    def close(self) -> None:
        for host in list(self._log_files):
            self.delete_log(host)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _build_log_path(self, host: str) -> Path:
        return self._folder / f"{host}.log"
