"""Which fields of `obj` a script reads. (To be replaced: everything is read.)"""

from __future__ import annotations

from argosy.model.manifest import Manifest


class Reads: ...


def reads(script: str) -> Reads | None:
    return None


def project(manifest: Manifest, reads: Reads) -> Manifest:
    return manifest
