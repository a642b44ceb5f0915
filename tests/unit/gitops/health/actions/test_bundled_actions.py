"""Tests that bundled actions do exactly what their test files say; the suite runner itself is more lenient."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.gitops.health import bundled_rules
from argosy.gitops.health.actions import build_patch, load_bundled_actions, read_actions, read_impacts
from argosy.gitops.health.actions.scripts import ActionScripts
from argosy.gitops.health.lua import LuaFault, run_script
from argosy.kube.objects import key_of, read_yaml
from argosy.kube.patch import merge_patch

ZERO = "0001-01-01T00:00:00Z"
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FILES = sorted(bundled_rules.RULES_FOLDER.glob("**/actions/action_test.yaml"))


def name_of(file: Path) -> str:
    return file.parents[1].relative_to(bundled_rules.RULES_FOLDER).as_posix()


def cases(part):
    for file in FILES:
        for case in read_yaml(file.read_text()).get(part) or ():
            yield pytest.param(file.parent, case, id=f"{name_of(file)}-{case.get('action', '')}-{case['inputPath']}")


def scripts_for(manifest) -> ActionScripts:
    return load_bundled_actions()[key_of(manifest).group_kind]


def settled(got, expected):
    """Return the result, with current times and the number of a new Job replaced by the values in the test file."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return {name: settled(part, expected.get(name)) for name, part in got.items()}
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return [settled(one, other) for one, other in zip(got, expected)]
    if expected == ZERO and isinstance(got, str) and TIME.fullmatch(got):
        return ZERO
    if isinstance(expected, str) and expected.endswith("-0000000000") and isinstance(got, str):
        return re.sub(r"-\d{10}$", "-0000000000", got)
    return got


def expectations(file: Path):
    document = read_yaml(file.read_text())
    if isinstance(document, dict):
        return [("patch", document)]
    return [(operation["k8sOperation"], operation["unstructuredObj"]) for operation in document]


@pytest.mark.parametrize(("folder", "case"), [*cases("discoveryTests")])
def test_discovery_returns_exactly_the_expected_actions(folder, case):
    manifest = read_yaml((folder / case["inputPath"]).read_text())
    (script,) = scripts_for(manifest).discoveries
    assert read_actions(run_script(script.text, manifest)) == read_actions(
        {action["name"]: action for action in case["result"]}
    )


@pytest.mark.parametrize(("folder", "case"), [*cases("actionTests")])
def test_action_returns_exactly_the_expected_result(folder, case):
    source = read_yaml((folder / case["inputPath"]).read_text())
    script = scripts_for(source).definitions[case["action"]].text
    if message := case.get("expectedErrorMessage"):
        with pytest.raises(LuaFault) as caught:
            run_script(script, source, params=case.get("parameters"))
        assert str(caught.value) == message
        return
    impacts = read_impacts(run_script(script, source, params=case.get("parameters")), source)
    expected = expectations(folder / case["expectedOutputPath"])
    got = [(impact.operation, impact.manifest) for impact in impacts]
    assert [(operation, settled(one, other)) for (operation, one), (_, other) in zip(got, expected)] == expected
    for impact in impacts:
        if impact.operation == "patch":
            assert merge_patch.apply(source, build_patch(source, impact)) == impact.manifest


def test_every_kind_with_actions_has_tests_for_each_action():
    assert [name_of(file) for file in FILES] == sorted(bundled_rules.render_kind(*of) for of in load_bundled_actions())
    for file in FILES:
        tests = read_yaml(file.read_text())
        folders = {script.parent.name for script in file.parent.glob("*/action.lua")}
        assert {case["action"] for case in tests["actionTests"]} == folders, file
        states = {
            (action["name"], action.get("disabled", False))
            for case in tests["discoveryTests"]
            for action in case["result"]
        }
        assert {name for name, _ in states} == folders, file


def test_every_testdata_file_is_used():
    for file in FILES:
        tests = read_yaml(file.read_text())
        used = {case[field] for part in tests.values() for case in part for field in case if field.endswith("Path")}
        assert used == {f"testdata/{data.name}" for data in (file.parent / "testdata").iterdir()}, file
