"""The folder of downloaded Go modules: Kubernetes' own files, which some tests compare with where they are there.

`make realcluster` downloads them. `keep_folder` is called before the tests leave the home of the person who runs them.
"""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """As Go finds it: GOMODCACHE, else pkg/mod of the first GOPATH, which is ~/go."""
    if named := os.environ.get("GOMODCACHE"):
        return Path(named)
    paths = os.environ.get("GOPATH", "").split(os.pathsep)
    return Path(paths[0] or Path.home() / "go") / "pkg/mod"


def keep_folder() -> None:
    os.environ["GOMODCACHE"] = str(folder())
