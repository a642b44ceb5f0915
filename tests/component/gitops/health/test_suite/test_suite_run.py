"""Execution of health and action test cases: batches, progress, library access and scripts that never end."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from argosy.gitops.health.test_suite import build_script_suite, collect_cases, render_line, run_suite
from argosy.gitops.health.test_suite.run import BATCH_SIZE, MAX_LIMIT_FAILURES
from argosy.isolation import LimitExceeded
from support.health_suites import POOL, TREES, outcomes_of, row, rule_of, write

HANGS = "while obj.spec == nil do end return {status = 'Healthy', message = 'ended'}"
THING = {"apiVersion": "toys.example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}


class Counting:
    """A fake pool that records payloads and returns Healthy with the kind as the message."""

    def __init__(self) -> None:
        self.asked: list[list[dict]] = []
        self.under_way = self.most = 0

    async def run_batch(self, function, payloads):
        assert function == "argosy.gitops.health.lua.worker:run_user_script"
        self.asked.append(payloads)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        statuses = [{"status": "Healthy", "message": payload["manifest"]["kind"]} for payload in payloads]
        return [{"type": "table", "value": value} for value in statuses]


close_pool = POOL.fixture()


def many(folder, cases):
    rows = "tests:\n" + row("Healthy", "Doll", "testdata/one.yaml") * cases
    return write(folder, rule_of("toys.example.com", "Doll") | {"toys.example.com/Doll/health_test.yaml": rows})


def test_progress_is_reported_after_every_batch(tmp_path):
    pool, progress_calls = Counting(), []
    suite = collect_cases(many(tmp_path, 3 * BATCH_SIZE + 1))
    outcomes = asyncio.run(run_suite(suite, pool, progress=lambda done, total: progress_calls.append((done, total))))
    assert len(outcomes) == 3 * BATCH_SIZE + 1 and all(outcome.ok for outcome in outcomes)
    assert progress_calls[0] == (MAX_LIMIT_FAILURES, 97) and progress_calls[-1] == (97, 97)
    assert all(before < after for before, after in pairwise(progress_calls))


def test_batches_run_concurrently_only_with_a_gather_function(tmp_path):
    suite = collect_cases(many(tmp_path, 4 * BATCH_SIZE))
    alone, together = Counting(), Counting()
    asyncio.run(run_suite(suite, alone))
    asyncio.run(run_suite(suite, together, gather=asyncio.gather, max_concurrent_batches=3))
    assert (alone.most, together.most) == (1, 3)
    assert len(alone.asked) == len(together.asked) == 5  # a small first batch, then four more


def test_health_and_discovery_scripts_get_open_libraries_and_actions_do_not():
    pool = Counting()
    asyncio.run(run_suite(collect_cases(TREES / "good" / "shop.example.com" / "Order"), pool))
    all_payloads = [payload for payloads in pool.asked for payload in payloads]
    rules = [payload for payload in all_payloads if "hs.status" in payload["script"] or "actions" in payload["script"]]
    assert len(rules) == 11 and all(payload["open"] for payload in rules)
    assert not any(payload["open"] for payload in all_payloads if payload not in rules)
    assert [payload["params"] for payload in all_payloads if payload["params"]] == [
        {"carrier": "post", "days": "3", "insured": "true"},
        {"carrier": "pigeon"},
    ]


@pytest.mark.tier("all")
def test_endless_script_fails_only_its_own_cases(tmp_path):
    write(tmp_path, rule_of("toys.example.com", "Doll") | rule_of("toys.example.com", "Hang"))
    (tmp_path / "toys.example.com/Hang/health.lua").write_text(HANGS)
    doll, hang = outcomes_of(tmp_path)
    assert doll.ok and not hang.ok
    assert "context deadline exceeded" in render_line(hang)


def test_script_is_not_run_again_after_max_limit_failures(tmp_path):
    class Hanging(Counting):
        async def run_batch(self, function, payloads):
            self.asked.append(payloads)
            return [LimitExceeded("wall", "it took too long") for _ in payloads]

    pool = Hanging()
    outcomes = asyncio.run(run_suite(collect_cases(many(tmp_path, 3 * BATCH_SIZE)), pool))
    assert [len(payloads) for payloads in pool.asked] == [MAX_LIMIT_FAILURES]
    assert len(outcomes) == 3 * BATCH_SIZE and not any(outcome.ok for outcome in outcomes)
    assert f"not run: the script exceeded its limits in {MAX_LIMIT_FAILURES} cases before" in render_line(outcomes[-1])


def test_single_script_reports_its_result_for_each_object(tmp_path):
    write(
        tmp_path,
        {"check.lua": "if obj.kind == 'Bad' then error('no', 0) end return {status = 'Suspended', message = obj.kind}"},
    )
    named = [("one.yaml", THING), ("bad.yaml", THING | {"kind": "Bad"}), ("empty", {})]
    good, bad, empty = outcomes_of(build_script_suite(tmp_path / "check.lua", named))
    assert good.ok and good.got == {"status": "Suspended", "message": "Thing"} and good.expected is None
    assert render_line(good) == 'ok health toys.example.com/Thing one.yaml: Suspended "Thing"'
    assert not bad.ok and bad.got == {"error": "no"}
    assert empty.ok and empty.got == {"status": "Suspended", "message": ""}


def test_action_with_too_deeply_nested_result_is_a_failed_case():
    class Deep(Counting):
        async def run_batch(self, function, payloads):
            value: list = []
            for _ in range(5000):
                value = [value]
            return [{"type": "table", "value": {**payload["manifest"], "spec": value}} for payload in payloads]

    outcomes = asyncio.run(run_suite(collect_cases(TREES / "good" / "batch"), Deep()))
    assert [outcome.ok for outcome in outcomes] == [False]
