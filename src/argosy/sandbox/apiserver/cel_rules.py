"""Evaluates CEL rules of custom kinds in an isolated worker process.

In: a custom kind and its manifest, new and old. Out: field errors. Never: runs a user's rule in this process.
"""

from __future__ import annotations

import logging

import orjson

from argosy.errors import UserError
from argosy.isolation import CallLimits, WorkerPool
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.kube.schema.crd import CustomKind, check_definition
from argosy.kube.schema.field_error import FieldError, FieldErrorType

log = logging.getLogger(__name__)
WORKER_MODULE = "argosy.kube.schema.cel.worker"
EVALUATE, CHECK_DEFINITION = f"{WORKER_MODULE}:evaluate", f"{WORKER_MODULE}:check_definition"
DEFINITION_CHECK_LIMITS = CallLimits(wall=10.0, cpu=10.0)  # some CRDs have megabytes of schema


class CelRuleEvaluator:
    """Starts the worker with the first rule, because most clusters have none."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None

    async def validate(self, kind: CustomKind, new: Manifest, old: Manifest | None) -> list[FieldError]:
        calls = kind.build_rule_calls(new, old)
        if not calls:
            return []
        try:
            field_errors, unevaluated = kind.read_rule_results(calls, await self._get_pool().run(EVALUATE, calls))
        except UserError as error:
            return [field_error.forbidden("<nil>", f"cannot evaluate the CEL rules of this kind: {error}")]
        for message in unevaluated:
            log.warning("%s: %s", kind.resource.group_resource, message)
        return field_errors

    async def validate_definition(self, definition: Manifest, old: Manifest | None) -> list[FieldError]:
        """Validate a CRD; one with CEL rules is checked in the worker, where compiling them is safe."""
        if b'"x-kubernetes-validations"' not in orjson.dumps(definition):
            return check_definition(definition, old)
        try:
            payload = {"definition": definition, "old": old}
            rows = await self._get_pool().run(CHECK_DEFINITION, payload, limits=DEFINITION_CHECK_LIMITS)
        except UserError as error:
            return [field_error.forbidden("spec", f"cannot check the CEL rules of this definition: {error}")]
        return [FieldError(field, FieldErrorType(kind), message) for field, kind, message in rows]

    def _get_pool(self) -> WorkerPool:
        if self._pool is None:
            self._pool = WorkerPool(workers=1, preload=[WORKER_MODULE])
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
