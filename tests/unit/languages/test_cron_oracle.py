"""Due times of cron schedules are those of cronsim, a library of another author, where both read the schedule alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from argosy.languages.cron import parse_schedule
from support.examples import examples

FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
DAY, WEEKDAY = 2, 4
LOOKAHEAD = timedelta(days=366 * 5)


@st.composite
def parts(draw: st.DrawFn, low: int, high: int) -> str:
    start = draw(st.integers(low, high))
    end = draw(st.integers(start, high))
    step = draw(st.integers(1, high))
    return draw(
        st.sampled_from(["*", f"*/{step}", f"{start}", f"{start}/{step}", f"{start}-{end}", f"{start}-{end}/{step}"])
    )


FIELD_TEXTS = [st.lists(parts(low, high), min_size=1, max_size=3).map(",".join) for low, high in FIELDS]


def reads_star_differently(field: str) -> bool:
    """Debian's cron looks at the first character; robfig/cron at any part that is `*`, with no step or a step of 1."""
    return field.startswith("*") is not any(part in ("*", "*/1") for part in field.split(","))


def has_range_of_one_with_a_step(field: str) -> bool:
    """Robfig/cron takes `5-5/2` for 5, cronsim for `5/2`."""
    ranges = (part.partition("/")[0].split("-") for part in field.split(",") if "/" in part)
    return any(len(ends) == 2 and ends[0] == ends[1] for ends in ranges)


def reaches_day_seven(weekday: str) -> bool:
    """Cronsim's week ends with 7, a second Sunday, which a step may reach; robfig/cron's ends with 6."""
    starts = (part.split("/") for part in weekday.split(",") if "/" in part and "-" not in part and part[0] != "*")
    return any((7 - int(start)) % int(step) == 0 for start, step in starts)


@given(st.tuples(*FIELD_TEXTS), st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))
@example(("0", "0", "13", "*", "5"), datetime(2026, 1, 1))
@example(("0", "0", "29", "2", "*"), datetime(2026, 1, 1))
@settings(max_examples=examples(500), deadline=None)
def test_next_time_is_that_of_cronsim(fields: tuple[str, ...], start: datetime) -> None:
    assume(not reads_star_differently(fields[DAY]) and not reads_star_differently(fields[WEEKDAY]))
    assume(not any(map(has_range_of_one_with_a_step, fields)) and not reaches_day_seven(fields[WEEKDAY]))
    after = start.replace(tzinfo=UTC)
    schedule = parse_schedule(" ".join(fields))
    try:
        expected = next(CronSim(" ".join(fields), after))
    except (CronSimError, StopIteration):  # a day that no month has
        assert schedule.next_time(after) is None
        return
    assert schedule.next_time(after) == (expected if expected - after < LOOKAHEAD else None)
