"""Case collection of `health test`: whole trees, subfolders of trees and hostile folders."""

from __future__ import annotations

import os

import pytest

from argosy.errors import LimitError, UserError
from argosy.gitops.health.test_suite import collect_cases, render_line
from argosy.gitops.health.test_suite.case_collection import MAX_CASES
from argosy.gitops.health.test_suite.rule_tree_script_lookup import matches_kind
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import MAX_FILE_BYTES, MAX_SCRIPT_BYTES
from support.health_suites import POOL, RULE, TREES, outcomes_of, row, rule_of, write

close_pool = POOL.fixture()
KIND = "kind: Thing\napiVersion: toys.example.com/v1\n"


@pytest.fixture(scope="module")
def whole() -> set[str]:
    return {outcome.case.name for outcome in outcomes_of(TREES / "good")}


@pytest.mark.parametrize(
    ("part", "cases"),
    [
        ("shop.example.com", 25),
        ("shop.example.com/Order", 18),
        ("shop.example.com/Order/actions", 18),
        ("_.example.com/_", 2),
        ("_.example.com", 2),
        ("Parcel", 1),
        ("batch/CronJob", 1),
        # the scripts of these kinds are in other folders of the tree
        ("shop.example.com/Refund", 3),
        ("gifts.example.com/_Set", 1),
        ("gifts.example.com", 1),
    ],
)
def test_subfolder_runs_the_same_cases_as_in_the_whole_tree(part, cases, whole):
    outcomes = outcomes_of(TREES / "good" / part)
    assert [render_line(outcome) for outcome in outcomes if not outcome.ok] == []
    assert len(outcomes) == cases
    assert {outcome.case.name for outcome in outcomes} <= whole


def test_single_rule_folder_derives_group_from_its_test_objects(tmp_path):
    lone = write(tmp_path, rule_of("toys.example.com", "Doll")) / "toys.example.com" / "Doll"
    (case,) = collect_cases(lone).cases
    assert (case.group, case.kind) == ("toys.example.com", "Doll")
    core = write(tmp_path, rule_of("", "Pebble")) / "Pebble"
    (case,) = collect_cases(core).cases
    assert (case.group, case.kind) == ("", "Pebble")


def test_resource_customizations_folder_is_found_in_repository_root(tmp_path):
    write(tmp_path / "resource_customizations", rule_of("toys.example.com", "Doll"))
    write(tmp_path / "somewhere", rule_of("toys.example.com", "Else"))
    assert [(case.group, case.kind) for case in collect_cases(tmp_path).cases] == [("toys.example.com", "Doll")]


def test_folder_without_tests_raises_user_error(tmp_path):
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(UserError, match="no tests found; name a folder"):
        collect_cases(tmp_path)
    with pytest.raises(UserError, match="not a folder"):
        collect_cases(tmp_path / "README.md")


def test_health_test_without_rows_is_an_error_alone_and_a_note_in_a_tree(tmp_path):
    write(tmp_path, rule_of("toys.example.com", "Doll"))
    write(tmp_path, {"toys.example.com/Ball/health.lua": RULE, "toys.example.com/Ball/health_test.yaml": "tests: []\n"})
    with pytest.raises(UserError, match="no tests found"):
        collect_cases(tmp_path / "toys.example.com" / "Ball")
    (note,) = collect_cases(tmp_path).notes
    assert note == "toys.example.com/Ball/health_test.yaml: has no rows, so the rule next to it is not tested; add some"


def test_untested_scripts_and_empty_test_files_are_noted(tmp_path):
    write(tmp_path, rule_of("toys.example.com", "Doll"))
    write(
        tmp_path,
        {
            "a.example.com/A/health_test.yaml": "tests: []",
            "b.example.com/B/actions/discovery.lua": "return {}",
            "c.example.com/C/actions/action_test.yaml": "actionTests:\n",
            "toys.example.com/Doll/testdata/health.yaml": KIND,
        },
    )
    assert [note.partition(":")[0] for note in collect_cases(tmp_path).notes] == [
        "a.example.com/A/health_test.yaml",
        "b.example.com/B/actions/discovery.lua",
        "c.example.com/C/actions/action_test.yaml",
    ]


def test_case_names_are_unique():
    names = [(case.suite, case.group, case.kind, case.name) for case in collect_cases(TREES / "bad").cases]
    assert len(set(names)) == len(names)


