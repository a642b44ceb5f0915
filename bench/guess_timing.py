"""How much longer an answer takes if a question has a right guess at a Secret's value than if it has a wrong one.

Run: python bench/guess_timing.py [rounds]. Processor time of masking, in turns, the lower quartile of all rounds. The
figure is the ratio of right to wrong, beside the spread between two wrong guesses in the same run. Exit code 1: a ratio
is further from one than the limit.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.observability.redaction.four_byte_word_filter import list_words
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.auth.caller import NOBODY
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.request_input_echo import conceal_request

LIMIT = 0.15  # a ratio of 0.85 to 1.15
LENGTHS = (10, 22, 52, 100)
SIZES = (1_000, 1_000_000)
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
SITE: Any = None  # nothing of a site is asked


def make_text(length: int) -> str:
    return "".join(random.choice(ALPHABET) for _ in range(length))


def make_answer(size: int) -> bytes:
    words = [make_text(random.randint(3, 12)) for _ in range(3_000)]
    rows = [{"name": random.choice(words), "message": " ".join(random.choices(words, k=8))} for _ in range(size // 100)]
    return json.dumps({"q": "@", "items": rows, "href": "/apps?q=@"}).encode()


def measure(mask: SecretMask, guess: str, answer: bytes) -> float:
    """Return the seconds of masking an answer that quotes the guess."""
    request = RequestContext("GET", "/apps", {}, QueryParameters([("q", guess)]), {}, NOBODY, SITE)
    began = time.process_time()
    concealed, echo = conceal_request(request, mask.find_values)
    took = time.process_time() - began
    data = answer.replace(b"@", concealed.query["q"].encode())
    began = time.process_time()
    words = list_words(data)
    masked = mask.mask_json(data, words)
    restored = echo.restore(masked, words if masked is data else None)
    took += time.process_time() - began
    assert restored == answer.replace(b"@", guess.encode())
    return took


def compare(length: int, size: int, rounds: int) -> tuple[float, float, float]:
    """Return the seconds of a right guess, and of two wrong ones."""
    guesses = [make_text(length) for _ in range(3)]
    values = [guesses[0], *(make_text(length) for _ in range(50))]
    mask = SecretMask(lambda: [{"stringData": {"v": value}} for value in values], PublicWords())
    answer, times = make_answer(size), {guess: list[float]() for guess in guesses}
    for number in range(rounds):
        for guess in guesses[number % 3 :] + guesses[: number % 3]:
            times[guess].append(measure(mask, guess, answer))
    right, wrong, other = (sorted(times[guess])[rounds // 4] for guess in guesses)
    return right, wrong, other


def main(rounds: int) -> int:
    is_over = False
    for size in SIZES:
        for length in LENGTHS:
            right, wrong, other = compare(length, size, rounds * (20 if size < 10_000 else 1))
            ratio = right / min(wrong, other)
            is_over |= abs(ratio - 1) > LIMIT
            figures = f"right {right * 1000:7.2f} ms   wrong {wrong * 1000:7.2f} and {other * 1000:7.2f} ms"
            print(f"{size:>9,} bytes, a guess of {length:>3}: {figures}   ratio {ratio:.2f}")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
