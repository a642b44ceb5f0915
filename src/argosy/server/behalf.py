"""Desks and readers that work on behalf of whoever asked.

In: a request. Out: a Desk and a Reader that sign with the caller's name. Never: more rights than the server's own, nor
any that the doors did not ask for.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.desk.applications.desk import Desk
from argosy.desk.applications.reader import Reader
from argosy.server.asked import Asked


def desk_of(asked: Asked) -> Desk:
    """Writes, and reads what the cluster has this very moment."""
    desk: Desk = asked.site.desk
    return replace(desk, signer=asked.caller.name)


def reader_of(asked: Asked) -> Reader:
    """Reads what the lookout has seen."""
    reader: Reader = asked.site.lookout.reader
    return reader.signed(asked.caller.name)
