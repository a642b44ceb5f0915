"""Runs a health test suite like the command: isolated, with several batches at once.

A file that uses it has `close_pool = POOL.fixture()`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from argosy.gitops.health.test_suite import CaseResult, RuleTestSuite, collect_cases, run_suite
from support.file_pools import FilePool
from support.paths import DATA

TREES = DATA / "health-tree"


POOL = FilePool(workers=2)


def outcomes_of(suite: RuleTestSuite | Path, **how) -> list[CaseResult]:
    collected = collect_cases(suite) if isinstance(suite, Path) else suite
    return POOL.run(lambda pool: run_suite(collected, pool, gather=asyncio.gather, **how))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def row(status: str, message: str, path: str) -> str:
    return f"- healthStatus: {{status: {status}, message: '{message}'}}\n  inputPath: {path}\n"


RULE = "return {status = 'Healthy', message = obj.kind}\n"


def rule_of(group: str, kind: str, *, folder: str = "") -> dict[str, str]:
    """A rule with one test that passes."""
    rule_folder = folder or (f"{group}/{kind}" if group else kind)
    version = f"{group}/v1" if group else "v1"
    return {
        f"{rule_folder}/health.lua": RULE,
        f"{rule_folder}/health_test.yaml": "tests:\n" + row("Healthy", kind, "testdata/one.yaml"),
        f"{rule_folder}/testdata/one.yaml": f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: one}}\n",
    }
