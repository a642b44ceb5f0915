"""CEL rules of custom kinds, evaluated where they can do no harm: in a confined worker.

In: a custom kind and its manifest, new and old. Out: faults. Never: runs a user's rule in this process.
"""

from __future__ import annotations

import logging

from argosy.confine import Pool
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.schema import fault
from argosy.schema.custom import CustomKind
from argosy.schema.fault import Fault

log = logging.getLogger(__name__)
MODULE = "argosy.schema.cel.confined"
EVALUATE = f"{MODULE}:evaluate"


class Rules:
    """The workers are started when the first rule is met: most clusters have none."""

    def __init__(self) -> None:
        self._pool: Pool | None = None

    async def faults(self, kind: CustomKind, new: Manifest, old: Manifest | None) -> list[Fault]:
        calls = kind.rule_calls(new, old)
        if not calls:
            return []
        if self._pool is None:
            self._pool = Pool(workers=1, preload=[MODULE])
        try:
            faults, unknown = kind.rule_faults(calls, await self._pool.run(EVALUATE, calls))
        except UserError as error:
            return [fault.forbidden("<nil>", f"the rules of this kind could not be evaluated: {error}")]
        for each in unknown:
            log.warning("%s: %s", kind.resource.group_resource, each)
        return faults

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
