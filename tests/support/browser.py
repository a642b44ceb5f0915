"""Where the Chromium of this machine is.

In: what is installed. Out: its path, or nothing. Never: one that was downloaded past the machine's packages.
"""

from __future__ import annotations

import shutil

# The first draws pages as the second does, at half the cost: it has no windows, menus and extensions to look after.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium_here() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
