"""Tests that the status of a Pod in a resource tree is the one kubectl prints."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.live.pod_status import build_pod_info


def state(name: str, restarts: int = 0, **rest: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, **rest}


RUNS = {"ready": True, "state": {"running": {}}}
WAITS = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def ended(reason: str = "", code: int = 0, signal: int = 0) -> dict[str, Any]:
    return {"state": {"terminated": {"reason": reason, "exitCode": code, "signal": signal}}}


@pytest.mark.parametrize(
    ("status", "reason", "containers", "restarts"),
    [
        ({"phase": "Pending"}, "Pending", "0/2", None),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted", "0/2", None),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
         "SchedulingGated", "0/2", None),
        ({"phase": "Running", "containerStatuses": [state("a", **RUNS), state("b", **RUNS)]}, "Running", "2/2", None),
        ({"phase": "Running", "containerStatuses": [state("a", 3, **WAITS), state("b", 1, **RUNS)]},
         "CrashLoopBackOff", "1/2", "4"),
        ({"phase": "Running", "containerStatuses": [state("a", **ended("Completed")), state("b", **RUNS)]},
         "Running", "1/2", None),
        ({"phase": "Failed", "containerStatuses": [state("a", **ended(code=3))]}, "ExitCode:3", "0/2", None),
        ({"phase": "Failed", "containerStatuses": [state("a", **ended(code=137, signal=9))]}, "Signal:9", "0/2", None),
        ({"phase": "Failed", "containerStatuses": [state("a", **ended("OOMKilled", 137))]}, "OOMKilled", "0/2", None),
        ({"phase": "Pending", "initContainerStatuses": [state("i", **ended("Error", 1))]}, "Init:Error", "0/2", None),
        ({"phase": "Pending", "initContainerStatuses": [state("i", 2, **WAITS)]}, "Init:CrashLoopBackOff", "0/2", "2"),
        ({"phase": "Pending", "initContainerStatuses": [state("i", state={"running": {}})]}, "Init:0/1", "0/2", None),
        ({"phase": "Running", "initContainerStatuses": [state("i", **ended("Completed"))],
          "containerStatuses": [state("a", **RUNS), state("b", **RUNS)]}, "Running", "2/2", None),
    ],
)  # fmt: skip
def test_pod_status_reason_matches_kubectl(
    status: dict[str, Any], reason: str, containers: str, restarts: str | None
) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}]}
    if "initContainerStatuses" in status:
        spec["initContainers"] = [{"name": "i"}]
    info = dict(build_pod_info({"metadata": {"name": "p"}, "spec": spec, "status": status}))
    expected = {"Status Reason": reason, "Node": "n1", "Containers": containers}
    assert info == (expected | {"Restart Count": restarts} if restarts else expected)


def test_sidecar_counts_as_a_container() -> None:
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    status = {"phase": "Running", "containerStatuses": [state("a", **RUNS)],
              "initContainerStatuses": [state("s", started=True, **RUNS)]}  # fmt: skip
    assert dict(build_pod_info({"metadata": {}, "spec": spec, "status": status}))["Containers"] == "2/2"


@pytest.mark.parametrize(
    ("status", "reason"),
    [({"phase": "Running"}, "Terminating"), ({"phase": "Succeeded"}, "Succeeded"),
     ({"phase": "Running", "reason": "NodeLost"}, "Unknown")],
)  # fmt: skip
def test_deleted_pod_is_terminating(status: dict[str, Any], reason: str) -> None:
    pod = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "spec": {}, "status": status}
    assert dict(build_pod_info(pod))["Status Reason"] == reason


def test_pod_without_status_has_empty_node_and_no_containers() -> None:
    assert build_pod_info({"metadata": {}}) == (("Node", ""), ("Containers", "0/0"))
