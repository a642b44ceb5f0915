"""Records when robfig/cron, which Argo CD uses, runs schedules, for tests/unit/languages/test_recorded_schedules.py.

In: the schedules below, and random ones by a fixed seed. Out: tests/data/cron-schedules.json.
Development only, needs Go. Run after a change of the lists: python tools/record_cron_schedules.py
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "cron_schedules"
RECORD = ROOT / "tests" / "data" / "cron-schedules.json"
AFTER = "2026-03-27T23:59:30Z"  # two days before summer time begins in Berlin
TIMES = 4
RANDOM_SCHEDULES = 1000
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))

SCHEDULES = [
    "@every 90m", "@every 1h30m10s", "@every 500ms", "@every -1m", "@every 0s", "@every", "@every 1d", "@every 1.5h",
    "@daily", "@Daily", "@hourly", "@weekly", "@monthly", "@yearly", "@annually", "@midnight", "@reboot",
    "TZ=Europe/Berlin 30 2 * * *", "CRON_TZ=America/New_York 0 0 * * *", "TZ=Europe/Berlin @every 1h",
    "TZ=Europe/Berlin @daily", "TZ=Nowhere 0 0 * * *", "TZ=UTC", "TZ= 0 0 * * *", "TZ=Australia/Lord_Howe 15 2 * * *",
    "0 0 */2 * 5", "0 0 */1 * 5", "0 0 1,*/2 * 5", "0 0 * * 7", "0 0 * * SUN-SAT", "0 0 * JAN,feb mon", "0 0 ? * ?",
    "0 0 31 2 *", "0 0 29 2 *", "0 0 30 2,4 *", "", " 0 0 * * * ", "0  0 * * *", "* * * *", "* * * * * *",
]  # fmt: skip


def build_random_field(rng: random.Random, low: int, high: int) -> str:
    start = rng.randint(low, high)
    end = rng.randint(start, high)
    valid = [
        "*", "*", "*", f"*/{rng.randint(1, 9)}", "?", f"{start}", f"{start}", f"{start}-{end}",
        f"{start}-{end}/{rng.randint(1, 7)}", f"{start}/{rng.randint(1, 7)}", f"{start},{rng.randint(low, high)}",
    ]  # fmt: skip
    doubtful = [",", f"{start},,{end}", "MON", "jan", "x", "-1", "*/0", f"{high + 1}", "1-2-3", "*,*/2"]
    return rng.choice(doubtful if rng.random() < 0.03 else valid)


def main() -> None:
    rng = random.Random(7)
    schedules = [*SCHEDULES]
    schedules += [" ".join(build_random_field(rng, *field) for field in FIELDS) for _ in range(RANDOM_SCHEDULES)]
    schedules = list(dict.fromkeys(schedules))
    request = json.dumps({"after": AFTER, "times": TIMES, "schedules": schedules})
    command = ["go", "run", "."]
    done = subprocess.run(command, cwd=PROGRAM, input=request.encode(), capture_output=True, check=True)
    version = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Version}}", "github.com/robfig/cron/v3"],
        cwd=PROGRAM, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    lines = [json.dumps(row) for row in zip(schedules, json.loads(done.stdout), strict=True)]
    head = f'{{"robfig/cron": "{version}",\n"after": "{AFTER}",\n"schedules": [\n'
    RECORD.write_text(head + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
