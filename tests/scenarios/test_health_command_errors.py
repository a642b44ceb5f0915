"""`argosy health` with broken checks, broken pipes, missing files and other mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.clusters import ARGOSY, argosy, environment
from support.deadlines import HANG_SECONDS

CM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n"
HEALTH = "resource.customizations.health."
MODEL = "apiVersion: ml.example.com/v1\nkind: Model\nmetadata: {name: churn}\nstatus: {phase: Ready}\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nstatus: {phase: Bound}\n"
GOOD = "local hs = {status = 'Progressing'}\nif obj.status ~= nil then\n  hs.status = 'Healthy'\nend\nreturn hs\n"


def indented(script: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in script.splitlines())


def health(home: Path, *arguments: object, input: str | None = None) -> tuple[int, str, str]:
    done = argosy("health", *arguments, home=home, input=input)
    assert "Traceback" not in done.err, done.err
    assert done.code == 0 or "next: " in done.err, "a failure must say what to do"
    return done.code, done.out, done.err


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "good.lua").write_text(GOOD)
    return tmp_path


# -- streams -------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "arguments", [["test", "-"], ["lint", "-"], ["test", "--script", "-", "m"], ["test", "--facts", "-", "m"]]
)
def test_closed_stdin_gives_a_one_sentence_error(files: Path, arguments: list[str]) -> None:
    words = [str(files / "model.yaml") if word == "m" else word for word in arguments]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", str(ARGOSY), "health", *words]
    done = subprocess.run(
        shell, env=environment(files), capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 2
    assert done.stderr == "argosy: standard input: is closed\nnext: name a file instead\n"


def unread(files: Path, *arguments: object, both: bool = False) -> int:
    """Return the exit code of a command whose output nobody reads."""
    there, here = os.pipe()
    os.close(there)
    error: Any = here if both else subprocess.DEVNULL
    words = [str(ARGOSY), "health", *map(str, arguments)]
    try:
        done = subprocess.run(
            words, env=environment(files), stdout=here, stderr=error, check=False, timeout=HANG_SECONDS
        )
    finally:
        os.close(here)
    return done.returncode


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.tier("all")
def test_broken_output_pipe_does_not_change_the_exit_code(files: Path, both: bool) -> None:
    (files / "bad.lua").write_text("return {")
    model, claim = files / "model.yaml", files / "claim.yaml"
    assert unread(files, "test", model, "--expect", "Healthy", both=both) == 1
    assert unread(files, "test", claim, "--expect", "Healthy", both=both) == 0
    assert unread(files, "lint", files / "bad.lua", both=both) == 1
    assert unread(files, "diff", "isvc", "--profile", "strict", both=both) == 1
    assert unread(files, "test", files / "nowhere.yaml", claim, both=both) == 2
    assert unread(files, "list", both=both) == 0


@pytest.mark.tier("all")
def test_closed_stdout_and_stderr_do_not_change_the_exit_code(files: Path) -> None:
    words = [str(ARGOSY), "health", "test", str(files / "model.yaml"), "--expect", "Healthy"]
    shell = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *words]
    assert subprocess.run(shell, env=environment(files), check=False, timeout=HANG_SECONDS).returncode == 1


# -- broken checks -------------------------------------------------------------------------------------------------

BROKEN = {
    "a word that is no health": f"  {HEALTH}ml.example.com_Model: |\n    return {{status = 'Fine'}}\n",
    "an old map that is no YAML": "  resource.customizations: |\n    a: [\n",
    "actions that are no YAML": "  resource.customizations.actions.ml.example.com_Model: |\n    a: [\n",
    "a check that is no text": f"  {HEALTH}ml.example.com_Model: 3\n",
    "a key that names no kind": f"  {HEALTH}ml.example.com/Model: |\n{indented(GOOD, 4)}",
    "an action that does not parse": (
        "  resource.customizations.actions.ml.example.com_Model: |\n"
        "    definitions:\n    - name: stop\n      action.lua: |\n        retrun obj\n"
    ),
}


USUAL = "a word that is no health"


@pytest.mark.parametrize(
    "fault",
    [
        description if description == USUAL else pytest.param(description, marks=pytest.mark.tier("all"))
        for description in BROKEN
    ],
)
def test_broken_settings_fail_in_every_report_format(files: Path, fault: str) -> None:
    (files / "cm.yaml").write_text(CM + BROKEN[fault])
    assert health(files, "test", files / "cm.yaml")[0] == 1
    code, out, _ = health(files, "test", files / "cm.yaml", "-o", "json")
    report = json.loads(out)
    assert (code, report["total"], report["failed"]) == (1, 1, 1)
    assert report["cases"][0].keys() == {"suite", "group", "kind", "name", "ok", "expected", "got"}
    code, out, _ = health(files, "test", files / "cm.yaml", "-o", "junit")
    assert (code, ElementTree.fromstring(out).get("failures")) == (1, "1")


@pytest.mark.tier("all")
@pytest.mark.parametrize("fault", BROKEN)
def test_broken_settings_fail_only_the_objects_that_they_concern(files: Path, fault: str) -> None:
    (files / "cm.yaml").write_text(CM + BROKEN[fault])
    is_script = "parse" in fault  # actions are not used to assess an object
    assert health(files, "test", files / "cm.yaml", files / "model.yaml")[0] == (0 if is_script else 1)
    is_for_all = "old map" in fault
    assert health(files, "test", files / "cm.yaml", files / "claim.yaml")[0] == (1 if is_for_all else 0)


def test_settings_fault_is_reported_alike_by_test_and_lint(files: Path) -> None:
    (files / "cm.yaml").write_text(CM + "".join(BROKEN[name] for name in ("actions that are no YAML",)))
    tested, linted = (health(files, part, files / "cm.yaml")[1] for part in ("test", "lint"))
    assert "cm.yaml:6: AGY406 error: is not valid YAML, in line 2 of its text" in linted
    assert tested == linted


@pytest.mark.tier("all")
def test_misspelled_settings_key_is_a_warning_and_no_failure(files: Path) -> None:
    (files / "cm.yaml").write_text(f"{CM}  resource.customization.health.ml.example.com_Model: |\n{indented(GOOD, 4)}")
    code, out, _ = health(files, "test", files / "cm.yaml")
    assert code == 0
    assert f"cm.yaml:5: AGY406 warning: is not read; did you mean {HEALTH}ml.example.com_Model?" in out
    code, _, err = health(files, "test", files / "cm.yaml", files / "model.yaml")
    assert code == 0
    assert "warning: resource.customization.health" in err


def test_script_with_an_invalid_health_status_fails(files: Path) -> None:
    (files / "fine.lua").write_text("return {status = 'Fine'}")
    code, _, err = health(files, "test", "--script", files / "fine.lua", files / "model.yaml")
    assert code == 1
    assert "correct the script" in err


@pytest.mark.tier("all")
def test_rule_tests_without_a_health_script_fail(files: Path) -> None:
    rule = files / "rules" / "ml.example.com" / "Model"
    (rule / "testdata").mkdir(parents=True)
    (rule / "testdata/ready.yaml").write_text(MODEL)
    row = "- healthStatus: {status: Healthy, message: ''}\n  inputPath: testdata/ready.yaml\n"
    (rule / "health_test.yaml").write_text("tests:\n" + row)
    for folder in (files / "rules", rule.parent, rule):
        code, out, _ = health(files, "test", folder)
        assert code == 1
        assert "ml.example.com/Model testdata/ready.yaml: got error: no health.lua next to the tests" in out
    (rule / "health.lua").write_text(GOOD)
    assert health(files, "test", files / "rules")[0] == 0


# -- advice --------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_object_that_a_bundled_rule_cannot_read_is_blamed(files: Path) -> None:
    (files / "bad.yaml").write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: 3\n")
    code, _, err = health(files, "test", files / "bad.yaml")
    assert code == 1
    assert "the health rule cannot read the object" in err and "next: fix the object" in err


@pytest.mark.tier("all")
def test_expected_health_of_a_kind_without_a_rule_fails_with_the_reason(files: Path) -> None:
    code, _, err = health(files, "test", files / "model.yaml", "--expect", "healthy")
    assert code == 1
    assert "is not Healthy, because this kind has no health rule\nnext: write a check for it" in err


@pytest.mark.tier("all")
def test_misspelled_kind_gets_a_suggestion(files: Path) -> None:
    (files / "x.yaml").write_text("apiVersion: serving.kserve.io/v1beta1\nkind: InferenceServce\nmetadata: {name: x}\n")
    _, _, err = health(files, "test", files / "x.yaml", files / "model.yaml")
    assert err == (
        "note: no health rule for InferenceServce.serving.kserve.io; did you mean InferenceService.serving.kserve.io?\n"
    )


@pytest.mark.tier("all")
def test_facts_that_no_rule_reads_give_warnings(files: Path) -> None:
    (files / "facts.yaml").write_text("storageclasses: {}\nregion: eu\n")
    _, _, err = health(files, "test", files / "claim.yaml", "--facts", files / "facts.yaml")
    assert "warning: facts: no rule reads storageclasses; did you mean storageClasses?" in err
    assert "warning: facts: no rule reads region; known are storageClasses and defaultStorageClass" in err
    (files / "by_region.lua").write_text("return {status = 'Healthy', message = facts.region}")
    words = ["test", "--script", files / "by_region.lua", files / "claim.yaml", "--facts", files / "facts.yaml"]
    assert "region" not in health(files, *words)[2]


def test_missing_file_does_not_prevent_the_assessment_of_others(files: Path) -> None:
    code, out, err = health(files, "test", files / "nowhere.yaml", files / "claim.yaml")
    assert code == 2
    assert "PersistentVolumeClaim/data" in out
    assert "nowhere.yaml: does not exist\nnext: " in err


@pytest.mark.tier("all")
def test_script_report_has_only_the_documented_fields(files: Path) -> None:
    _, out, _ = health(files, "test", "--script", files / "good.lua", files / "model.yaml", "-o", "json")
    [case] = json.loads(out)["cases"]
    assert case.keys() == {"suite", "group", "kind", "name", "ok", "expected", "got"}


# -- list, show, diff ----------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_show_accepts_every_name_that_list_prints(files: Path) -> None:
    from argosy.main import main

    wild = '  resource.customizations: |\n    "*.example.com/*": {health.lua: "return {}"}\n'
    (files / "cm.yaml").write_text(CM + wild)
    names = health(files, "list", "-o", "name", "-f", files / "cm.yaml")[1].splitlines()
    assert "core/Service" in names and "*.example.com/*" in names
    assert {main(["health", "show", name, "-f", str(files / "cm.yaml")]) for name in names} == {0}


@pytest.mark.tier("all")
def test_diff_needs_a_check_and_objects_of_the_kind(files: Path) -> None:
    (files / "cm.yaml").write_text(f"{CM}  {HEALTH}ml.example.com_Model: |\n{indented(GOOD, 4)}")
    code, _, err = health(files, "diff", "isvc", "-f", files / "cm.yaml")
    assert code == 2
    assert "these settings have no check and no profile for InferenceService.serving.kserve.io" in err
    code, _, err = health(files, "diff", "Model", "-f", files / "cm.yaml")
    assert code == 1
    assert "there are no test objects of this kind\nnext: add files with objects" in err


@pytest.mark.tier("all")
def test_diff_compares_two_rules_on_given_objects(files: Path) -> None:
    words = ["diff", "Model", "--script", files / "good.lua", files / "model.yaml", files / "claim.yaml"]
    code, out, err = health(files, *words)
    assert code == 1
    assert "model.yaml churn" in out and "no health rule for this kind" in out
    assert "of 1 object, 1 would change health and 0 only the message" in err
    code, _, err = health(files, "diff", "isvc", "--profile", "strict", files / "model.yaml")
    assert code == 2
    assert "none of the objects has kind InferenceService.serving.kserve.io" in err


@pytest.mark.tier("all")
def test_check_of_an_argocd_resource_names_it_as_its_source(files: Path) -> None:
    check = f"  resourceHealthChecks:\n  - kind: Node\n    check: |\n{indented(GOOD, 6)}"
    resource = "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata: {name: gitops}\nspec:\n" + check
    (files / "cr.yaml").write_text(resource)
    rows = json.loads(health(files, "list", "-f", files / "cr.yaml", "-o", "json")[1])["items"]
    assert [row["source"] for row in rows if row["kind"] == "Node"] == ["ArgoCD"]
    assert health(files, "show", "Node", "-f", files / "cr.yaml")[2] == "ArgoCD/gitops spec.resourceHealthChecks[0]\n"


@pytest.mark.parametrize("moment", ["---", "watching; Ctrl-C ends it"])
@pytest.mark.tier("all")
def test_ctrl_c_ends_watch_mode_with_exit_code_0(files: Path, moment: str) -> None:
    (files / "slow.lua").write_text("while true do end")
    words = [str(ARGOSY), "health", "test", "--script", "slow.lua", "model.yaml", "--watch"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=files, env=environment(files), text=True, bufsize=1, **pipes) as process:
        assert process.stdout is not None
        moment_line = next((line for line in process.stdout if line.strip() == moment), "")
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert (process.wait(HANG_SECONDS), moment_line.strip(), "Traceback" in rest) == (0, moment, False)


def test_manifest_called_health_yaml_is_read_as_an_object(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "health.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {phase: Succeeded}}")
    code, output, _ = health(tmp_path, "test", folder)
    assert (code, "Pod/p" in output) == (0, True)


def test_endless_file_is_refused(tmp_path: Path) -> None:
    code, _, errors = health(tmp_path, "test", "/dev/zero")
    assert (code, "larger than 32 MiB" in errors) == (2, True)
