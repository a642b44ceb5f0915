"""`kubectl get` prints built-in kinds as on a Kubernetes 1.32 server."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.schema import columns
from support.printed_rows import Manifest, ago, build_manifest, row


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"), (-1.5, "0s"), (0, "0s"), (22, "22s"), (119, "119s"), (120, "2m"), (330, "5m30s"),
        (600, "10m"), (10799, "179m"), (10800, "3h"), (11700, "3h15m"), (28800, "8h"), (172799, "47h"),
        (172800, "2d"), (273600, "3d4h"), (691200, "8d"), (63072000, "2y"), (64000000, "2y10d"), (300000000, "9y"),
    ],
)  # fmt: skip
def test_human_duration_formats_seconds_like_kubectl(seconds: float, shown: str) -> None:
    assert columns.human_duration(seconds) == shown


def pod(status: Manifest, *, deleting: bool = False, **spec: Any) -> Manifest:
    metadata = {"deletionTimestamp": ago(seconds=1)} if deleting else {}
    containers = [{"name": "a"}, {"name": "b"}]
    return build_manifest("v1", "Pod", metadata, spec={"containers": containers, **spec}, status=status)


RUNNING = {"ready": True, "restartCount": 0, "state": {"running": {}}}
CRASHED = {
    "ready": False,
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"finishedAt": ago(minutes=5, seconds=30)}},
}
DONE = {"ready": False, "restartCount": 0, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
READY = [{"type": "Ready", "status": "True"}]
INIT = [{"name": "i"}, {"name": "j"}]
SIDECAR = [{"name": "i", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("manifest", "ready", "word", "restarts"),
    [
        (pod({"phase": "Pending"}), "0/2", "Pending", "0"),
        (pod({"phase": "Running", "containerStatuses": [RUNNING, RUNNING]}), "2/2", "Running", "0"),
        (
            pod({"phase": "Running", "containerStatuses": [RUNNING, CRASHED]}),
            "1/2",
            "CrashLoopBackOff",
            "3 (5m30s ago)",
        ),
        (pod({"phase": "Succeeded", "containerStatuses": [DONE, DONE]}), "0/2", "Completed", "0"),
        (pod({"phase": "Running", "containerStatuses": [RUNNING, DONE]}), "1/2", "NotReady", "0"),
        (pod({"phase": "Running", "containerStatuses": [RUNNING, DONE], "conditions": READY}), "1/2", "Running", "0"),
        (pod({"phase": "Failed", "reason": "Evicted"}), "0/2", "Evicted", "0"),
        (pod({"phase": "Running", "containerStatuses": [RUNNING, RUNNING]}, deleting=True), "2/2", "Terminating", "0"),
        (pod({"phase": "Running", "reason": "NodeLost"}, deleting=True), "0/2", "Unknown", "0"),
        (pod({"phase": "Succeeded", "containerStatuses": [DONE]}, deleting=True), "0/2", "Completed", "0"),
        (
            pod({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 2}}}]}),
            "0/2",
            "ExitCode:2",
            "0",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [DONE, {"state": {"running": {}}}]}, initContainers=INIT),
            "0/2",
            "Init:1/2",
            "0",
        ),
        (
            pod(
                {"phase": "Pending", "initContainerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
                initContainers=INIT,
            ),
            "0/2",
            "Init:ImagePullBackOff",
            "0",
        ),
        (
            pod(
                {
                    "phase": "Pending",
                    "initContainerStatuses": [{"state": {"terminated": {"exitCode": 1}}, "restartCount": 1}],
                },
                initContainers=INIT,
            ),
            "0/2",
            "Init:ExitCode:1",
            "1",
        ),
        (
            pod(
                {
                    "phase": "Running",
                    "containerStatuses": [RUNNING, RUNNING],
                    "initContainerStatuses": [{**RUNNING, "name": "i", "started": True}],
                },
                initContainers=SIDECAR,
            ),
            "3/3",
            "Running",
            "0",
        ),
        (
            pod(
                {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
                }
            ),
            "0/2",
            "SchedulingGated",
            "0",
        ),
    ],
)
def test_pod_row_shows_ready_status_and_restarts(manifest: Manifest, ready: str, word: str, restarts: str) -> None:
    cells = row(manifest)
    assert (cells["Ready"], cells["Status"], cells["Restarts"], cells["Age"]) == (ready, word, restarts, "22s")
    assert (cells["IP"], cells["Node"], cells["Nominated Node"], cells["Readiness Gates"]) == ("<none>",) * 4


def test_finished_pod_has_a_completed_row_condition() -> None:
    (mark,) = columns.build_row_conditions(pod({"phase": "Succeeded"}))
    assert (mark["type"], mark["reason"]) == ("Completed", "Succeeded")
    assert columns.build_row_conditions(pod({"phase": "Running"})) == []
