"""Selects tests by tier: the marker `tier` assigns a test to a tier, the option `--tier` chooses the tier to run.

In: `@pytest.mark.tier("all")` on a test, a module or a row; without it, a test belongs to `test`. Out: the tests of the
chosen tier; the others are deselected. Never: a test of a tier that no make target runs.

test         make test, and CI: what a contributor runs after a change
all          make test-all: everything except tests only for `prove` or `realcluster`; includes `test`
prove        make prove: proofs in full. A proof marked `tier("test", "prove")` also runs in short in `make test` and
             `make test-all`, one marked `tier("all", "prove")` only in `make test-all`. Property tests (Hypothesis)
             run in `make prove` too, with new random examples; elsewhere their examples are always the same
realcluster  make realcluster: needs the real control plane that it builds
argocd       make test-argocd: needs the real Argo CD that `make argocd` builds
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from support import proof_scale

TIERS = ("test", "all", "prove", "realcluster", "argocd")
INCLUDED = {"all": {"test", "all"}}
# For rows: `pytest.param(…, marks=IN_TEST_ALL)`.
IN_TEST_ALL = pytest.mark.tier("all")
IN_TEST_ALL_AND_PROVE = pytest.mark.tier("all", "prove")
_EMPTY_SELECTION = pytest.StashKey[str]()
_OF_WORKER = "empty_selection"  # the same, in the output of an xdist worker


def in_test_all(value: Any) -> Any:
    """A row with one value that `make test` skips."""
    return pytest.param(value, marks=IN_TEST_ALL)


def run_first(count: int, rows: Sequence[Any]) -> list[Any]:
    """Rows: `make test` runs the first few, `make test-all` all of them."""
    return [*rows[:count], *(pytest.param(*row, marks=IN_TEST_ALL) for row in rows[count:])]


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the tests of one make target (default: all; a test named with :: always runs)"
    parser.addoption("--tier", choices=TIERS, help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tier(*names): the tiers that run this test; see tests/support/tiers.py")
    if config.getoption("--tier") == "prove":
        os.environ.setdefault(proof_scale.VARIABLE, "1")


def tiers_of(item: pytest.Item) -> tuple[str, ...]:
    """The closest marker: of the row or test, else of its class or module."""
    markers = list(item.iter_markers_with_node("tier"))
    own_markers = [marker for node, marker in markers if node is item]
    tier_names = [_names(item, marker) for marker in own_markers] or [_names(item, marker) for _, marker in markers[:1]]
    tiers = max(tier_names, key=lambda names: TIERS.index(names[0]), default=("test",))
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return (*tiers, "prove") if is_property and "prove" not in tiers else tiers


def _names(item: pytest.Item, marker: pytest.Mark) -> tuple[str, ...]:
    names = tuple(marker.args)
    if not names or marker.kwargs or not set(names) <= set(TIERS):
        arguments = ", ".join([*map(repr, names), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        raise pytest.Collector.CollectError(
            f"{item.nodeid}: no make target runs tier({arguments}); use {', '.join(TIERS[:-1])} or {TIERS[-1]}, "
            '@pytest.mark.tier("all") for a slow test'
        )
    return tuple(sorted(names, key=TIERS.index))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Iterator[None]:
    """Report an unknown tier as an error of its file; later it would abort a parallel run without a reason."""
    collected = yield
    for item in collected if isinstance(collected, list) else [collected]:
        if isinstance(item, pytest.Item):
            tiers_of(item)
    return collected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    belongs = {item: tiers_of(item) for item in items}
    tier = config.getoption("--tier")
    if tier is None and any("::" in argument for argument in config.args):
        return
    selected_tiers = INCLUDED.get(tier or "all", {tier})
    left_out = [item for item in items if selected_tiers.isdisjoint(belongs[item])]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not selected_tiers.isdisjoint(belongs[item])]
    if left_out and not items:
        others = {name for item in left_out for name in belongs[item]}
        _keep_reason(config, f"no test here is in tier {tier or 'all'!r}; choose --tier {' or '.join(sorted(others))}")


def _keep_reason(config: pytest.Config, reason: str) -> None:
    """Store the reason for the terminal summary, which only the main process prints."""
    if (output := getattr(config, "workeroutput", None)) is not None:
        output[_OF_WORKER] = reason
    else:
        config.stash[_EMPTY_SELECTION] = reason


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if reason := getattr(node, "workeroutput", {}).get(_OF_WORKER):
        node.config.stash[_EMPTY_SELECTION] = reason


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if reason := config.stash.get(_EMPTY_SELECTION, ""):
        terminalreporter.write_line(reason)
