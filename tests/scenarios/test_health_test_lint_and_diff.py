"""The installed `argosy health test`, `lint` and `diff` on files, with untrusted scripts."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.clusters import ARGOSY, argosy, environment
from support.deadlines import HANG_SECONDS
from support.tiers import IN_TEST_ALL

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "health-checks.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOGETHER: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

MODEL = "apiVersion: ml.example.com/v1\nkind: Model\nmetadata: {name: churn}\nstatus: {phase: %s}\n"
CHECK = """\
local hs = {status = "Progressing", message = "waiting"}
if obj.status ~= nil and obj.status.phase == "Ready" then
  hs.status = "Healthy"
  hs.message = "ready"
end
return hs
"""
CLAIM_CHECK = """\
hs = {}
if obj.status.phase == "Bound" then
  hs.status = "Healthy"
end
return hs
"""


def indented(script: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in script.splitlines())


CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n"
    "  resource.customizations.health.ml.example.com_Model: |\n" + indented(CHECK, 4)
)
RESOURCE = (
    "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata: {name: gitops}\nspec:\n  resourceHealthChecks:\n"
    "  - kind: PersistentVolumeClaim\n    check: |\n"
    + indented(CLAIM_CHECK, 6)
    + "  - group: ml.example.com\n    kind: Model\n    check: |\n"
    + indented(CHECK, 6)
)
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"


def health(home: Path, *arguments: object, input: str | None = None) -> tuple[int, str, str]:
    done = argosy("health", *arguments, home=home, input=input)
    assert "Traceback" not in done.err, done.err
    assert done.code == 0 or "next: " in done.err, "a failure must say what to do"
    return done.code, done.out, done.err


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "model.yaml").write_text(MODEL % "Ready")
    (tmp_path / "check.lua").write_text(CHECK)
    (tmp_path / "argocd-cm.yaml").write_text(CONFIG_MAP)
    (tmp_path / "argocd.yaml").write_text(RESOURCE)
    (tmp_path / "claim.yaml").write_text(CLAIM)
    return tmp_path


def rule_folder(folder: Path, *, message: str = "ready") -> Path:
    rule = folder / "rules" / "ml.example.com" / "Model"
    (rule / "testdata").mkdir(parents=True)
    (rule / "health.lua").write_text(CHECK)
    (rule / "testdata/ready.yaml").write_text(MODEL % "Ready")
    (rule / "testdata/new.yaml").write_text(MODEL % "Loading")
    rows = [("Healthy", message, "ready"), ("Progressing", "waiting", "new")]
    tests = [f"- healthStatus: {{status: {a}, message: {b}}}\n  inputPath: testdata/{c}.yaml\n" for a, b, c in rows]
    (rule / "health_test.yaml").write_text("tests:\n" + "".join(tests))
    return folder / "rules"


# -- objects and checks --------------------------------------------------------------------------------------------


def test_check_in_settings_assesses_objects_of_the_same_command(files: Path) -> None:
    for settings in ("argocd-cm.yaml", "argocd.yaml"):
        code, out, err = health(files, "test", files / settings, files / "model.yaml", "--expect", "Healthy")
        assert code == 0 and set(err.splitlines()) <= {"judging 1 objects …"}, err  # printed only on a slow machine
        assert out.splitlines()[1].split()[:4] == ["Model/churn", "✔", "Healthy", "ready"]


@pytest.mark.tier("all")
def test_settings_can_come_from_stdin(files: Path) -> None:
    code, out, _ = health(files, "test", "-", files / "model.yaml", input=CONFIG_MAP)
    assert code == 0
    assert "argocd-cm resource.customizations.health.ml.example.com_Model" in out


@pytest.mark.tier("all")
def test_settings_without_objects_run_each_check_on_a_new_object(files: Path) -> None:
    code, out, err = health(files, "test", files / "argocd.yaml")
    assert code == 1
    assert "attempt to index field 'status' (a nil value)" in out
    assert "PersistentVolumeClaim" in err and "the check itself failed" in err
    assert "argocd.yaml:9: AGY403 " in out
    assert health(files, "test", files / "argocd-cm.yaml")[0] == 0


@pytest.mark.tier("all")
def test_faulty_check_affects_only_its_own_object(files: Path) -> None:
    code, out, _ = health(files, "test", files / "argocd.yaml", files / "claim.yaml", files / "model.yaml")
    assert code == 1
    rows = {line.split()[0]: line.split()[2] for line in out.splitlines()[1:]}
    assert rows == {"PersistentVolumeClaim/data": "Unknown", "Model/churn": "Healthy"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("retrun {}", "bad.lua:1: "),
        pytest.param('error("\\27[2Jgone")', "[2Jgone", marks=IN_TEST_ALL),
        pytest.param("while true do end", "context deadline exceeded", marks=IN_TEST_ALL),
        pytest.param("return obj.status.nothing.there", "attempt to index field 'nothing'", marks=IN_TEST_ALL),
        pytest.param('return "Healthy"', "expect table output", marks=IN_TEST_ALL),
        pytest.param('return {status = "Fine"}', "invalid health status", marks=IN_TEST_ALL),
        pytest.param('return {status = "Healthy", message = string.upper("x")}', "string", marks=IN_TEST_ALL),
    ],
)
def test_bad_script_fails_with_its_error_message(files: Path, script: str, message: str) -> None:
    (files / "bad.lua").write_text(script)
    done = argosy("health", "test", "--script", files / "bad.lua", files / "model.yaml", home=files)
    assert message in done.out
    assert "\x1b" not in done.out + done.err
    assert done.code == 1


@pytest.mark.tier("all")
def test_open_libraries_are_available_only_on_request(files: Path) -> None:
    (files / "s.lua").write_text('return {status = "Healthy", message = string.upper("x")}')
    arguments = ["test", "--script", files / "s.lua", files / "model.yaml"]
    assert health(files, *arguments)[0] == 1
    assert health(files, *arguments, "--open-libs")[0] == 0


@pytest.mark.tier("all")
def test_diff_hints_that_a_check_hides_states_of_the_bundled_rule(files: Path) -> None:
    text = CONFIG_MAP.replace("ml.example.com_Model", "serving.kserve.io_InferenceService")
    (files / "isvc.yaml").write_text(text)
    code, out, err = health(files, "diff", "isvc", "-f", files / "isvc.yaml")
    assert code == 1
    assert re.search(r"^stopped|/stopped", out, re.MULTILINE)
    assert "hint: AGY404: this check overrides a bundled rule that detects more states" in err


@pytest.mark.tier("all")
def test_diff_compares_a_script_with_the_bundled_rule(files: Path) -> None:
    code, out, _ = health(files, "diff", "isvc", "--script", files / "check.lua", "-o", "json")
    comparison = json.loads(out)
    assert code == 1
    assert comparison["other"] == str(files / "check.lua")
    assert {"name", "one", "other"} == comparison["disagreements"][0].keys()


# -- trees ---------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_passing_tree_prints_the_number_of_cases(files: Path) -> None:
    tree = rule_folder(files)
    for folder in (tree, tree / "ml.example.com", tree / "ml.example.com" / "Model"):
        assert health(files, "test", folder)[:2] == (0, "2 cases: 2 passed\n")


def test_failing_case_is_one_line_with_expected_and_got(files: Path) -> None:
    code, out, err = health(files, "test", rule_folder(files, message="served"))
    assert code == 1
    line, summary = out.splitlines()
    assert "ml.example.com/Model testdata/ready.yaml" in line
    assert 'expected Healthy "served"' in line and 'got Healthy "ready"' in line
    assert summary == "2 cases: 1 passed, 1 failed"
    assert "1 of 2 cases failed" in err


@pytest.mark.tier("all")
def test_json_report_of_a_tree_has_exactly_the_documented_fields(files: Path) -> None:
    code, out, _ = health(files, "test", rule_folder(files, message="served"), "-o", "json")
    report = json.loads(out)
    assert code == 1
    assert list(report) == ["total", "passed", "failed", "skipped", "cases"]
    assert [report[name] for name in ("total", "passed", "failed", "skipped")] == [2, 1, 1, 0]
    assert [list(case) for case in report["cases"]] == [
        ["suite", "group", "kind", "name", "ok", "expected", "got"],
    ] * 2


@pytest.mark.tier("all")
def test_junit_report_is_valid_xml(files: Path) -> None:
    (files / "bad.lua").write_text('error("<&\\0\\1>")')
    tree = rule_folder(files, message="served")
    code, out, _ = health(files, "test", tree, "-o", "junit")
    root = ElementTree.fromstring(out)
    assert (code, root.attrib["tests"], root.attrib["failures"]) == (1, "2", "1")
    out = argosy("health", "test", "--script", files / "bad.lua", files / "model.yaml", "-o", "junit", home=files).out
    assert ElementTree.fromstring(out).attrib["failures"] == "1"


@pytest.mark.tier("all")
def test_every_bundled_rule_passes_its_tests(files: Path) -> None:
    code, out, _ = health(files, "test", ROOT / "src/argosy/gitops/health/rules", "-o", "json")
    report = json.loads(out)
    assert code == 0
    assert report["total"] == report["passed"] > 300
    assert {case["suite"] for case in report["cases"]} == {"health", "action", "discovery"}


@pytest.mark.tier("all")
def test_every_bundled_profile_passes_its_tests(files: Path) -> None:
    for folder in sorted((ROOT / "src/argosy/gitops/health/profiles").iterdir()):
        assert health(files, "test", folder)[0] == 0, folder.name


@pytest.fixture
def slow(files: Path) -> Path:
    tree = rule_folder(files)
    (tree / "ml.example.com/Model/health.lua").write_text("while true do end")
    return tree


@pytest.mark.tier("all")
def test_long_run_prints_its_progress(files: Path, slow: Path) -> None:
    code, out, err = health(files, "test", slow)
    assert code == 1
    assert err.startswith("0 of 2 cases …\n")
    assert out.endswith("2 cases: 0 passed, 2 failed\n")


@pytest.mark.tier("all")
def test_interrupted_run_exits_130_without_a_traceback(files: Path, slow: Path) -> None:
    command = [str(ARGOSY), "health", "test", str(slow)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(files)) as process:
        assert process.stderr is not None
        assert "0 of 2" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in rest and "Traceback" not in rest


# -- lint ----------------------------------------------------------------------------------------------------------


def test_lint_names_the_line_in_the_file_that_contains_the_script(files: Path) -> None:
    code, out, err = health(files, "lint", files / "argocd.yaml")
    line = 1 + RESOURCE.splitlines().index('      if obj.status.phase == "Bound" then')
    assert f"{files / 'argocd.yaml'}:{line}: AGY403 " in out
    assert "2 scripts: " in err
    assert code == 1


def test_lint_of_a_good_script_reports_nothing(files: Path) -> None:
    assert health(files, "lint", files / "check.lua") == (0, "", "1 script: 0 errors, 0 warnings\n")


@pytest.mark.tier("all")
def test_lint_of_a_script_that_does_not_parse_is_an_error(files: Path) -> None:
    (files / "bad.lua").write_text("local hs = {}\nif obj.status == nil the\n  return hs\nend\n")
    code, out, _ = health(files, "lint", files / "bad.lua")
    assert code == 1
    assert f"{files / 'bad.lua'}:2: AGY401 error: " in out


@pytest.mark.tier("all")
def test_lint_reports_libraries_that_are_unavailable_without_open_libs(files: Path) -> None:
    (files / "s.lua").write_text('return {status = "Healthy", message = string.upper(obj.kind)}\n')
    assert "AGY407" in health(files, "lint", files / "s.lua")[1]
    assert "AGY407" not in health(files, "lint", files / "s.lua", "--open-libs")[1]


def test_lint_of_settings_reports_invalid_keys(files: Path) -> None:
    (files / "argocd-cm.yaml").write_text(CONFIG_MAP.replace("ml.example.com_Model", "Model_ml.example.com"))
    code, out, _ = health(files, "lint", files / "argocd-cm.yaml")
    assert code == 1
    assert ":5: AGY406 error: " in out
    assert "write resource.customizations.health.ml.example.com_Model" in out


def test_lint_supports_json_junit_and_github_output(files: Path) -> None:
    (files / "bad.lua").write_text("retrun 1")
    report = json.loads(health(files, "lint", files / "bad.lua", "-o", "json")[1])
    assert report["items"][0]["rule"] == "AGY401"
    assert ElementTree.fromstring(health(files, "lint", files / "bad.lua", "-o", "junit")[1]).attrib["failures"] == "1"
    assert health(files, "lint", files / "bad.lua", "-o", "github")[1].startswith("::error file=")


@pytest.mark.tier("all")
def test_lint_finds_no_error_in_bundled_rules(files: Path) -> None:
    code, out, _ = health(
        files, "lint", ROOT / "src/argosy/gitops/health/rules", ROOT / "src/argosy/gitops/health/profiles"
    )
    assert code == 0, out


# -- watching ------------------------------------------------------------------------------------------------------


class Watching:
    """Runs `argosy health test --watch` as a process; tests can wait for its output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.seen = process, ""

    def wait_for(self, text: str) -> None:
        """Wait for the text; consume the output up to its end."""
        assert self.process.stdout is not None
        while text not in self.seen:
            ready, _, _ = select.select([self.process.stdout], [], [], HANG_SECONDS)
            more = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert more, f"{text!r} did not come; before: {self.seen}"
            self.seen += more.decode()
        self.seen = self.seen.partition(text)[2]


