"""Runs work per Application within a time limit, with slots shared fairly between projects.

In: coroutines by name. Out: results by name, and notes about work that failed or took too long. Never: exceeds the
time limit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from argosy.errors import ArgosyError
from argosy.features.doctor.fair_examination_slots import ProjectSlots
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads

MAX_CONCURRENT_COMPARISONS: Final = 4  # without the slots reserved for projects that have no comparison running
MAX_LISTED_NAMES: Final = 5  # in a note
LONG_TIMEOUT_SECONDS: Final = 60.0  # suggested to users with a shorter timeout
Found = TypeVar("Found")
Item = TypeVar("Item")


class WorkLimit(NamedTuple):
    """Time limit of one kind of work, and the `--timeout` for all work."""

    seconds: float
    timeout: float

    def build_timeout_advice(self, names: Sequence[str]) -> str:
        """Suggest a longer timeout, or after a long one a single Application."""
        if self.timeout < LONG_TIMEOUT_SECONDS:
            return f"give it longer: argosy doctor --timeout {LONG_TIMEOUT_SECONDS:.0f}"
        return f"look at one alone: argosy doctor {names[0]} --timeout {2 * self.timeout:.0f}"


def interleave_by_project(items: Iterable[Item], project_of: Callable[[Item], str]) -> list[Item]:
    """Order items round-robin by project; keep the order within a project."""
    rounds: Counter[str] = Counter()
    numbered = []
    for item in items:
        project = project_of(item)
        numbered.append((rounds[project], item))
        rounds[project] += 1
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0])]


async def run_within_limit(
    work: Mapping[str, Coroutine[Any, Any, Found]],
    limit: WorkLimit,
    participle: str,
    reads: OptionalReads,
    projects: Mapping[str, str],
) -> dict[str, Found]:
    """Return results by name; note work that failed or was not finished in time.

    `projects` is by name. A project runs at most MAX_CONCURRENT_COMPARISONS at once; further slots are reserved for
    projects without running work, so that slow work of one project does not block others.
    """
    slots = ProjectSlots(MAX_CONCURRENT_COMPARISONS)
    started: set[str] = set()

    async def run_in_slot(name: str, coroutine: Coroutine[Any, Any, Found]) -> Found:
        try:
            async with slots.hold(projects[name]):
                started.add(name)
                return await coroutine
        finally:
            coroutine.close()  # avoids the warning about a coroutine that was never awaited

    tasks = {name: asyncio.create_task(run_in_slot(name, coroutine)) for name, coroutine in work.items()}
    if not tasks:
        return {}
    _, late = await asyncio.wait(tasks.values(), timeout=limit.seconds)
    slow = [name for name, task in tasks.items() if task in late and name in started]
    not_started = [name for name, task in tasks.items() if task in late and name not in started]
    for task in late:
        task.cancel()
    if slow:
        prefix = f"not {participle} within {limit.seconds:.0f} s, rendering or reading takes longer"
        reads.add_note(f"{prefix}: {_join_names(slow)}; {limit.build_timeout_advice(slow)}")
    if not_started:
        prefix = f"not {participle}, the time was up before their turn"
        reads.add_note(f"{prefix}: {_join_names(not_started)}; {limit.build_timeout_advice(not_started)}")
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    results = {}
    for name, task in tasks.items():
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ArgosyError):
            reads.add_note(f"{name} cannot be {participle} from here: {error}")
        elif error is not None:
            raise error
        elif not task.cancelled():
            results[name] = task.result()
    return results


def _join_names(names: Sequence[str]) -> str:
    more_text = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"{', '.join(names[:MAX_LISTED_NAMES])}{more_text}"
