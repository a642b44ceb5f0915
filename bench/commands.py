"""How long the commands of a first visit take at the demo, as people type them: wall time beside its limit, and CPU.

Each is a fresh process; the best of several runs counts, because others use the machine too. CPU is that of the command
and of all that it started and saw end (git, a worker that renders), not of the demo. A share is the wall time by its
limit. Exits 1 where one is over.

Run: python bench/commands.py [how many runs]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.demo import Demo, demo, own

ARGOSY = Path(sys.executable).parent / "argosy"
RUNS = 7
LIMITS = {  # seconds
    "app list": 0.6,
    "app diff llmops-staging": 0.8,
    "model try staging-qwen25-05b-instruct hello": 1.0,
    "promote plan --to staging": 1.0,
    "preview": 2.0,
    "check": 3.0,
    "doctor": 10.0,
}
ANSWERS = (0, 1)


class Took(NamedTuple):
    wall: float
    cpu: float


def run(words: str, folder: Path, env: dict[str, str]) -> Took:
    began = time.perf_counter()
    process = subprocess.Popen(
        [ARGOSY, *words.split()], cwd=folder, env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in ANSWERS, f"argosy {words}: exit code {process.returncode}"
    return Took(wall, used.ru_utime + used.ru_stime)


def best(running: Demo, folder: Path, runs: int) -> dict[str, Took]:
    """In turns, so that a busy moment of the machine does not meet one command alone. The first turn warms caches."""
    # Compiled modules may be written, as an installed package has them.
    env = {name: value for name, value in own(running.home).items() if not name.startswith("PYTHONDONT")}
    turns = [{words: run(words, folder, env) for words in LIMITS} for _ in range(runs + 1)][1:]
    return {
        words: Took(min(turn[words].wall for turn in turns), min(turn[words].cpu for turn in turns)) for words in LIMITS
    }


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with tempfile.TemporaryDirectory() as folder:
        root, work = Path(folder), Path(folder) / "work"
        with demo(root / "home", "--data-dir", str(root / "kept"), "--api-port", "0") as running:
            running.git("clone", "-q", running.where["repository"], str(work))
            before = os.getloadavg()[0]
            best_times = best(running, work, runs)
    print("| command | wall, s | limit, s | share | CPU, s |\n|---|---|---|---|---|")
    for words, took in best_times.items():
        limit = LIMITS[words]
        print(f"| `argosy {words}` | {took.wall:.2f} | {limit:g} | {took.wall / limit:.2f} | {took.cpu:.2f} |")
    print(f"\nBest of {runs}; the load average was {before:.1f} before and {os.getloadavg()[0]:.1f} after.")
    return int(any(took.wall > LIMITS[words] for words, took in best_times.items()))


if __name__ == "__main__":
    sys.exit(main())
