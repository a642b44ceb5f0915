"""Command line of the runner: `python -m argosy.features.notebooks.runner ORDER.json [PARENT]`.

In: the path of a run request, or `-` to read it as one line from standard input. With the pid of a parent process, the
run ends when the parent ends. Out: exit code 0 (passed), 1 (failed) or 2 (the request or the notebook cannot be read).
Never: a traceback.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from argosy.features.notebooks.runner.results import UNREADABLE_EXIT_CODE
from argosy.features.notebooks.runner.run_of_notebook import execute_request, exit_with_parent
from argosy.features.notebooks.runner.run_request import RunRequest, RunRequestError

INTERRUPTED_EXIT_CODE = 130


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2) or not all(argument.isdecimal() for argument in arguments[1:]):
        print("usage: python -m argosy.features.notebooks.runner ORDER.json [PARENT]", file=sys.stderr)
        return UNREADABLE_EXIT_CODE
    try:
        for parent in arguments[1:]:
            exit_with_parent(int(parent))
        file = arguments[0]
        return execute_request(
            RunRequest.from_json(sys.stdin.buffer.readline() if file == "-" else Path(file).read_bytes())
        )
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED_EXIT_CODE
    except OSError as error:
        print(f"run request: cannot be read ({error.strerror}: {arguments[0]}); give another path", file=sys.stderr)
    except RunRequestError as error:
        print(str(error), file=sys.stderr)
    return UNREADABLE_EXIT_CODE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
