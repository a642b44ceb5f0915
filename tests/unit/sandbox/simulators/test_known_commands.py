"""Commands whose outcome is certain without running them, and the Pods that have them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.known_commands import CommandOutcome, predict_outcome
from support.simulators import POD, health, leaping, pod, simulated


def pod_of(*containers: dict[str, Any]) -> Manifest:
    return {"spec": {"containers": [{"name": f"c{number}", **entry} for number, entry in enumerate(containers)]}}


@pytest.mark.parametrize(
    ("container", "exit_code", "run_seconds"),
    [
        ({"command": ["true"]}, 0, 0),
        ({"command": ["/bin/false"]}, 1, 0),
        ({"command": ["false", "3"]}, 1, 0),  # it ignores arguments
        ({"command": ["sleep", "3"]}, 0, 3),
        ({"command": ["sleep"], "args": ["1.5m"]}, 0, 90),
        ({"command": ["/usr/bin/sleep", "infinity"]}, 0, math.inf),
        ({"command": ["sh", "-c", "exit 7"]}, 7, 0),
        ({"command": ["/bin/bash", "-c"], "args": ["  /bin/sleep 10h\n"]}, 0, 36000),
        ({"command": ["/bin/sh", "-c", "--"], "args": ["false"]}, 1, 0),
        ({"command": ["sh", "-c", "exit"]}, 0, 0),
    ],
)
def test_outcome_of_a_known_command_is_predicted(container: dict[str, Any], exit_code: int, run_seconds: float) -> None:
    assert predict_outcome(pod_of(container)) == CommandOutcome(exit_code, run_seconds)


@pytest.mark.parametrize(
    "container",
    [
        {},
        {"args": ["false"]},  # arguments of an unknown entrypoint
        {"command": ["exit", "1"]},  # no program has this name
        {"command": ["fail"]},
        {"command": ["./false"]},
        {"command": ["sleep"]},
        {"command": ["sleep", "1", "2"]},
        {"command": ["sleep", "$(SECONDS)"]},
        {"command": ["sh", "-c", "exit 256"]},
        {"command": ["sh", "-c", "exit 1; true"]},
        {"command": ["sh", "-c", "false || true"]},
        {"command": ["sh", "-c", "sleep 1 &"]},
        {"command": ["sh", "-c", "sleep $N"]},
        {"command": ["sh", "-c", "exit\n1"]},
        {"command": ["sh", "-ec", "false"]},
        {"command": ["sh", "-c"]},
        {"command": ["sh", "script.sh", "false"]},
    ],
)
def test_outcome_of_any_other_command_is_unknown(container: dict[str, Any]) -> None:
    assert predict_outcome(pod_of(container)) is None


def test_outcome_of_a_pod_with_two_containers_is_unknown() -> None:
    assert predict_outcome(pod_of({"command": ["false"]}, {"command": ["false"]})) is None


def pod_with_command(*command: str, policy: str, annotations: dict[str, str] | None = None) -> Manifest:
    container = {"name": "main", "image": "example:1", "command": list(command)}
    return pod(annotations, restartPolicy=policy, containers=[container])


pytestmark = pytest.mark.anyio


async def test_pod_whose_command_is_false_fails_as_on_a_real_node(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod_with_command("false", policy="Never"))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Failed")
    ended = live_pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"], "message" in ended) == ("Error", 1, False)
    assert health(live_pod) == ("Degraded", 'container "main" failed with exit code 1')


async def test_exit_code_137_of_a_command_is_an_error_and_no_lack_of_memory(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod_with_command("sh", "-c", "exit 137", policy="Never"))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Failed")
    assert live_pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "Error"


async def test_pod_that_sleeps_runs_that_long_and_succeeds(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod_with_command("sleep", "300", policy="Never"))
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        clock.leap(299)
        await world.settled()
        assert (await world.get(POD))["status"]["phase"] == "Running"
        live_pod = await world.becomes(
            POD, lambda manifest: manifest["status"]["phase"] == "Succeeded" or clock.leap(1)
        )
    assert live_pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


async def test_container_that_always_restarts_crash_loops_even_if_it_succeeds(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod_with_command("true", policy="Always"))
        live_pod = await world.becomes(
            POD, lambda manifest: "waiting" in manifest["status"]["containerStatuses"][0]["state"]
        )
    status = live_pod["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["reason"] == "Completed"


async def test_container_that_ran_longer_than_ten_minutes_restarts_without_a_wait(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod_with_command("sleep", "999", policy="Always"))
        for restarts in (1, 2, 3):
            clock.leap(999)
            live_pod = await world.becomes(
                POD,
                lambda manifest, count=restarts: (
                    manifest["status"]["containerStatuses"][0]["restartCount"] == count or clock.leap(1)
                ),
            )
            assert "running" in live_pod["status"]["containerStatuses"][0]["state"]


async def test_annotated_fault_takes_precedence_over_the_command(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(
            pod_with_command("true", policy="Never", annotations={"sandbox.argosy.dev/fail": "OOMKilled"})
        )
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Failed")
    assert live_pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"
