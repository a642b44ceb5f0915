"""What a rollback is about to change.

In: an Application, an entry of its history. Out: a look at what that entry deployed, beside what lives. Never: writes.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.desk.applications.reader import Reader
from argosy.model.application import Application, read_source
from argosy.pipeline.looking import Look
from argosy.report.history import Deployment


async def look_back(reader: Reader, app: Application, entry: Deployment) -> Look:
    """With the sources of then, at the revisions of then."""
    sources = tuple(read_source(each, f"history entry {entry.id}") for each in entry.sources)
    return await reader.look(replace(app, sources=sources or app.sources), entry.revisions)
