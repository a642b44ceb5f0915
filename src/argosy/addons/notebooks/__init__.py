"""Notebooks that gate models: jobs that run a notebook of a repository, judge it, and say what came of it.

In: a variant's name: none for runs beside the cluster where there is such a place and Pods elsewhere, `pods` for Pods
always. Out: an AddOn. Never: runs a cell in this process; imports more than this before somebody asks for it, since
each notebook's own process comes by here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.kube.controller import AddOn


def make(variant: str) -> AddOn:
    from argosy.addons.notebooks.making import made

    return made(variant)
