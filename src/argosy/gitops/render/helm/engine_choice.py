"""Which Helm is there. In: this machine. Out: an engine, or a RenderError that says how to get one. Never: runs it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from argosy.errors import RenderError
from argosy.gitops.render.helm.release import Engine


def find_program() -> str:
    """The program on PATH, else the one that belongs to this Python; empty where there is none."""
    own = os.path.join(sys.prefix, "helm", "helm")
    return shutil.which("helm") or (own if os.access(own, os.X_OK) else "")


def has_library() -> bool:
    return importlib.util.find_spec("helm_python") is not None


def find_engine(where: str) -> Engine:
    if program := find_program():
        from argosy.gitops.render.helm.helm_program import HelmProgram

        return HelmProgram(program)
    if has_library():
        from argosy.gitops.render.helm.helm_library import HelmLibrary

        return HelmLibrary()
    message = "a chart needs Helm: put `helm` on the PATH, or `pip install 'argosy[helm]'`"
    raise RenderError(message, where=where)
