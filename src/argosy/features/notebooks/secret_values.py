"""Removes the values of a job's Secrets from the state of its run.

In: a job. Out: secret values; a run state without them. Never: shows a value in a message; keeps a job from running
because a Secret cannot be read (its values cannot be removed then).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.redaction import redact
from argosy.features.notebooks.run_backend import Standing
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey

SHORTEST: Final = 6  # characters: shorter values occur in ordinary text
LONGEST: Final = 100_000
TEXTS: Final = ("output", "errorMessage", "errorName")


async def secrets_of(job: Job, cluster: Cluster) -> tuple[str, ...]:
    found: set[str] = set()
    for name in sorted(set(_names(job))):
        try:
            secret = await cluster.get(ResourceKey("", "Secret", job.namespace, name))
        except ArgosyError:
            continue
        for value in ((secret or {}).get("data") or {}).values():
            found |= set(_parts(str(value)))
    return tuple(sorted(found))


def without(standing: Standing, secrets: Sequence[str]) -> Standing:
    """Redact cell outputs, errors and the failure message."""
    if not secrets:
        return standing
    cells = tuple(
        {name: redact(str(value), secrets) if name in TEXTS else value for name, value in cell.items()}
        for cell in standing.cells
    )
    outcome = standing.outcome
    if outcome is not None:
        outcome = replace(outcome, message=redact(outcome.message, secrets), results=_deep(outcome.results, secrets))
    return replace(standing, cells=cells, outcome=outcome, message=redact(standing.message, secrets))


def _deep(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[REDACTED]")
        return value
    if isinstance(value, Mapping):
        return {name: _deep(each, secrets) for name, each in value.items()}
    return [_deep(each, secrets) for each in value] if isinstance(value, list | tuple) else value


def _names(job: Job) -> Iterator[str]:
    if job.notebook.secret:
        yield job.notebook.secret
    if job.golden is not None and job.golden.secret:
        yield job.golden.secret
    yield from (str(each.source.get("secretName") or "") for each in job.volumes if each.kind == "secret")
    for container in ({"env": job.env, "envFrom": job.env_from}, *job.init_containers):
        for each in container.get("env") or ():
            if name := ((each.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name"):
                yield str(name)
        for each in container.get("envFrom") or ():
            if name := (each.get("secretRef") or {}).get("name"):
                yield str(name)


def _parts(encoded: str) -> Iterator[str]:
    """A value, and the lines of a multi-line value, because outputs break lines differently."""
    try:
        text = base64.b64decode(encoded[:LONGEST]).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    for part in {text.strip(), *text.split("\n")}:
        if len(part.strip()) >= SHORTEST:
            yield part.strip()
