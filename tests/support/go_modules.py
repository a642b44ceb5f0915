"""Finds the folder of downloaded Go modules: files of Kubernetes that some tests compare with if they exist.

`make realcluster` downloads them. `keep_folder` is called before the tests change HOME.
"""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """Resolved like Go does: GOMODCACHE, else pkg/mod of the first GOPATH, which defaults to ~/go."""
    if mod_cache := os.environ.get("GOMODCACHE"):
        return Path(mod_cache)
    paths = os.environ.get("GOPATH", "").split(os.pathsep)
    return Path(paths[0] or Path.home() / "go") / "pkg/mod"


def keep_folder() -> None:
    os.environ["GOMODCACHE"] = str(folder())
