"""Results of end-to-end tests, kept in a file so that a run that was ended goes on.

In: results. Out: the last result of each test. Never: loses a result that was written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class TestResult:
    __test__ = False

    name: str
    outcome: str  # pass, fail or skip
    seconds: float
    message: str = ""  # the last lines of a failed test


def read_record(file: Path) -> dict[str, TestResult]:
    """Return the last result of each test; a line that was cut off is left out."""
    results: dict[str, TestResult] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            result = TestResult(**json.loads(line))
        except (ValueError, TypeError):
            continue
        results[result.name] = result
    return results


def append_result(file: Path, result: TestResult) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as record:
        record.write(json.dumps(asdict(result)) + "\n")
