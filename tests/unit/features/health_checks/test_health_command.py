"""Output and exit codes of `argosy health`; no untrusted script runs here."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from argosy.cli.tables import TerminalOutput, drop_control_characters, format_table
from argosy.kube.objects import read_yaml
from argosy.main import main
from support.paths import ROOT

KEY = "resource.customizations.health."


@pytest.fixture(autouse=True)
def without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def config_map(folder: Path, data: dict[str, str], name: str = "argocd-cm") -> Path:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}))
    return file


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["health", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


# -- list ----------------------------------------------------------------------------------------------------------


def test_list_shows_active_rule_and_other_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "list")
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in out.splitlines()}
    assert (code, err) == (0, "")
    assert rows["GROUP", "KIND"] == ["PROFILE", "SOURCE", "ALSO"]
    assert rows["serving.kserve.io", "InferenceService"] == ["argocd", "bundled", "lenient,", "strict"]
    assert rows["apps", "Deployment"] == ["-", "built-in", "-"]
    assert rows["(core)", "PersistentVolumeClaim"] == ["-", "built-in", "wait-for-consumer"]


def test_list_with_settings_shows_overridden_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wild = '"*.example.com/*": {health.lua: "return {}"}'
    file = config_map(tmp_path, {KEY + "apps_Deployment": "return {}", "resource.customizations": wild})
    own = config_map(tmp_path, {"health.profile.serving.kserve.io_InferenceService": "strict"}, "argosy-cm")
    _, out, _ = run(capsys, "list", "-f", file, "-f", own, "-o", "json")
    listing = json.loads(out)
    rows = {(row["group"], row["kind"]): row for row in listing["items"]}
    assert (listing["apiVersion"], listing["kind"]) == ("cli.argosy.dev/v1", "HealthRules")
    assert rows["apps", "Deployment"]["source"] == "argocd-cm"
    assert rows["*.example.com", "*"]["source"] == "argocd-cm"
    assert rows["serving.kserve.io", "InferenceService"]["profile"] == "strict"


def test_list_of_a_profile_prints_its_kinds_with_output_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list", "--profile", "strict", "-o", "name")[1] == "InferenceService.serving.kserve.io\n"


def test_yaml_output_equals_json_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_yaml(run(capsys, "list", "-o", "yaml")[1]) == json.loads(run(capsys, "list", "-o", "json")[1])


def test_wide_list_shows_the_location_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "list", "-o", "wide")[1]
    assert out.splitlines()[0].endswith("WHERE")
    assert "rules/serving.kserve.io/InferenceService" in out


def test_invalid_setting_is_reported_but_exits_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = config_map(tmp_path, {"health.profile.apps_Deployment": "strict"}, "argosy-cm")
    code, _, err = run(capsys, "list", "-f", config_map(tmp_path, {KEY + "_Pod": "x"}), "-f", own)
    assert code == 0
    assert f"write {KEY}Pod (AGY406)" in err
    assert "apps/Deployment has no profile 'strict'; it has none" in err


# -- show ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word", ["InferenceService", "isvc", "inferenceservices", "INFERENCESERVICE.serving.kserve.io"]
)
def test_show_finds_a_kind_by_any_of_its_names(capsys: pytest.CaptureFixture[str], word: str) -> None:
    code, out, err = run(capsys, "show", word)
    assert code == 0
    assert "return hs" in out
    assert err == "bundled serving.kserve.io/InferenceService (argocd); other profiles: lenient, strict\n"


@pytest.mark.parametrize(
    ("word", "message"), [("pvc", "when Bound"), ("deploy", "progress deadline"), ("svc", "address")]
)
def test_show_describes_a_built_in_rule(capsys: pytest.CaptureFixture[str], word: str, message: str) -> None:
    assert message in run(capsys, "show", word)[1]


def test_every_built_in_rule_has_a_description() -> None:
    from argosy.features.health_checks.effective_health_rule_catalog import BUILTIN_RULE_TEXTS
    from argosy.gitops.health.builtin import BUILTIN_CHECKS
    from argosy.gitops.health.setting_kind_names import render_kind

    assert {render_kind(*of) for of in BUILTIN_CHECKS} == BUILTIN_RULE_TEXTS.keys()


def test_every_short_name_resolves_to_a_kind_with_a_rule() -> None:
    from argosy.features.health_checks.kind_name_lookup import SHORT_KIND_NAMES, find_kind, list_known_kinds
    from argosy.gitops.health.settings import Customizations

    kinds = list_known_kinds(Customizations())
    assert {str(find_kind(short, kinds)) for short in SHORT_KIND_NAMES} == set(SHORT_KIND_NAMES.values())


def test_show_with_profile_prints_the_rule_of_that_profile(capsys: pytest.CaptureFixture[str]) -> None:
    strict, default = run(capsys, "show", "isvc", "--profile", "strict")[1], run(capsys, "show", "isvc")[1]
    assert strict != default
    assert "Profile strict" in strict


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "Job"], "'Job' is the name of 2 kinds\nnext: write Job.batch or Job.batch.volcano.sh"),
        (["show", "Service"], "write core/Service or Service.serving.knative.dev"),
        (["show", "InferenceServise"], "did you mean InferenceService.serving.kserve.io"),
        (["show", "xyzzy"], "no health rule for kind 'xyzzy'\nnext: argosy health list shows all"),
        (["show", "isvc", "--profile", "stric"], "unknown profile 'stric'\nnext: choose one of "),
        (
            ["show", "deploy", "--profile", "strict"],
            "Deployment.apps has no profile 'strict'\nnext: leave --profile out",
        ),
        (["show", "Application"], "Application.argoproj.io has no default health rule"),
        (["list", "-f", "nowhere.yaml"], "nowhere.yaml: does not exist"),
        (["diff", "isvc"], "nothing to compare with\nnext: add one of --profile"),
        (["test", "nowhere.yaml"], "nowhere.yaml: does not exist"),
        (["test", "x.yaml", "--expect", "good"], "--expect good is not a health status\nnext: choose one of Healthy"),
        (
            ["test", "x.yaml", "--expect", "Helthy"],
            "is not a health status\nnext: did you mean Healthy?",
        ),
        (["test", "-", "--script", "-"], "standard input can be used only once"),
        (["diff", "isvc", "--profile", "strict", "--script", "x"], "--profile and --script cannot be used together"),
        (["diff", "isvc", "--profile", "strict", "--open-libs"], "--open-libs needs --script"),
        (["test", "x.yaml", "--script", "a.lua", "--profile", "strict"], "cannot be used together"),
    ],
)
def test_invalid_arguments_exit_2_with_a_next_step(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "next: " in err


# -- objects, evaluated by bundled rules ---------------------------------------------------------------------------

CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nstatus: {phase: %s}\n"


def test_health_test_exits_0_for_degraded_objects(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM % "Lost" + "---\n" + CLAIM % "Bound" + "---\n")
    code, out, err = run(capsys, "test", tmp_path / "claims.yaml")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["KIND/NAME", "HEALTH", "MESSAGE", "RULE"]
    assert [line[2] for line in lines[1:]] == ["Degraded", "Healthy"]
    assert lines[1][-2:] == ["built-in", "PersistentVolumeClaim"]


def test_unmet_expected_health_exits_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM % "Pending")
    assert run(capsys, "test", tmp_path / "claim.yaml", "--expect", "Progressing")[0] == 0
    code, _, err = run(capsys, "test", tmp_path / "claim.yaml", "--expect", "Healthy")
    assert code == 1
    assert "PersistentVolumeClaim data is not Healthy\nnext: " in err


def test_kind_without_a_health_rule_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    code, out, _ = run(capsys, "test", tmp_path)
    assert code == 0
    assert out.splitlines()[1].split() == ["ConfigMap/x", "-", "no", "health", "rule", "for", "this", "kind", "-"]


def test_storage_class_in_input_is_used_for_claim_health(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    storage = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: nfs}\nprovisioner: x\n"
    (tmp_path / "c.yaml").write_text(CLAIM % "Pending" + "spec: {storageClassName: nfs}\n")
    (tmp_path / "facts.yaml").write_text("storageClasses: {nfs: Immediate}\n")
    arguments = ["test", tmp_path / "c.yaml", "--profile", "wait-for-consumer", "-o", "json"]

    def health(*more: object) -> str:
        return str(json.loads(run(capsys, *arguments, *more)[1])["cases"][0]["got"]["status"])

    assert health() == "Healthy"
    assert health("--facts", tmp_path / "facts.yaml") == "Progressing"
    (tmp_path / "s.yaml").write_text(storage)
    assert health(tmp_path / "s.yaml") == "Progressing"


def test_json_report_of_objects_has_the_test_report_format(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM % "Bound")
    report = json.loads(run(capsys, "test", tmp_path / "claim.yaml", "-o", "json")[1])
    assert report == {
        "total": 1,
        "passed": 1,
        "failed": 0,
        "skipped": 0,
        "cases": [
            {
                "suite": "health",
                "group": "",
                "kind": "PersistentVolumeClaim",
                "name": "data",
                "ok": True,
                "expected": None,
                "got": {"status": "Healthy", "message": ""},
                "rule": "built-in PersistentVolumeClaim",
                "file": str(tmp_path / "claim.yaml"),
                "message": "",
            }
        ],
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("empty.yaml", "", "contains no object"),
        ("broken.yaml", "a: [\n", "broken.yaml:2: "),
        ("check.lua", "return {}", "use --script for it"),
        ("latin.yaml", "\udcff", "is not UTF-8"),
    ],
)
def test_file_without_a_valid_object_is_rejected(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    code, _, err = run(capsys, "test", tmp_path / name)
    assert code == 2
    assert message in err


def test_object_with_generate_name_is_evaluated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text((CLAIM % "Bound").replace("name: data", "generateName: data-"))
    assert "PersistentVolumeClaim/data-" in run(capsys, "test", tmp_path / "claim.yaml")[1]


def test_object_flags_without_an_object_are_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = config_map(tmp_path, {KEY + "Pod": "return {}"})
    for flag in (["--expect", "Healthy"], ["--profile", "strict"], ["--open-libs"]):
        assert run(capsys, "test", file, *flag)[0] == 2


def test_flag_between_paths_is_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(CLAIM % "Bound")
    _, out, _ = run(capsys, "test", tmp_path / "a.yaml", "-o", "json", tmp_path / "b.yaml")
    assert json.loads(out)["total"] == 2
    with pytest.raises(SystemExit, match="2"):
        main(["health", "test", "a.yaml", "--what", "b.yaml"])
    assert "unrecognized arguments: --what" in capsys.readouterr().err


def test_diff_compares_a_profile_with_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "diff", "isvc", "--profile", "strict")
    assert code == 1
    assert out.startswith("--- bundled serving.kserve.io/InferenceService (argocd)\n+++ ")
    assert "OBJECT" in out and "Degraded" in out
    assert "would change health" in err and "next: " in err
    assert run(capsys, "diff", "isvc", "--profile", "argocd")[:2] == (
        0,
        "InferenceService.serving.kserve.io: no difference between bundled serving.kserve.io/InferenceService (argocd) "
        "and bundled serving.kserve.io/InferenceService (argocd)\n",
    )


def test_reference_page_lists_every_profile_and_its_kinds() -> None:
    from argosy.gitops.health.bundled_rules import list_profiles, load_profile_rules

    page = (ROOT / "docs/reference/health.md").read_text()
    rows = [line for line in page.partition("## Profiles")[2].partition("## Facts")[0].splitlines() if "|" in line]
    missing = [
        (profile, of.kind)
        for profile in list_profiles()
        for of in load_profile_rules(profile)
        if not any(line.startswith(f"| {of.kind} ") and f"`{profile}`" in line for line in rows)
    ]
    assert missing == []


# -- terminal output -----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_health_status_has_a_mark_a_word_and_a_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert TerminalOutput(Terminal()).format_status("Healthy") == "\x1b[32m✔ Healthy\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert TerminalOutput(Terminal()).format_status("Healthy") == "✔ Healthy"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")])
def test_environment_variables_disable_colours(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert not TerminalOutput(Terminal()).has_colour


def test_force_color_enables_colours_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert TerminalOutput(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")).has_colour


def test_ascii_terminal_gets_ascii_marks() -> None:
    assert TerminalOutput(io.TextIOWrapper(io.BytesIO(), encoding="ascii")).format_status("Degraded") == "!! Degraded"


def test_columns_are_aligned_despite_colour_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = TerminalOutput(Terminal())
    lines = format_table(["A", "B"], [[screen.format_status("Healthy"), "x"], ["longer than that", "y"]])
    assert [line.replace("\x1b[32m", "").replace("\x1b[0m", "").rindex(mark) for line, mark in zip(lines, "Bxy")] == [
        19
    ] * 3


def test_messages_are_truncated_on_a_terminal_and_complete_in_a_pipe() -> None:
    headings, rows = ["KIND/NAME", "MESSAGE", "RULE"], [["Pod/a", "x" * 200, "built-in Pod"], ["Pod/b", "", "r"]]
    fitted = format_table(headings, rows, 60)
    assert {len(line) <= 60 for line in fitted} == {True}
    assert "x…   built-in Pod" in fitted[1]
    assert "x" * 200 in format_table(headings, rows)[1]
    assert "x" * 19 + "…" in format_table(headings, rows, 10)[1], "a narrow terminal must not take the message away"
    assert TerminalOutput(io.StringIO()).format_table(headings, rows) == format_table(headings, rows)


def test_control_characters_are_dropped_from_output() -> None:
    assert drop_control_characters("a\x1b[2Jb\nc\rd") == "a [2Jb c d"
    assert "\x1b" not in "".join(format_table(["A"], [["\x1b[31mred"]]))
