"""Evaluates CEL rules of custom kinds in an isolated worker process.

In: a custom kind and its manifest, new and old. Out: field errors. Never: runs a user's rule in this process.
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
PATIENT = Limits(wall=10.0, cpu=10.0)  # some CRDs have megabytes of schema


class Rules:
    """Starts the worker with the first rule, because most clusters have none."""

    def __init__(self) -> None:
        self._pool: Pool | None = None

    async def faults(self, kind: CustomKind, new: Manifest, old: Manifest | None) -> list[Fault]:
        calls = kind.rule_calls(new, old)
        if not calls:
            return []
        try:
            faults, unknown = kind.rule_faults(calls, await self._workers().run(EVALUATE, calls))
        except UserError as error:
            return [field_error.forbidden("<nil>", f"cannot evaluate the CEL rules of this kind: {error}")]
        for each in unknown:
            log.warning("%s: %s", kind.resource.group_resource, each)
        return faults

    async def definition_faults(self, definition: Manifest, old: Manifest | None) -> list[Fault]:
        """Validate a CRD; one with CEL rules is checked in the worker, where compiling them is safe."""
        if b'"x-kubernetes-validations"' not in orjson.dumps(definition):
            return check_definition(definition, old)
        try:
            payload = {"definition": definition, "old": old}
            found = await self._workers().run(CHECK_DEFINITION, payload, limits=PATIENT)
        except UserError as error:
            return [field_error.forbidden("spec", f"cannot check the CEL rules of this definition: {error}")]
        return [Fault(field, FaultKind(kind), message) for field, kind, message in found]

    def _workers(self) -> Pool:
        if self._pool is None:
            self._pool = Pool(workers=1, preload=[MODULE])
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
