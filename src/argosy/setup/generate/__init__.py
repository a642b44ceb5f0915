"""Manifests that a user commits. In: names, waves and times. Out: manifests that stock Argo CD takes. Never: a PreSync
hook that waits for what the Sync phase makes."""

from __future__ import annotations

from argosy.setup.generate.wait_for_image import ImageWait
from argosy.setup.generate.wait_for_notebook import NotebookWait

__all__ = ["ImageWait", "NotebookWait"]
