"""Whether notebooks can run beside this process. In: what is installed. Out: nothing. Never: imports any of it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Final

from argosy.errors import UserError

NEEDED: Final = ("nbformat", "nbclient", "ipykernel")


class NotInstalled(UserError):
    """What a kernel needs is not there."""


def check_installed() -> None:
    importlib.invalidate_caches()  # somebody may have installed it since
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotInstalled(
            f"{', '.join(missing)}: not installed, and needed to run notebooks; pip install 'argosy[notebooks]'"
        )
