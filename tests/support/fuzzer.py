"""Fuzzer. In: valid texts, a random source, the function under test. Out: nothing, or the input that fails.

Never: waits without a limit; an input has a few seconds. Code that ignores signals runs into the time limit of `make`
for one test.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from argosy.errors import ArgosyError

SECONDS = 3.0  # CPU time of this process
MEGABYTES = 256  # above the memory before the first input
TOKENS = [
    b": ", b"- ", b"\n", b"\n  ", b"\n- ", b"  ", b"\t", b"#", b"&a ", b"*a", b"<<: *a\n", b"!!int ", b"!!binary ",
    b"! ",
    b"!x ", b"|\n", b">-\n", b"|+2\n", b"'",
    b'"', b"{", b"}", b"[", b"]", b",", b"? ", b"---\n", b"...\n", b"%YAML 1.1\n",
    b"null", b"~", b"true", b"yes", b"0x1F", b"0o7", b"1e999", b"-.inf", b".nan", b"12345678901234567890123", b"1_0",
    b"2020-01-01", b"=",
    b"\\", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"\xf0\x9f\x92\xa9", b"\r\n",
    b"kind", b"metadata", b"name", b"a", b"$patch: delete\n", b"..", b"/", b"*", b"-1", b"$(V)", b"(", b"^", b"a" * 70,
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 5, 2**40, 2**63, 1.5, "", "x", "a.yaml", "..", "../..", "/etc/passwd", "*", "(", "a=b",
    "$(V)", [],
    [None], ["x"], [[]], {}, {"": ""}, {"a": None}, {"name": "a"}, [{"name": "a"}], {"kind": "ConfigMap", "name": "a"},
    "[{\"op\": \"remove\", \"path\": \"/data\"}]", "a\nb", {"$patch": "delete"}, "é\u2028\u0000", "-", "metadata.name",
]  # fmt: skip


class Hang(BaseException):
    """Not an Exception, so that the tested code does not catch it."""


class Found(AssertionError):
    """An input that was not handled correctly."""


def mutated(rng: Random, text: bytes, others: list[bytes]) -> bytes:
    """The text with one to four changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((1, 1, 2, 5, 20)))
        how = rng.randrange(8)
        if how == 0:
            text = text[:at] + text[end:]
        elif how == 1:
            text = text[:end] + text[at:]
        elif how in (2, 3):
            text = text[:at] + rng.choice(TOKENS) + text[end:]
        elif how in (4, 5):
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif how == 6:
            text = _moved_line(rng, text)
        else:
            other = rng.choice(others)
            text = text[:at] + other[rng.randrange(len(other) + 1) :][:60] + text[end:]
    return text[:4000]


def _moved_line(rng: Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b"  ", b"    ")) + line)
    return b"\n".join(lines)


def made_up(rng: Random) -> bytes:
    return b"".join(rng.choices(TOKENS, k=rng.randint(1, 24)))


def disturbed(rng: Random, value: Any, chance: float = 0.06) -> Any:
    """The data with unexpected values in a few places."""
    if rng.random() < chance:
        return rng.choice(VALUES)
    if type(value) is dict:
        return {key: disturbed(rng, item, chance) for key, item in value.items() if rng.random() > chance / 4}
    if type(value) is list:
        items = [disturbed(rng, item, chance) for item in value if rng.random() > chance / 4]
        return items * 2 if rng.random() < chance / 4 else items
    return value


@contextlib.contextmanager
def watched() -> Iterator[Callable[[], None]]:
    """Interrupt inputs that take too long; call the yielded function before each input."""

    def interrupt(*_: Any) -> None:
        raise Hang

    previous_handler = signal.signal(signal.SIGPROF, interrupt)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_PROF, SECONDS) and None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous_handler)


def feed(inputs: Iterable[bytes], take: Callable[[bytes], None]) -> int:
    """Pass every input to the function, which may only return or refuse; return the number of refusals."""
    refused, number = 0, -1
    forget_peak_memory()
    most = peak_memory() + MEGABYTES * 1024
    with watched() as start:
        for number, data in enumerate(inputs):
            if number % 500 == 0:
                check_memory(most, number)
            start()
            try:
                take(data)
            except ArgosyError:
                refused += 1
            except Hang:
                raise Found(f"longer than {SECONDS} s: {data!r}") from None
            except Exception as error:
                raise Found(f"{type(error).__name__}: {error}: {data!r}") from error
    check_memory(most, number + 1)
    return refused


def forget_peak_memory() -> None:
    """Reset the peak memory of this process, so that earlier tests do not hide a new peak; no-op without the file."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Peak memory of this process in kilobytes; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def check_memory(most: int, number: int) -> None:
    if peak_memory() > most:
        raise Found(f"more than {MEGABYTES} MB within the first {number} inputs")
