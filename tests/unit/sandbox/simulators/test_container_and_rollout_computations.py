"""Simulator computations without a cluster: container states, rollout steps and annotations."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.conditional_writes import equals_ignoring_empty
from argosy.sandbox.simulators.containers import ContainersState, PodSimulation, simulate_containers
from argosy.sandbox.simulators.deployment_rolling_update_counts import (
    RolloutBounds,
    compute_next_size,
    compute_proportional_sizes,
    compute_scale_downs,
    read_rollout_bounds,
)
from argosy.sandbox.simulators.missing_images import is_valid_name
from argosy.sandbox.simulators.pod_status import build_pod_status
from argosy.sandbox.simulators.simulation_annotations import InjectedFault, SimulationSettings, read_simulation_settings
from argosy.sandbox.simulators.timestamps_and_durations import ExactTimestamps, parse_duration

START = datetime(2030, 1, 1, tzinfo=UTC)


def played(wishes: SimulationSettings, *seconds: float, policy: str = "Always") -> list[ContainersState]:
    """Return the container states at each of these times, simulated at no other times."""
    spec = {"containers": [{"name": "main", "image": "example:1"}], "restartPolicy": policy}
    pod: Manifest = {"metadata": {"name": "web", "namespace": "default", "uid": "a"}, "spec": spec, "status": {}}
    states = []
    for at in seconds:
        actor = PodSimulation(pod, wishes, START + timedelta(seconds=at), ExactTimestamps())
        acting = simulate_containers(actor)
        pod = {**pod, "status": {**pod["status"], **build_pod_status(actor, acting, "192.0.2.1")}}
        states.append(acting)
    return states


def test_crash_loop_back_off_doubles_up_to_five_minutes() -> None:
    at = [0.0]
    for _ in range(7):
        wait = played(SimulationSettings(fault=InjectedFault.CRASH_LOOP), *at)[-1].seconds_until_change
        assert wait is not None
        at.append(at[-1] + wait)
    assert [later - earlier for earlier, later in itertools.pairwise(at)] == [10, 20, 40, 80, 160, 300, 300]
    assert played(SimulationSettings(fault=InjectedFault.CRASH_LOOP), *at)[-1].restart_count == 8


def test_end_of_a_fault_ends_the_back_off_immediately() -> None:
    first, second = played(SimulationSettings(fault=InjectedFault.EXIT, fail_times=2), 0, 1)
    assert first.state["waiting"]["reason"] == "CrashLoopBackOff" and first.restart_count == 1
    assert "running" in second.state and second.is_ready


def test_ready_after_counts_from_the_container_start() -> None:
    before, after = played(SimulationSettings(ready_after=5), 0, 5)
    assert (before.is_ready, before.seconds_until_change, after.is_ready, after.seconds_until_change) == (
        False,
        5.0,
        True,
        None,
    )


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Running"), ("Always", "Running")])
def test_restart_policy_decides_the_phase_after_a_failure(policy: str, phase: str) -> None:
    assert played(SimulationSettings(fault=InjectedFault.EXIT), 0, policy=policy)[0].phase == phase


def test_container_with_run_for_succeeds_when_it_ends() -> None:
    running, ended = played(SimulationSettings(run_for=3), 0, 3, policy="Never")
    assert (running.phase, running.seconds_until_change, ended.phase) == ("Running", 3.0, "Succeeded")


def test_unpullable_image_reports_err_image_pull_then_back_off() -> None:
    first, second, third = played(SimulationSettings(fault=InjectedFault.IMAGE_PULL), 0, 1, 900)
    reasons = [state.state["waiting"]["reason"] for state in (first, second, third)]
    assert reasons == ["ErrImagePull", "ImagePullBackOff", "ImagePullBackOff"] and third.seconds_until_change is None


def replica_set(size: int, available: int) -> Manifest:
    return {"spec": {"replicas": size}, "status": {"availableReplicas": available, "replicas": size}}


@pytest.mark.parametrize(
    ("bounds", "new", "old", "grows", "shrinks"),
    [
        (RolloutBounds(4, 1, 1), (0, 0), [(4, 4)], 1, [3]),
        (RolloutBounds(4, 1, 1), (1, 0), [(4, 4)], 1, [3]),
        (RolloutBounds(4, 1, 1), (2, 0), [(3, 3)], 2, []),
        (RolloutBounds(4, 1, 1), (2, 2), [(3, 3)], 2, [1]),
        (RolloutBounds(4, 1, 0), (1, 1), [(4, 4)], 1, [3]),
        (RolloutBounds(4, 0, 4), (4, 0), [(4, 4)], 4, [0]),
        (RolloutBounds(3, 1, 0), (0, 0), [(3, 0)], 1, []),
        (RolloutBounds(3, 1, 0), (1, 1), [(3, 0)], 1, [2]),
        (RolloutBounds(2, 0, 1), (5, 5), [], 2, []),
        (RolloutBounds(1, 1, 0), (1, 1), [(1, 1), (1, 0)], 1, [0, 0]),
    ],
)
def test_rolling_update_computes_the_next_replica_counts(
    bounds: RolloutBounds, new: tuple[int, int], old: list[tuple[int, int]], grows: int, shrinks: list[int]
) -> None:
    newest, older = replica_set(*new), [replica_set(*numbers) for numbers in old]
    assert compute_next_size(bounds, newest, older) == grows
    assert [size for _, size in compute_scale_downs(bounds, newest, older)] == shrinks


@pytest.mark.parametrize(
    ("bounds", "before", "sizes", "expected"),
    [
        (RolloutBounds(8, 2, 2), 5, [3, 2], [6, 4]),  # the older replica set, then the newer
        (RolloutBounds(15, 3, 2), 13, [8, 5], [11, 7]),
        (RolloutBounds(5, 3, 2), 13, [8, 5], [5, 3]),
        (RolloutBounds(0, 0, 0), 5, [3, 2], [0, 0]),
        (RolloutBounds(4, 1, 1), 5, [3, 2], [3, 2]),
    ],
)
def test_scaling_during_a_rollout_is_proportional(
    bounds: RolloutBounds, before: int, sizes: list[int], expected: list[int]
) -> None:
    marks = {"deployment.kubernetes.io/max-replicas": str(before), "deployment.kubernetes.io/desired-replicas": "4"}
    active = [{"metadata": {"name": str(size), "annotations": marks}, "spec": {"replicas": size}} for size in sizes]
    sizes_by_name = {
        manifest["metadata"]["name"]: size for manifest, size in compute_proportional_sizes(bounds, active)
    }
    assert [sizes_by_name[str(size)] for size in sizes] == expected


@pytest.mark.parametrize(
    ("rolling", "replicas", "expected"),
    [
        ({}, 4, RolloutBounds(4, 1, 1)),
        ({"maxSurge": "25%", "maxUnavailable": "25%"}, 1, RolloutBounds(1, 1, 0)),
        ({"maxSurge": 0, "maxUnavailable": "10%"}, 3, RolloutBounds(3, 0, 1)),
        ({"maxSurge": "50%", "maxUnavailable": 5}, 3, RolloutBounds(3, 2, 3)),
    ],
)
def test_rollout_percentages_round_as_in_kubernetes(rolling: Any, replicas: int, expected: RolloutBounds) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert read_rollout_bounds({"spec": {"replicas": replicas, "strategy": strategy}}) == expected


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2.0), ("1m30s", 90.0), ("250ms", 0.25), ("7", 7.0)])
def test_parse_duration_accepts_units_and_plain_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text, "x") == seconds


@pytest.mark.parametrize("text", ["", "soon", "2 s", "-1s", "1d", "s"])
def test_invalid_duration_error_gives_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"sandbox/x: invalid duration .*; write for example 2s, 1m30s or 250ms"):
        parse_duration(text, "sandbox/x")


def test_nearest_annotation_wins() -> None:
    near = {"sandbox.argosy.dev/fail": "Exit"}
    far = {"sandbox.argosy.dev/fail": "Slow", "sandbox.argosy.dev/run-for": "9s"}
    assert read_simulation_settings([near, far]) == SimulationSettings(fault=InjectedFault.EXIT, run_for=9.0)


def test_equals_ignoring_empty_treats_absent_as_empty() -> None:
    assert equals_ignoring_empty({"a": 1, "b": None, "c": {}, "d": [{"e": False}]}, {"a": 1, "d": [{}]})
    assert (
        not equals_ignoring_empty({"a": 1}, {"a": 2})
        and not equals_ignoring_empty([1], [1, 2])
        and not equals_ignoring_empty({"a": True}, {})
    )


def test_slow_fault_takes_thirty_seconds_by_default() -> None:
    slow = {"sandbox.argosy.dev/fail": "Slow"}
    assert read_simulation_settings([slow]) == SimulationSettings(
        fault=InjectedFault.SLOW, ready_after=30.0, run_for=30.0
    )
    assert read_simulation_settings([{**slow, "sandbox.argosy.dev/ready-after": "1s"}]).ready_after == 1.0


@pytest.mark.parametrize(
    ("image", "is_valid"),
    [
        ("nginx", True),
        ("docker.io/library/nginx:1.27", True),
        ("registry.example.com:5000/team/my_app--x:v1.0-rc.1", True),
        ("localhost/App/web", False),
        ("LOCALHOST/app", True),
        ("[::1]:5000/app", True),
        (f"nginx@sha256:{'0' * 64}", True),
        (f"nginx:1@sha256:{'0' * 64}", True),
        ("nginx@sha256:12", False),
        ("alpine:ops!", False),
        ("alpine:", False),
        ("Nginx:1", False),
        ("a b", False),
        ("https://example.com/a", False),
        ("nginx\n", False),
    ],
)
def test_image_names_follow_the_grammar_of_the_kubelet(image: str, is_valid: bool) -> None:
    assert is_valid_name(image) is is_valid