@pytest.fixture
def watching(files: Path) -> Iterator[Watching]:
    command = [str(ARGOSY), "health", "test", "--script", "check.lua", "model.yaml", "--watch"]
    process = subprocess.Popen(
        command,
        cwd=files,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(files),
        stdin=subprocess.DEVNULL,
    )
    try:
        yield Watching(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.tier("all")
def test_watch_runs_again_after_a_save_and_survives_incomplete_files(watching: Watching, files: Path) -> None:
    watching.wait_for("Healthy")
    watching.wait_for("watching; Ctrl-C ends it")
    (files / "check.lua").write_text("local hs = {status = ")
    watching.wait_for("check.lua:1: ")
    watching.wait_for("watching; Ctrl-C ends it")
    (files / "model.yaml").write_text("")
    watching.wait_for("contains no object")
    (files / "model.yaml").unlink()
    watching.wait_for("does not exist")
    (files / "model.yaml").write_text(MODEL % "Ready")
    (files / "check.lua").write_text(CHECK.replace("Healthy", "Suspended"))
    watching.wait_for("Suspended")
    watching.wait_for("watching; Ctrl-C ends it")
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(HANG_SECONDS) == 0


@pytest.mark.tier("all")
def test_watch_of_stdin_is_refused(files: Path) -> None:
    code, _, err = health(files, "test", "-", "--watch", input=CLAIM)
    assert code == 2
    assert "standard input cannot be watched" in err


# -- the guide and the terminal ------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_guide_commands_print_what_the_guide_shows(files: Path) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    model, tests, settings, actions = (text for language, text in blocks if language == "yaml")
    [script] = (text for language, text in blocks if language == "lua")
    rule = files / "ml.example.com" / "Model"
    (rule / "testdata").mkdir(parents=True)
    for path, text in {
        files / "model.yaml": model,
        files / "check.lua": script,
        files / "argocd-cm.yaml": settings,
        files / "actions.yaml": actions,
        rule / "health.lua": script,
        rule / "health_test.yaml": tests,
        rule / "testdata/loading.yaml": model,
        rule / "testdata/ready.yaml": model.replace("Loading", "Ready"),
    }.items():
        path.write_text(text)
    expected_lines = [line for language, text in blocks if language == "console" for line in text.splitlines()]
    printed: list[str] = []
    for command in (line for line in expected_lines if line.startswith("$ ")):
        printed.append(command)
        words = [str(ARGOSY), *command.split()[2:]]
        done = subprocess.run(words, cwd=files, env=environment(files), check=False, timeout=HANG_SECONDS, **TOGETHER)
        printed += [line for line in done.stdout.splitlines() if not line.endswith(" …")]  # progress on a slow machine
    assert [line.split() for line in printed] == [line.split() for line in expected_lines]
    assert health(files, "lint", files / "argocd-cm.yaml")[0] == 0
    assert health(files, "test", files / "argocd-cm.yaml", files / "model.yaml", "--expect", "Progressing")[0] == 0
    assert health(files, "lint", files / "actions.yaml") == (0, "", "2 scripts: 0 errors, 0 warnings\n")
    assert health(files, "diff", "Model", "--script", files / "check.lua", files / "model.yaml")[0] == 1


@pytest.mark.tier("all")
def test_ascii_only_terminal_gets_escaped_output(files: Path) -> None:
    env = environment(files) | {"PYTHONIOENCODING": "ascii"}
    (files / "check.lua").write_text('return {status = "Healthy", message = "größer ✔"}')
    command = [str(ARGOSY), "health", "test", "--script", str(files / "check.lua"), str(files / "model.yaml")]
    done = subprocess.run(command, env=env, check=False, capture_output=True, timeout=HANG_SECONDS)
    assert done.returncode == 0
    assert b"ok Healthy   gr\\xf6\\xdfer" in done.stdout
