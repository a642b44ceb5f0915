"""Removes the values of a job's Secrets from the state of its run.

In: a job. Out: secret values; a run state without them. Never: shows a value in a message; keeps a job from running
because a Secret cannot be read (its values cannot be removed then).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.run_backend import NotebookRunState
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET
from argosy.observability.redaction.text_redaction import ValueRedactor, list_lines, redact

MIN_SECRET_CHARACTERS: Final = 6  # characters: shorter values occur in ordinary text
MAX_SECRET_CHARACTERS: Final = 100_000
REDACTED_FIELDS: Final = ("output", "errorMessage", "errorName")


async def load_secret_values(job: NotebookJob, cluster: Cluster) -> tuple[str, ...]:
    values: set[str] = set()
    for name in sorted(set(_list_secret_names(job))):
        try:
            secret = await cluster.get(ResourceKey(*SECRET, job.namespace, name))
        except ArgosyError:
            continue
        for value in ((secret or {}).get("data") or {}).values():
            values |= _decode_value(str(value))
    return tuple(sorted(values))


def redact_run_state(run_state: NotebookRunState, secrets: Sequence[str]) -> NotebookRunState:
    """Redact cell outputs, errors and the failure message."""
    if not secrets:
        return run_state
    cells = tuple(
        {name: redact(str(value), secrets) if name in REDACTED_FIELDS else value for name, value in cell.items()}
        for cell in run_state.cells
    )
    outcome = run_state.outcome
    if outcome is not None:
        outcome = replace(
            outcome,
            message=redact(outcome.message, secrets),
            results=ValueRedactor(secrets).redact_strings(outcome.results),
        )
    return replace(run_state, cells=cells, outcome=outcome, message=redact(run_state.message, secrets))


def _list_secret_names(job: NotebookJob) -> Iterator[str]:
    if job.notebook.secret:
        yield job.notebook.secret
    if job.golden is not None and job.golden.secret:
        yield job.golden.secret
    yield from (str(entry.source.get("secretName") or "") for entry in job.volumes if entry.kind == "secret")
    for container in ({"env": job.env, "envFrom": job.env_from}, *job.init_containers):
        for entry in container.get("env") or ():
            if name := ((entry.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name"):
                yield str(name)
        for entry in container.get("envFrom") or ():
            if name := (entry.get("secretRef") or {}).get("name"):
                yield str(name)


def _decode_value(encoded: str) -> set[str]:
    try:
        return list_lines(base64.b64decode(encoded[:MAX_SECRET_CHARACTERS]).decode(), MIN_SECRET_CHARACTERS)
    except (binascii.Error, UnicodeDecodeError):
        return set()
