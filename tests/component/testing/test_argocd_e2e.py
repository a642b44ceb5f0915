"""The runner of Argo CD's end-to-end tests: record, page, goreman, and a test program that hangs or ends."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.argocd.e2e import goreman, test_program
from support.argocd.e2e.__main__ import choose_tests
from support.argocd.e2e.report import Reason, build_page, read_reasons
from support.argocd.e2e.test_program import run_tests
from support.argocd.e2e.test_record import TestResult, append_result, read_record
from support.argocd.programs import Installation
from support.control_plane import die_with_parent

PASSED = TestResult("TestOne", "pass", 1.0)


def test_last_result_counts_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "folder/record.jsonl"
    assert read_record(file) == {}
    failed = TestResult("TestOne", "fail", 2.0, "Error: no")
    for result in (failed, PASSED):
        append_result(file, result)
    with open(file, "a") as record:
        record.write('{"name": "TestTwo", "outc')
    assert read_record(file) == {"TestOne": PASSED}


def test_recorded_tests_run_only_again() -> None:
    names = ["TestOne", "TestTwo", "TestHook"]
    assert choose_tests(names, "", {"TestOne": PASSED}, again=False) == ["TestTwo", "TestHook"]
    assert choose_tests(names, "One|Two", {"TestOne": PASSED}, again=True) == ["TestOne", "TestTwo"]


SUITE = """#!/bin/sh
case "$5" in
*TestFirst*)
  echo "=== RUN   TestFirst"; echo "    --- PASS: TestFirst/part (0.00s)"; echo "--- PASS: TestFirst (0.50s)"
  echo "=== RUN   TestSecond"; echo "level=info msg=no"; echo "Error: wrong"; echo "--- FAIL: TestSecond (0.25s)"
  echo "=== RUN   TestThird"; {third};;
*TestFourth*) echo "=== RUN   TestFourth"; echo "--- SKIP: TestFourth (0.00s)";;
esac
"""


@pytest.mark.parametrize(
    ("third", "seconds", "cause"),
    [("echo panic: lost; exit 2", 300.0, "exit code 2"), ("sleep 1000", 0.3, "no end after 0 s")],
    ids=["panics", "hangs"],
)
def test_other_tests_run_after_one_that_ends_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third: str, seconds: float, cause: str
) -> None:
    monkeypatch.setattr(test_program, "TEST_SECONDS", seconds)
    (tmp_path / "source/test/e2e").mkdir(parents=True)
    program = tmp_path / "e2e.test"
    program.write_text(SUITE.replace("{third}", third).replace('"$5"', '"$*"'))
    program.chmod(0o755)
    names = ["TestFirst", "TestSecond", "TestThird", "TestFourth"]
    results = list(run_tests(Installation(tmp_path), names, {"PATH": "/usr/bin:/bin"}, tmp_path / "log"))
    assert [(result.name, result.outcome) for result in results] == [
        ("TestFirst", "pass"), ("TestSecond", "fail"), ("TestThird", "fail"), ("TestFourth", "skip"),
    ]  # fmt: skip
    assert results[1].message == "Error: wrong\n--- FAIL: TestSecond (0.25s)"
    assert results[2].message.startswith(cause)
    assert "=== RUN   TestThird" in (tmp_path / "log").read_text()


class OneComponent:
    def __init__(self) -> None:
        self.is_running = True
        self.variables: Mapping[str, str] = {}

    def list_running(self) -> Mapping[str, bool]:
        return {"controller": self.is_running, "redis": True}

    def start(self, name: str, variables: Mapping[str, str]) -> None:
        self.is_running, self.variables = True, variables

    def stop(self, name: str) -> None:
        self.is_running = False


def test_goreman_stops_and_starts_components(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = tmp_path / "variables"
    monkeypatch.setattr(goreman, "VARIABLES_FILE", variables)
    components = OneComponent()

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run([str(folder / "goreman"), *words], capture_output=True, text=True, check=False,
                              preexec_fn=die_with_parent)  # fmt: skip
        return done.returncode, done.stdout

    with goreman.provide_goreman(components, tmp_path / "bin") as folder:
        assert run("run", "status") == (0, "*controller\n*redis\n")
        assert run("run", "stop", "controller") == (0, "")
        assert run("run", "status") == (0, " controller\n*redis\n")
        variables.write_text("export ARGOCD_CONTROLLER_REPLICAS=2\n")
        assert run("run", "start", "controller") == (0, "")
        assert components.variables == {"ARGOCD_CONTROLLER_REPLICAS": "2"}
        assert run("run", "start", "missing")[0] == 1
        assert run("export")[0] == 1
    assert not variables.exists()


def test_page_counts_only_what_argocd_passes_and_what_is_comparable() -> None:
    argocd = {name: TestResult(name, outcome, 1.0) for name, outcome in
              {"TestA": "pass", "TestB": "pass", "TestC": "fail", "TestSet": "pass"}.items()}  # fmt: skip
    argosy = {name: TestResult(name, outcome, 1.0) for name, outcome in
              {"TestA": "pass", "TestB": "fail", "TestC": "pass", "TestSet": "fail"}.items()}  # fmt: skip
    reasons = [
        Reason(re.compile("sets/.*"), "no sets", is_out_of_scope=True),
        Reason(re.compile("app/Test[AB]"), "told otherwise", is_out_of_scope=False),
    ]
    page = build_page({"app": ["TestA", "TestB", "TestC", "TestNew"], "sets": ["TestSet"]}, argocd, argosy, reasons)
    assert "| Argo CD | 3 | 1 | 0 |" in page
    assert "Of the 2 tests" in page
    assert "argosy passes 1: 50.0 %" in page
    assert "| TestA | passed | passed |  |" in page
    assert "| TestB | passed | failed | told otherwise |" in page
    assert "| TestSet | passed | failed | no sets |" in page
    assert "TestNew" not in page


def test_reasons_are_patterns_and_sentences() -> None:
    reasons = read_reasons()
    assert reasons
    assert len({reason.text for reason in reasons}) == len(reasons)
