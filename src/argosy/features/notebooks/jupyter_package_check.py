"""Checks whether notebooks can run on this machine. In: installed packages. Out: nothing. Never: imports any of
them.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Final

from argosy.errors import UserError

REQUIRED_PACKAGES: Final = ("nbformat", "nbclient", "ipykernel")


class PackagesNotInstalled(UserError):
    """A package that a kernel needs is not installed."""


def check_installed() -> None:
    importlib.invalidate_caches()  # a package may have been installed since
    missing = [name for name in REQUIRED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise PackagesNotInstalled(
            f"{', '.join(missing)}: not installed, but required to run notebooks; pip install 'argosy[notebooks]'"
        )
