"""Hypothesis strategies for operation requests and states, for round-trip tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from argosy.gitops.application import (
    OperationPhase,
    OperationRequest,
    OperationState,
    ResourceResult,
    ResultCode,
    RetryStrategy,
    SyncPhase,
    SyncRequest,
    read_source,
)
from argosy.kube.resource_key import ResourceKey

WORDS = st.sampled_from(["", "web", "api", "größe", "a b"])
NAMES = st.sampled_from(["web", "api", "db"])
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-02-03T04:05:06Z"])
KEYS = st.builds(ResourceKey, st.sampled_from(["", "apps"]), st.sampled_from(["Job", "Deployment"]), WORDS, NAMES)
SOURCE_WIRES = st.fixed_dictionaries(
    {"repoURL": st.sampled_from(["https://git.example/a", "https://git.example/b"])},
    optional={
        "path": NAMES,
        "targetRevision": NAMES,
        "helm": st.fixed_dictionaries({"valueFiles": st.lists(NAMES, max_size=2)}),
    },
)
SOURCES = SOURCE_WIRES.map(read_source)
DURATIONS = st.one_of(
    st.integers(0, 100_000).map(float), st.floats(0.001, 100_000).map(lambda seconds: round(seconds, 6))
)
RETRIES = st.builds(
    RetryStrategy,
    st.integers(-1, 9),
    st.booleans(),
    DURATIONS,
    st.integers(1, 9),
    DURATIONS,
    written_backoff=st.just(()),
)
TEXTS = st.lists(NAMES, max_size=2).map(tuple)


@st.composite
def syncs(draw: st.DrawFn) -> SyncRequest:
    sources = draw(st.lists(SOURCES, max_size=2))
    return SyncRequest(
        revision=draw(WORDS),
        revisions=draw(TEXTS),
        prune=draw(st.booleans()),
        dry_run=draw(st.booleans()),
        runs_hooks=draw(st.booleans()),
        force=draw(st.booleans()),
        resources=tuple(draw(st.lists(KEYS, max_size=2))),
        options=draw(TEXTS),
        manifests=draw(TEXTS),
        sources=tuple(sources),
        heal_attempts=draw(st.integers(0, 5)),
    )


REQUESTS = st.builds(OperationRequest, sync=syncs(), username=WORDS, is_automated=st.booleans(), retry=RETRIES)
RESULTS = st.builds(
    ResourceResult,
    key=KEYS,
    version=st.sampled_from(["", "v1"]),
    phase=st.sampled_from(SyncPhase),
    result_code=st.none() | st.sampled_from(ResultCode),
    hook_phase=st.none() | st.sampled_from(OperationPhase),
    message=WORDS,
    hook=st.sampled_from(["", "PreSync"]),
    images=TEXTS,
)


@st.composite
def states(draw: st.DrawFn) -> OperationState:
    result: dict[str, Any] = {}
    if has_result := draw(st.booleans()):
        sources = draw(st.lists(SOURCE_WIRES, max_size=2))
        result = {
            "revision": draw(WORDS),
            "revisions": draw(TEXTS),
            "sources": tuple(sources),
            "namespace_metadata": draw(st.none() | st.just({}) | st.just({"labels": {"team": "ml"}})),
            "results": tuple(draw(st.lists(RESULTS, max_size=3))),
        }
    return OperationState(
        request=draw(REQUESTS),
        phase=draw(st.sampled_from(OperationPhase)),
        message=draw(WORDS),
        started=draw(TIMES),
        finished=draw(st.just("") | TIMES),
        retries=draw(st.integers(0, 4)),
        has_result=has_result,
        **result,
    )
