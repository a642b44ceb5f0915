from __future__ import annotations

import struct

from argosy.features.serve.http2.frame_budget import MAX_IDLE_FRAMES, RESET_COST, SMALL_DATA_BYTES, FrameBudget


def frame(kind: int, size: int = 0, flags: int = 0, stream: int = 1) -> bytes:
    return size.to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + b"\x06" * size


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_frames_without_use_are_few_at_once_and_some_per_second() -> None:
    clock = Clock()
    budget = FrameBudget(clock)
    budget.count_received(frame(6, 8) * MAX_IDLE_FRAMES)
    assert not budget.is_exceeded
    clock.now += 1
    budget.count_received(frame(6, 8) * 100)
    assert not budget.is_exceeded
    budget.count_received(frame(6, 8))
    assert budget.is_exceeded


def test_a_reset_costs_more() -> None:
    budget = FrameBudget(Clock())
    budget.count_received(frame(3, 4) * (MAX_IDLE_FRAMES // RESET_COST))
    assert not budget.is_exceeded
    budget.count_received(frame(3, 4))
    assert budget.is_exceeded


def test_requests_and_data_are_free_and_tiny_data_is_not() -> None:
    budget = FrameBudget(Clock())
    for stream in range(1, 2 * MAX_IDLE_FRAMES, 2):
        budget.count_received(frame(1, 10, 4, stream) + frame(0, SMALL_DATA_BYTES) + frame(0, 0, 1))
    assert not budget.is_exceeded
    budget.count_received(frame(0, 1) * (MAX_IDLE_FRAMES + 1))
    assert budget.is_exceeded


def test_a_client_may_answer_the_data_that_it_gets() -> None:
    budget = FrameBudget(Clock())
    for _ in range(2 * MAX_IDLE_FRAMES):
        budget.count_sent_data()
        budget.count_received(frame(8, 4) * 2 + frame(6, 8))
    assert not budget.is_exceeded


def test_frames_are_counted_however_they_arrive() -> None:
    data = b"".join(
        frame(0, 1000) + frame(6, 8) + frame(1, 5, stream=stream) + frame(9, 0) + frame(9, 3, 4) for stream in (1, 3, 5)
    )
    whole, split = FrameBudget(Clock()), FrameBudget(Clock())
    whole.count_received(data)
    for number in range(0, len(data), 7):
        split.count_received(data[number : number + 7])
    assert vars(whole)["_left"] == vars(split)["_left"] == MAX_IDLE_FRAMES - 9


def test_an_incomplete_header_is_known() -> None:
    budget = FrameBudget(Clock())
    for data, expected in ((frame(1, 5), True), (frame(9, 5), True), (frame(9, 5, 4), False), (frame(1, 5, 4), False)):
        budget.count_received(data)
        assert budget.is_in_headers is expected


def test_headers_of_an_earlier_stream_cost_as_much_as_a_reset() -> None:
    budget = FrameBudget(Clock())
    budget.count_received(frame(1, 0, 4, stream=3) + frame(1, 0, 4, stream=3) * (MAX_IDLE_FRAMES // RESET_COST))
    assert not budget.is_exceeded
    budget.count_received(frame(1, 0, 4, stream=1))
    assert budget.is_exceeded
