"""Whole rule trees: `good` uses every feature of Argo CD's tests, `bad` breaks each of them, plus the bundled rules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from argosy.gitops.health.bundled_rules import PROFILES_FOLDER, RULES_FOLDER
from argosy.gitops.health.test_suite import build_report, render_line
from support.health_suites import POOL, TREES, outcomes_of

ORDER = "shop.example.com/Order"
# suite, folder, name → text that the report line must contain
BROKEN = {
    ("health", "_", "testdata/card.yaml"): "no health script in this tree for gifts.example.org/Card",
    ("health", "shop.example.com/Broken", "health_test.yaml"): "health_test.yaml:2: did not find expected node content",
    ("health", "shop.example.com/Mistyped", "health_test.yaml"): "tests[1].healthStatus.message is a list but must be",
    ("action", "shop.example.com/Mistyped", "action_test.yaml"): "discoveryTests[1].result[1].disabled is a string",
    ("health", "shop.example.com/Untested", "health_test.yaml"): "cannot be read (No such file or directory)",
    ("health", "shop.example.com/Table", "testdata/table.yaml"): "conditions: must be a list of rows",
    ("health", "shop.example.com/Syntax", "testdata/syntax.yaml"): "error: <string>:",
    ("health", ORDER, "testdata/two-documents.yaml"): 'expected Healthy "second", got Healthy "first"',
    ("health", ORDER, "testdata/repeated-keys.yaml"): 'expected Healthy "first", got Healthy "second"',
    ("health", ORDER, "testdata/time.yaml"): 'got Healthy "2024-05-01T10:00:00Z"',
    ("health", ORDER, "testdata/wrong-status.yaml"): 'expected Degraded "first", got Healthy "first"',
    ("health", ORDER, "testdata/wrong-message.yaml"): 'expected Healthy "first ", got Healthy "first"',
    ("health", ORDER, "testdata/fault.yaml"): "error: <string>:2: attempt to index",
    ("health", ORDER, "testdata/word.yaml"): "error: expect table output from Lua script, not string",
    ("health", ORDER, "testdata/not-there.yaml"): "not-there.yaml: cannot be read (No such file or directory)",
    ("health", ORDER, "../../../good/Parcel/testdata/parcel.yaml"): "is outside the tree; copy the file into it",
    ("health", ORDER, "testdata/broken.yaml"): "broken.yaml:3: did not find expected",
    ("health", ORDER, "testdata/list.yaml"): "contains no object",
    ("health", ORDER, "testdata"): "cannot be read (Is a directory)",
    ("health", ORDER, "tests[13]"): "the row has no file path",
    ("health", ORDER, "testdata/of-no-folder.yaml"): "no health script in this tree for shop.example.com/Voucher",
    ("health", ORDER, "testdata/without-kind.yaml"): "an object without a kind has no health script",
    ("health", ORDER, "testdata/spelling.yaml"): 'got Healthy "spelling"',
    ("discovery", ORDER, "testdata/order.yaml"): 'expected [{"name":"send",',
    ("discovery", ORDER, "testdata/order.yaml #2"): '"disabled":true',
    ("discovery", ORDER, "testdata/order.yaml #3"): '"iconClass":"lorry"',
    ("discovery", ORDER, "testdata/order.yaml #4"): '"displayName":"Send"',
    ("discovery", ORDER, "testdata/order.yaml #5"): '"params":["speed"]',
    ("discovery", ORDER, "testdata/order.yaml #6"): 'expected [], got [{"name":"ship"',
    ("discovery", ORDER, "testdata/loud.yaml"): "error: expect table output from Lua script, not string",
    ("discovery", ORDER, "testdata/of-no-folder.yaml"): "no shop.example.com/Voucher/actions/discovery.lua",
    ("action", ORDER, "ship/testdata/order.yaml"): '"spec.items":["novel","atlas"]',
    (
        "action",
        ORDER,
        "ship/testdata/order.yaml #2",
    ): 'got {"shop.example.com/v1 Order books":{"spec.carrier":"pigeon"}}',
    ("action", ORDER, "ship/testdata/order.yaml #3"): "got error: <string>:2: carrier is needed",
    (
        "action",
        ORDER,
        "ship/testdata/order.yaml #4",
    ): "expected error: carrier is needed, got error: <string>:2: carrier",
    ("action", ORDER, "ship/testdata/order.yaml #5"): "expected error: carrier is needed, got [{",
    ("action", ORDER, "ship/testdata/order.yaml #6"): "the row has no file path",
    ("action", ORDER, "ship/testdata/order.yaml #7"): "item 1 has no object at unstructuredObj",
    ("action", ORDER, "shout/testdata/order.yaml"): "error: <string>:1: attempt to index",
    ("action", ORDER, "sell/testdata/order.yaml"): "no shop.example.com/Order/actions/sell/action.lua",
    ("action", ORDER, "../ship/testdata/order.yaml"): "no shop.example.com/Order/actions/../ship/action.lua",
    ("action", ORDER, "invoice/testdata/order.yaml"): '"v1 ConfigMap books-bill":{"(the object)":"(nothing)"}',
    ("action", ORDER, "invoice/testdata/order.yaml #2"): '"v1 ConfigMap books-receipt":{"(the object)":"(nothing)"}',
    ("action", ORDER, "invoice/testdata/order.yaml #3"): '{"data.paid":true}',
    ("action", ORDER, "steal/testdata/order.yaml"): "can patch only its own object",
    ("action", ORDER, "burn/testdata/order.yaml"): "unsupported operation",
    (
        "action",
        ORDER,
        "empty/testdata/order.yaml",
    ): '{"spec.address":[]}}, got {"shop.example.com/v1 Order books":{"spec.addr',
    ("action", "apps/Deployment", "scale/testdata/server.yaml"): '{"spec.replicas":2}',
}
close_pool = POOL.fixture()


def place(outcome):
    case = outcome.case
    return case.suite, f"{case.group}/{case.kind}".lstrip("/"), case.name


def test_all_cases_of_the_good_tree_run_and_pass():
    outcomes = outcomes_of(TREES / "good")
    assert [render_line(outcome) for outcome in outcomes if not outcome.ok] == []
    assert Counter(outcome.case.suite for outcome in outcomes) == {"health": 20, "discovery": 2, "action": 9}
    assert build_report(outcomes) | {"cases": []} == {"total": 31, "passed": 31, "failed": 0, "skipped": 0, "cases": []}


def test_every_case_of_the_bad_tree_fails_with_its_reason():
    lines_by_case = {place(outcome): render_line(outcome) for outcome in outcomes_of(TREES / "bad")}
    assert lines_by_case.keys() == BROKEN.keys()
    assert [line for line in lines_by_case.values() if not line.startswith("FAIL ")] == []
    assert {where: (line, BROKEN[where]) for where, line in lines_by_case.items() if BROKEN[where] not in line} == {}


@pytest.mark.parametrize("tree", [RULES_FOLDER, *sorted(PROFILES_FOLDER.iterdir())], ids=lambda tree: tree.name)
def test_all_cases_of_the_bundled_rules_pass_confined(tree: Path):
    outcomes = outcomes_of(tree)
    assert [render_line(outcome) for outcome in outcomes if not outcome.ok] == []
    tested = {(outcome.case.group, outcome.case.kind) for outcome in outcomes if outcome.case.suite == "health"}
    rules = {file.parent.relative_to(tree) for file in tree.rglob("health.*") if file.suffix in (".lua", ".yaml")}
    rules = {folder for folder in rules if "testdata" not in folder.parts}
    assert len(tested) == len(rules)
