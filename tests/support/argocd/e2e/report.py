"""Writes docs/reference/argocd-e2e.md from the results of Argo CD's end-to-end tests.

In: the results against Argo CD and against argosy, and the reasons of `tests/argocd/e2e_reasons.toml`. Out: the page.
Never: counts a test without a result.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.argocd.e2e.test_record import TestResult
from support.argocd.programs import VERSION, Installation
from support.paths import ROOT, TESTS

PAGE: Final = ROOT / "docs/reference/argocd-e2e.md"
REASONS: Final = TESTS / "argocd/e2e_reasons.toml"
_TEST: Final = re.compile(r"^func (Test\w+)\(", re.MULTILINE)
_WORDS: Final = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_INTRODUCTION: Final = """\
# Argo CD's end-to-end tests

```console
$ make argocd-e2e RUN='^TestAppCreation'
```

`make argocd-e2e` runs the end-to-end tests of Argo CD {version} against argosy: argosy's server and controller take
Argo CD's place, and the tests use Argo CD's own `argocd` command. `make argocd-e2e ARGS="--against argocd"` runs them
against Argo CD itself, on the same kind of [sandbox](../guides/sandbox.md). How to build Argo CD:
[Running the real Argo CD](../guides/real-argocd.md).

`make argocd-e2e ARGS=--report` writes this page.

{summary}
"""


@dataclass(frozen=True)
class Reason:
    """Why tests fail against argosy, or why they are left out of the ratio."""

    tests: re.Pattern[str]
    text: str
    is_out_of_scope: bool


def read_reasons(file: Path = REASONS) -> list[Reason]:
    entries = tomllib.loads(file.read_text()).values()
    return [Reason(re.compile(entry["tests"]), entry["reason"], entry.get("outside", False)) for entry in entries]


def find_reason(reasons: Sequence[Reason], file: str, name: str) -> Reason | None:
    """Return the first reason whose pattern matches `FILE/TEST` completely."""
    return next((reason for reason in reasons if reason.tests.fullmatch(f"{file}/{name}")), None)


def list_tests_by_file(installation: Installation) -> dict[str, list[str]]:
    """Return the names of the tests by the name of their file without `_test.go`."""
    files = sorted((installation.source / "test/e2e").glob("*_test.go"))
    return {file.name.removesuffix("_test.go"): _TEST.findall(file.read_text()) for file in files}


def build_page(
    tests: Mapping[str, Sequence[str]],
    argocd: Mapping[str, TestResult],
    argosy: Mapping[str, TestResult],
    reasons: Sequence[Reason],
) -> str:
    sections = []
    counts: Counter[str] = Counter()
    for file, names in tests.items():
        rows = []
        for name in names:
            left, right = argocd.get(name), argosy.get(name)
            if left is None and right is None:
                continue
            reason = find_reason(reasons, file, name)
            _count(counts, left, right, reason)
            rows.append(f"| {name} | {_describe(left)} | {_describe(right)} | {_explain(left, right, reason)} |")
        if rows:
            header = "| test | Argo CD | argosy | reason |\n|---|---|---|---|\n"
            sections.append(f"## {file}\n\n{header}" + "\n".join(rows))
    summary = _INTRODUCTION.format(version=VERSION.removeprefix("v"), summary=_summarize(counts))
    return "\n\n".join([summary.rstrip(), *sections]) + "\n"


def _count(counts: Counter[str], left: TestResult | None, right: TestResult | None, reason: Reason | None) -> None:
    if left is not None:
        counts[f"argocd {left.outcome}"] += 1
    if right is not None:
        counts[f"argosy {right.outcome}"] += 1
    if left is not None and left.outcome == "pass" and not (reason and reason.is_out_of_scope):
        counts["comparable"] += 1
        counts["both"] += right is not None and right.outcome == "pass"


def _summarize(counts: Counter[str]) -> str:
    rows = "\n".join(
        f"| {label} | {counts[f'{name} pass']} | {counts[f'{name} fail']} | {counts[f'{name} skip']} |"
        for name, label in (("argocd", "Argo CD"), ("argosy", "argosy"))
    )
    ratio = 100 * counts["both"] / counts["comparable"] if counts["comparable"] else 0
    return (
        f"| against | passed | failed | skipped |\n|---|---|---|---|\n{rows}\n\n"
        f"Of the {counts['comparable']} tests that Argo CD passes here, without those of ApplicationSets, of the\n"
        f"source hydrator and of OCI, argosy passes {counts['both']}: {ratio:.1f} %."
    )


def _describe(result: TestResult | None) -> str:
    return "not run" if result is None else _WORDS[result.outcome]


def _explain(left: TestResult | None, right: TestResult | None, reason: Reason | None) -> str:
    if right is not None and right.outcome == "pass":
        return ""
    if reason is not None:
        return reason.text
    both_fail = left is not None and right is not None and {left.outcome, right.outcome} == {"fail"}
    return "needs more than the sandbox: Argo CD fails, too" if both_fail else ""
