"""Simulated workloads of `argosy sandbox start --addons simulators`, tested with the real kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import Finished, Sandbox, argosy, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("needs_kubectl")
PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # kubectl reports the reason before the test kills it
ADDONS = "argocd_operator,simulators"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox that also runs the simulated Argo CD operator; the two add-ons must not conflict."""
    with sandbox(tmp_path_factory.mktemp("simulated") / "data", "--port", "0", "--addons", ADDONS) as started:
        yield started


@pytest.fixture
def run(simulated: Sandbox, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Run kubectl in a namespace of this test; return stdout, and fail on a nonzero exit code."""
    namespace = f"t{abs(hash(request.node.name)) % 10**8}"
    kubectl(simulated.kubeconfig, "create", "namespace", namespace)

    def runs(*words: object, stdin: str | None = None) -> str:
        done: Finished = kubectl(simulated.kubeconfig, "-n", namespace, *words, input=stdin)
        assert done.code == 0, done.err
        return done.out

    return runs


def test_rollout_status_returns_when_all_pods_are_ready(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:1", "--replicas", 3)
    assert "successfully rolled out" in run("rollout", "status", "deployment", "web", PATIENT)
    assert run("get", "deployment", "web", "--no-headers").split()[1:4] == ["3/3", "3", "3"]
    assert [line.split()[1:3] for line in run("get", "pods", "--no-headers").splitlines()] == [["1/1", "Running"]] * 3
    assert "sandbox.argosy.dev/Simulated" in run("describe", "pods")


@pytest.mark.tier("all")
def test_deployment_scales_and_its_deletion_removes_pods_and_replicasets(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:1")
    run("scale", "deployment", "web", "--replicas", 4)
    run("wait", "deployment", "web", "--for=jsonpath={.status.availableReplicas}=4", PATIENT)
    run("scale", "deployment", "web", "--replicas", 1)
    run("wait", "deployment", "web", "--for=jsonpath={.status.replicas}=1", PATIENT)
    run("delete", "deployment", "web")
    wait_until(lambda: run("get", "pods,replicasets", "-o", "name") == "")


@pytest.mark.tier("all")
def test_rollout_undo_history_and_restart_work(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:1")
    run("rollout", "status", "deployment", "web", PATIENT)
    run("set", "image", "deployment/web", "example=example:2")
    run("rollout", "status", "deployment", "web", PATIENT)
    assert [line.split()[0] for line in run("rollout", "history", "deployment", "web").splitlines()[2:4]] == ["1", "2"]
    run("rollout", "undo", "deployment", "web")
    run("rollout", "status", "deployment", "web", PATIENT)
    assert run("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}") == "example:1"
    run("rollout", "restart", "deployment", "web")
    assert "successfully rolled out" in run("rollout", "status", "deployment", "web", PATIENT)


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("ImagePull", "ImagePullBackOff"),
        pytest.param("CrashLoop", "CrashLoopBackOff", marks=pytest.mark.tier("all")),
        pytest.param("Unschedulable", "Pending", marks=pytest.mark.tier("all")),
    ],
)
def test_get_pods_shows_injected_fault(run: Callable[..., str], fault: str, shown: str) -> None:
    annotations = json.dumps({"metadata": {"annotations": {"sandbox.argosy.dev/fail": fault}}})
    run("run", "broken", "--image", "example:1", "--overrides", annotations)
    wait_until(lambda: run("get", "pod", "broken", "--no-headers").split()[2] == shown)


@pytest.mark.tier("all")
def test_kubectl_wait_returns_when_job_is_complete(run: Callable[..., str]) -> None:
    run("create", "job", "once", "--image", "example:1")
    run("wait", "job", "once", "--for=condition=complete", PATIENT)
    assert run("get", "job", "once", "--no-headers").split()[1:3] == ["Complete", "1/1"]
    assert run("get", "pods", "-l", "job-name=once", "--no-headers").split()[2] == "Completed"


@pytest.mark.tier("all")
def test_statefulset_creates_ordinal_pods_and_bound_claims(run: Callable[..., str]) -> None:
    run("apply", "-f", "-", stdin=json.dumps(STATEFUL_SET))
    assert "complete" in run("rollout", "status", "statefulset", "db", PATIENT)
    assert run("get", "pods", "-o", "name").split() == ["pod/db-0", "pod/db-1"]
    claims = [line.split()[:2] for line in run("get", "pvc", "--no-headers").splitlines()]
    assert claims == [["data-db-0", "Bound"], ["data-db-1", "Bound"]]


@pytest.mark.tier("all")
def test_logs_of_simulated_pod_say_that_it_is_simulated(run: Callable[..., str]) -> None:
    run("run", "talks", "--image", "example:1")
    run("wait", "pod", "talks", "--for=condition=ready", PATIENT)
    log = run("logs", "talks")
    assert "simulated by argosy" in log and "example:1" in log
    assert len(run("logs", "talks", "--tail", 1).splitlines()) == 1


@pytest.mark.tier("all")
def test_describe_pod_lists_startup_events_in_order(run: Callable[..., str]) -> None:
    run("run", "talks", "--image", "example:1")
    run("wait", "pod", "talks", "--for=condition=ready", PATIENT)
    wait_until(lambda: "Started container talks (simulated by argosy)" in run("describe", "pod", "talks"))
    events = run("describe", "pod", "talks").partition("Events:")[2]
    words = [line.split()[1] for line in events.splitlines()[3:] if line.strip()]
    assert words == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]


@pytest.mark.tier("all")
def test_missing_image_causes_imagepullbackoff_without_fault_annotation(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:does-not-exist")
    wait_until(lambda: run("get", "pods", "--no-headers").split()[2:3] == ["ImagePullBackOff"])
    wait_until(lambda: "Error: ImagePullBackOff" in run("get", "events"))


@pytest.mark.tier("all")
def test_describe_of_unschedulable_pod_counts_nodes_by_reason(run: Callable[..., str]) -> None:
    big = {"spec": {"containers": [{"name": "big", "image": "example:1", "resources": {"requests": {"cpu": "900"}}}]}}
    run("run", "big", "--image", "example:1", "--overrides", json.dumps(big))
    wait_until(lambda: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had" in run("describe", "pod", "big"))


@pytest.mark.tier("all")
def test_daemonset_rolls_out_and_rolls_back(run: Callable[..., str]) -> None:
    daemon = {**STATEFUL_SET, "kind": "DaemonSet", "metadata": {"name": "agent"}}
    daemon["spec"] = {name: STATEFUL_SET["spec"][name] for name in ("selector", "template")}
    run("apply", "-f", "-", stdin=json.dumps(daemon))
    assert "successfully rolled out" in run("rollout", "status", "daemonset", "agent", PATIENT)
    run("set", "image", "daemonset/agent", "db=example:2")
    run("rollout", "status", "daemonset", "agent", PATIENT)
    run("rollout", "undo", "daemonset", "agent")
    run("rollout", "status", "daemonset", "agent", PATIENT)
    assert run("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}") == "example:1"
    assert run("get", "daemonset", "agent", "--no-headers").split()[1:6] == ["1", "1", "1", "1", "1"]


@pytest.mark.tier("all")
def test_job_created_from_cronjob_sets_its_last_successful_time(run: Callable[..., str]) -> None:
    run("create", "cronjob", "nightly", "--image", "example:1", "--schedule", "0 3 * * *")
    run("create", "job", "now", "--from", "cronjob/nightly")
    run("wait", "job", "now", "--for=condition=complete", PATIENT)
    wait_until(lambda: run("get", "cronjob", "nightly", "-o", "jsonpath={.status.lastSuccessfulTime}"))


@pytest.mark.tier("all")
def test_loadbalancer_service_gets_ingress_ip_and_pod_endpoints(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:1", "--replicas", 2)
    run("expose", "deployment", "web", "--port", 80, "--target-port", 8080, "--type", "LoadBalancer")
    run("wait", "service", "web", "--for=jsonpath={.status.loadBalancer.ingress}", PATIENT)
    assert run("get", "service", "web", "--no-headers").split()[3].startswith("203.0.113.")
    wait_until(lambda: run("get", "endpoints", "web", "--no-headers").split()[1].count(":8080") == 2)
    assert len(run("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "name").split()) == 1


@pytest.mark.tier("all")
def test_hpa_scales_deployment_by_metrics_annotation(run: Callable[..., str]) -> None:
    run("create", "deployment", "web", "--image", "example:1")
    run("set", "resources", "deployment", "web", "--requests", "cpu=100m")
    run("autoscale", "deployment", "web", "--min", 1, "--max", 5, "--cpu-percent", 50)
    run("annotate", "hpa", "web", "sandbox.argosy.dev/metrics=cpu=140")
    run("wait", "deployment", "web", "--for=jsonpath={.status.availableReplicas}=3", PATIENT)
    wait_until(lambda: "cpu: 47%/50%" in run("get", "hpa", "web", "--no-headers"))


@pytest.mark.tier("all")
def test_resource_quota_limits_pods_of_deployment(run: Callable[..., str]) -> None:
    run("create", "quota", "small", "--hard", "pods=1")
    run("create", "deployment", "web", "--image", "example:1", "--replicas", 2)
    run("wait", "deployment", "web", "--for=condition=ReplicaFailure", PATIENT)
    assert "exceeded quota: small, requested: pods=1" in run("describe", "replicaset")
    wait_until(lambda: run("get", "quota", "small", "-o", "jsonpath={.status.used.pods}") == "1")


def test_version_lists_running_addons_and_simulated_kinds(simulated: Sandbox) -> None:
    output = argosy("version", home=Path(simulated.environment["HOME"])).out
    assert "Running at https://127.0.0.1" in output and output.rstrip().endswith(": argocd_operator, simulators")
    assert "CronJob" in output and "HorizontalPodAutoscaler" in output


@pytest.mark.tier("all")
def test_namespace_with_simulated_workloads_can_be_deleted(simulated: Sandbox) -> None:
    kube = simulated.kubeconfig
    kubectl(kube, "create", "namespace", "full")
    for words in (("create", "deployment", "web"), ("create", "job", "once"), ("run", "pod")):
        assert kubectl(kube, "-n", "full", *words, "--image", "example:1").code == 0
    assert kubectl(kube, "-n", "full", "apply", "-f", "-", input=json.dumps(STATEFUL_SET)).code == 0
    assert kubectl(kube, "-n", "full", "rollout", "status", "statefulset", "db", PATIENT).code == 0
    done = kubectl(kube, "delete", "namespace", "full", PATIENT)
    assert done.code == 0, done.err


@pytest.mark.tier("all")
def test_sandbox_restart_after_kill_keeps_pods_and_allows_scaling(tmp_path: Path) -> None:
    flags = ("--port", "0", "--addons", "simulators")
    with sandbox(tmp_path / "data", *flags) as started:
        kube = started.kubeconfig
        assert kubectl(kube, "create", "deployment", "web", "--image", "example:1", "--replicas", 2).code == 0
        assert kubectl(kube, "rollout", "status", "deployment", "web", PATIENT).code == 0
        before = kubectl(kube, "get", "pods", "-o", "name").out
        started.kill()
    with sandbox(tmp_path / "data", *flags) as started:
        assert kubectl(started.kubeconfig, "get", "pods", "-o", "name").out == before
        kubectl(started.kubeconfig, "scale", "deployment", "web", "--replicas", 3)
        wait = ("wait", "deployment", "web", "--for=jsonpath={.status.availableReplicas}=3", PATIENT)
        assert kubectl(started.kubeconfig, *wait).code == 0
        assert set(before.split()) < set(kubectl(started.kubeconfig, "get", "pods", "-o", "name").out.split())


@pytest.mark.tier("all")
def test_simulators_leave_argocd_operator_workloads_alone(simulated: Sandbox) -> None:
    kube = simulated.kubeconfig
    gitops = ("-n", "openshift-gitops")
    available = "--for=jsonpath={.status.phase}=Available"
    done = kubectl(kube, *gitops, "wait", "argocd/openshift-gitops", available, PATIENT)
    assert done.code == 0, done.err
    wait = ("wait", "deployment", "openshift-gitops-server", "--for=condition=Available", PATIENT)
    assert kubectl(kube, *gitops, *wait).code == 0
    assert kubectl(kube, *gitops, "get", "replicasets", "-o", "name").out == ""

    def versions() -> Any:
        listed = kubectl(kube, *gitops, "get", "deployments,statefulsets,pods", "-o", "json").out
        return [item["metadata"]["resourceVersion"] for item in json.loads(listed)["items"]]

    wait_until(lambda: versions() == versions())


STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db"},
    "spec": {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "example:1"}]},
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
    },
}