def test_symlink_to_test_object_outside_the_tree_fails_the_case(tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text(KIND)
    tree = write(tmp_path / "tree", rule_of("toys.example.com", "Thing"))
    folder = tree / "toys.example.com" / "Thing"
    tests = "tests:\n" + row("Healthy", "Thing", "testdata/link.yaml") + row("Healthy", "Thing", "testdata/inside.yaml")
    (folder / "health_test.yaml").write_text(tests)
    (folder / "testdata" / "link.yaml").symlink_to(secret)
    (folder / "testdata" / "inside.yaml").symlink_to("one.yaml")
    outside = write(tmp_path / "outside", rule_of("toys.example.com", "Other"))
    (tree / "linked").symlink_to(outside)
    refused, allowed = outcomes_of(tree)
    assert not refused.ok and "is outside the tree" in render_line(refused)
    assert allowed.ok


def test_symlink_to_script_outside_the_tree_fails_the_case(tmp_path):
    tree = write(tmp_path / "tree", rule_of("toys.example.com", "Thing"))
    script = tree / "toys.example.com" / "Thing" / "health.lua"
    script.rename(tmp_path / "health.lua")
    script.symlink_to(tmp_path / "health.lua")
    (outcome,) = outcomes_of(tree)
    assert not outcome.ok and "is outside the tree" in render_line(outcome)


def test_symlink_loop_fifo_and_nul_path_are_failed_cases(tmp_path):
    tree = write(tmp_path, rule_of("toys.example.com", "Thing"))
    data = tree / "toys.example.com" / "Thing" / "testdata"
    (data / "circle.yaml").symlink_to("circle.yaml")
    os.mkfifo(data / "pipe.yaml")
    rows = row("Healthy", "Thing", "testdata/circle.yaml") + row("Healthy", "Thing", "testdata/pipe.yaml")
    rows += '- {inputPath: "a\\0b"}\n'
    (data.parent / "health_test.yaml").write_text(f"tests:\n{rows}")
    circle, pipe, nul = outcomes_of(tree)
    assert "cannot be read" in render_line(circle)
    assert "is not a regular file" in render_line(pipe)
    assert "the path contains a NUL" in render_line(nul)
    assert not (circle.ok or pipe.ok or nul.ok)


def test_script_that_is_a_symlink_loop_is_a_failed_case(tmp_path):
    script = write(tmp_path, rule_of("toys.example.com", "Thing")) / "toys.example.com" / "Thing" / "health.lua"
    script.unlink()
    script.symlink_to("health.lua")
    (outcome,) = outcomes_of(tmp_path)
    assert not outcome.ok and "health.lua: cannot be read" in render_line(outcome)


def test_folder_name_with_non_printable_characters_is_rejected(tmp_path):
    write(tmp_path, rule_of("toys.example.com", "Thing"))
    os.rename(tmp_path / "toys.example.com", os.fsencode(tmp_path) + b"/toys\xff\n")
    with pytest.raises(UserError, match=r"toys.udcff.n/Thing.*has non-printable characters; rename it"):
        collect_cases(tmp_path)


def test_oversized_test_object_and_script_are_failed_cases(tmp_path):
    tree = write(tmp_path, rule_of("toys.example.com", "Thing") | rule_of("toys.example.com", "Script"))
    (tree / "toys.example.com/Thing/testdata/one.yaml").write_text(KIND + "#" * MAX_FILE_BYTES)
    (tree / "toys.example.com/Script/health.lua").write_text("--" + "x" * MAX_SCRIPT_BYTES)
    script, thing = outcomes_of(tree)
    assert f"exceeds the limit of {MAX_FILE_BYTES} bytes" in render_line(thing)
    assert f"exceeds the limit of {MAX_SCRIPT_BYTES} bytes" in render_line(script)


@pytest.mark.tier("all")
def test_tree_over_depth_or_case_limit_raises_limit_error(tmp_path, monkeypatch):
    write(tmp_path / "deep", {"/".join("abcdefghijklmn") + "/health.lua": RULE})
    with pytest.raises(LimitError, match="nested more than 12 deep"):
        collect_cases(tmp_path / "deep")
    rows = "tests:\n" + row("Healthy", "Doll", "testdata/one.yaml") * 20_001
    tree = write(
        tmp_path / "long", rule_of("toys.example.com", "Doll") | {"toys.example.com/Doll/health_test.yaml": rows}
    )
    with pytest.raises(LimitError, match="20001 cases exceed the limit of 20000"):
        collect_cases(tree)


def test_yaml_alias_bomb_is_a_failed_case(tmp_path):
    bomb = KIND + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    tree = write(tmp_path, rule_of("toys.example.com", "Thing") | {"toys.example.com/Thing/testdata/one.yaml": bomb})
    (outcome,) = outcomes_of(tree)
    assert not outcome.ok and "aliases expand to more than" in render_line(outcome)


@pytest.mark.parametrize("kind", ["../../Doll", "/etc", "Doll/../Doll", "..", "Do\\nll"])
def test_kind_that_is_a_path_has_no_script(tmp_path, kind):
    tree = write(tmp_path, rule_of("toys.example.com", "Doll"))
    (tree / "toys.example.com/Doll/testdata/one.yaml").write_text(f'apiVersion: toys.example.com/v1\nkind: "{kind}"\n')
    for part in (tree, tree / "toys.example.com" / "Doll"):
        (outcome,) = outcomes_of(part)
        assert not outcome.ok and "no health script" in render_line(outcome)


def test_wildcard_matching_has_no_exponential_backtracking(tmp_path):
    tree = write(tmp_path, rule_of("toys.example.com", "Doll", folder=f"toys.example.com/{'_a' * 60}_b"))
    data = next(tree.rglob("one.yaml"))
    data.write_text(f"apiVersion: toys.example.com/v1\nkind: {'a' * 100_000}\n")
    (outcome,) = outcomes_of(tree)
    assert not outcome.ok and len(render_line(outcome)) < 1_000


def test_only_underscore_is_a_wildcard_in_folder_names():
    assert matches_kind("_.example.com/_", "a.b.example.com/Doll") and matches_kind("toys/D_ll", "toys/Doll")
    assert (
        not matches_kind("_/_", "Doll")
        and not matches_kind("_", "toys/Doll")
        and not matches_kind("toys/_", "toys/a/Doll")
    )
    assert (
        not matches_kind("toys/D?l_", "toys/Doll")
        and not matches_kind("toys/[D]_", "toys/Doll")
        and matches_kind("a*_", "a*b")
    )
    assert not matches_kind("toys/*_", "toys/Doll")


def test_case_limit_is_at_least_ten_times_argo_cds_tree():
    assert MAX_CASES >= 10 * (1_123 + 104 + 87)
