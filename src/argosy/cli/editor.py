"""Edits a value as YAML in the user's editor.

In: a name and a value. Out: the edited value. Never: loses rejected text; it stays in a file.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from argosy.cli.subcommand_flags_and_runner import print_message
from argosy.errors import UserError

DEFAULT_EDITOR: Final = "vi"


class EditorSession:
    """Context manager that returns the edited value. After an error, the text is kept in a file."""

    def __init__(self, name: str, content: Any) -> None:
        self._name, self._content = name, content

    def __enter__(self) -> Any:
        from argosy.kube.objects import dump_yaml, read_yaml

        number, path = tempfile.mkstemp(prefix=f"{self._name}-", suffix="-edit.yaml")
        os.close(number)
        self._file = Path(path)
        self._file.write_text(dump_yaml(self._content))
        try:
            _run_editor(self._file)
            return read_yaml(self._file.read_bytes(), where=path)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._file.unlink(missing_ok=True)
        else:
            print_message(f"the edited text is kept in {self._file}")


def _run_editor(file: Path) -> None:
    command = shlex.split(os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        completed = subprocess.run([*command, str(file)], check=False)
    except OSError as error:
        advice = "set EDITOR to an installed editor, or use argosy app patch"
        raise UserError(f"cannot start editor {command[0]!r}: {error.strerror}; {advice}") from error
    if completed.returncode:
        raise UserError(f"editor {command[0]!r} exited with code {completed.returncode}; nothing was changed")
