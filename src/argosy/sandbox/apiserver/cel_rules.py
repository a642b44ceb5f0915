"""CEL rules of custom kinds, evaluated where they can do no harm: in a confined worker.

In: a custom kind and its manifest, new and old. Out: faults. Never: runs a user's rule in this process.
"""

from __future__ import annotations

import logging

import orjson

from argosy.errors import UserError
from argosy.isolation import Limits, Pool
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.kube.schema.crd import CustomKind, check_definition
from argosy.kube.schema.field_error import Fault, FaultKind

log = logging.getLogger(__name__)
MODULE = "argosy.kube.schema.cel.worker"
EVALUATE, CHECK_DEFINITION = f"{MODULE}:evaluate", f"{MODULE}:check_definition"
PATIENT = Limits(wall=10.0, cpu=10.0)  # some definitions are megabytes of schema


class Rules:
    """The workers are started when the first rule is met: most clusters have none."""

    def __init__(self) -> None:
        self._pool: Pool | None = None

    async def faults(self, kind: CustomKind, new: Manifest, old: Manifest | None) -> list[Fault]:
        calls = kind.rule_calls(new, old)
        if not calls:
            return []
        try:
            faults, unknown = kind.rule_faults(calls, await self._workers().run(EVALUATE, calls))
        except UserError as error:
            return [field_error.forbidden("<nil>", f"the rules of this kind could not be evaluated: {error}")]
        for each in unknown:
            log.warning("%s: %s", kind.resource.group_resource, each)
        return faults

    async def definition_faults(self, definition: Manifest, old: Manifest | None) -> list[Fault]:
        """What is wrong with a definition; one that has rules is checked where they can be compiled safely."""
        if b'"x-kubernetes-validations"' not in orjson.dumps(definition):
            return check_definition(definition, old)
        try:
            payload = {"definition": definition, "old": old}
            found = await self._workers().run(CHECK_DEFINITION, payload, limits=PATIENT)
        except UserError as error:
            return [field_error.forbidden("spec", f"the rules of this definition could not be checked: {error}")]
        return [Fault(field, FaultKind(kind), message) for field, kind, message in found]

    def _workers(self) -> Pool:
        if self._pool is None:
            self._pool = Pool(workers=1, preload=[MODULE])
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
