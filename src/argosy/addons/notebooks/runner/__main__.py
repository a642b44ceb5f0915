"""`python -m argosy.addons.notebooks.runner ORDER.json`.

In: an order; with `-` for its file, a line of standard input. Out: exit code 0 passed, 1 failed, 2 the order or a
notebook cannot be read. Never: a traceback.
"""

from __future__ import annotations

import sys
from pathlib import Path

from argosy.addons.notebooks.runner.order import Order, OrderError
from argosy.addons.notebooks.runner.results import UNREADABLE
from argosy.addons.notebooks.runner.running import run


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m argosy.addons.notebooks.runner ORDER.json", file=sys.stderr)
        return UNREADABLE
    try:
        return run(Order.load(sys.stdin.buffer.readline() if arguments == ["-"] else Path(arguments[0]).read_bytes()))
    except OSError as error:
        print(f"order: cannot be read ({error.strerror}: {arguments[0]}); give another path", file=sys.stderr)
    except OrderError as error:
        print(str(error), file=sys.stderr)
    return UNREADABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
