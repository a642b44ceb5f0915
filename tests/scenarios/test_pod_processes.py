"""Pods with `sandbox.argosy.dev/run: process`, whose commands run as local processes, tested with the real kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.isolation import landlock
from support.clusters import Finished, Sandbox, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until

pytestmark = [
    pytest.mark.usefixtures("needs_kubectl"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes: volumes are mounted on Linux only"),
]
PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # shorter than the hang limit, so that kubectl reports the reason
ASKED = {"sandbox.argosy.dev/run": "process"}
Run = Callable[..., str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("processes") / "data"
    with sandbox(folder, "--port", "0", "--rbac", "--addons", "simulators") as started:
        yield started


@pytest.fixture
def namespace(cluster: Sandbox, request: pytest.FixtureRequest) -> str:
    name = f"p{abs(hash(request.node.name)) % 10**8}"
    kubectl(cluster.kubeconfig, "create", "namespace", name)
    wait = ("wait", "serviceaccount/default", "--for=create", PATIENT)
    assert kubectl(cluster.kubeconfig, "-n", name, *wait).code == 0
    return name


@pytest.fixture
def run(cluster: Sandbox, namespace: str) -> Run:
    def runs(*words: object, stdin: Any = None, code: int = 0) -> str:
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        done: Finished = kubectl(cluster.kubeconfig, "-n", namespace, *words, input=text)
        assert done.code == code, done.out + done.err
        return done.out + done.err

    return runs


def pod(name: str, script: str, *, policy: str = "Never", spec: Any = None, **container: Any) -> dict[str, Any]:
    main_container = {"name": "main", "image": "example:1", "command": ["/bin/sh", "-c", script], **container}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": ASKED},
        "spec": {"restartPolicy": policy, "containers": [main_container], **(spec or {})},
    }  # fmt: skip


def ended(run: Run, name: str, phase: str) -> str:
    """Wait until the Pod reaches this phase, and return its log."""
    run("wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}", PATIENT)
    return run("logs", name, "-c", "main")


def test_command_gets_its_environment_and_reports_its_exit_code(run: Run) -> None:
    run("create", "configmap", "words", "--from-literal=greeting=good morning")
    run("create", "secret", "generic", "door", "--from-literal=key=sesame")
    env = [
        {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "greeting"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "door", "key": "key"}}},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "BOTH", "value": "$(ME) $(GREETING) $$x"},
    ]
    script = 'echo "$BOTH, $1"; echo "$KEY" >&2; echo "${PYTHONPATH:-none} $HOSTNAME"; exit 3'
    run("apply", "-f", "-", stdin=pod("one", script, env=env, args=["sh", "$(ME)"]))
    assert ended(run, "one", "Failed").splitlines() == ["one good morning $x, one", "sesame", "none one"]
    status = json.loads(run("get", "pod", "one", "-o", "json"))["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    conditions = {entry["type"]: entry for entry in status["conditions"]}
    assert "local processes" in conditions["sandbox.argosy.dev/Simulated"]["message"]


@pytest.mark.tier("all")
def test_wait_for_image_job_completes_when_the_image_is_built(run: Run, namespace: str, cluster: Sandbox) -> None:
    flags = ["--name", "model", "--image-tag", "model:latest", "--namespace", namespace, "--with-rbac"]
    times = ["--timeout", f"{HANG_SECONDS:.0f}", "--interval", "1"]
    command = [sys.executable, "-m", "argosy", "generate", "wait-for-image", *flags, *times]
    manifest = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG_SECONDS).stdout
    job = "job/wait-for-model-image"
    job_manifest = run("annotate", "--local", "-f", "-", "sandbox.argosy.dev/run=process", "-o", "yaml", stdin=manifest)
    run("apply", "-f", "-", stdin=job_manifest)
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "model"}}
    config = {
        "apiVersion": "build.openshift.io/v1", "kind": "BuildConfig",
        "metadata": {"name": "model", "annotations": {"sandbox.argosy.dev/run-for": "1s"}},
        "spec": {
            "source": {"git": {"uri": "https://git.example.com/model"}}, "strategy": {"dockerStrategy": {}},
            "output": {"to": {"kind": "ImageStreamTag", "name": "model:latest"}},
            "triggers": [{"type": "ConfigChange"}],
        },
    }  # fmt: skip
    listed = {"apiVersion": "v1", "kind": "List", "items": [stream, config]}
    run("apply", "-f", "-", stdin=listed)
    run("wait", job, "--for=condition=Complete", PATIENT)
    log = run("logs", job)
    assert "waiting for image stream tag model:latest" in log
    assert "image stream tag model:latest is there after" in log


def last_words(run: Run, name: str) -> str:
    state = json.loads(run("get", "pod", name, "-o", "json"))["status"]["containerStatuses"][0]["state"]
    return str(state["terminated"]["message"])


@pytest.mark.tier("all")
def test_termination_message_is_read_from_file_or_log(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("own", "printf 'the model is bad' > /dev/termination-log; exit 1"))
    run("apply", "-f", "-", stdin=pod("long", "yes | head -c 9999 > /tmp/why", terminationMessagePath="/tmp/why"))
    logged = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    run("apply", "-f", "-", stdin=pod("logged", "echo no such file; exit 2", **logged))
    run("apply", "-f", "-", stdin=pod("linked", "rm -f /tmp/why; exit 0", terminationMessagePath="/tmp/why"))
    ended(run, "own", "Failed")
    ended(run, "logged", "Failed")
    ended(run, "long", "Succeeded")
    ended(run, "linked", "Succeeded")
    assert last_words(run, "own") == "the model is bad"
    assert len(last_words(run, "long")) == 4096
    assert last_words(run, "logged") == "no such file\n"
    assert "local process" in last_words(run, "linked")


@pytest.mark.tier("all")
def test_logs_follow_and_tail_show_the_output(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("talk", "for i in 1 2 3 4; do echo line $i; sleep 0.3; done"))
    wait_until(lambda: "line" in run("logs", "talk") if "Running" in run("get", "pod", "talk") else "")
    assert run("logs", "talk", "-f").splitlines() == [f"line {number}" for number in range(1, 5)]
    assert run("logs", "talk", "--tail=1") == "line 4\n"


@pytest.mark.tier("all")
def test_deleted_pod_gets_sigterm_before_it_is_killed(run: Run) -> None:
    obeys = "trap 'echo bye >/data/said; exit 0' TERM; while :; do sleep 0.05; done"
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    run("apply", "-f", "-", stdin=claim)
    run("apply", "-f", "-", stdin=pod("good", obeys, policy="Always", spec={"volumes": volumes}, volumeMounts=mounts))
    run("apply", "-f", "-", stdin=pod("deaf", "trap '' TERM; while :; do sleep 0.05; done"))
    run("wait", "pod/good", "pod/deaf", "--for=condition=Ready", PATIENT)
    run("delete", "pod", "good")
    run("delete", "pod", "deaf", "--grace-period=1")
    run("apply", "-f", "-", stdin=pod("heir", "cat /data/said", spec={"volumes": volumes}, volumeMounts=mounts))
    assert ended(run, "heir", "Succeeded") == "bye\n"


@pytest.mark.tier("all")
def test_failing_command_restarts_into_crash_loop_back_off(run: Run) -> None:
    script = "read n 2>/dev/null </d/n; echo life ${n:-0}; echo $((${n:-0} + 1)) >/d/n; exit 1"
    pod_spec = {"volumes": [{"name": "d", "emptyDir": {}}]}
    mounts = [{"name": "d", "mountPath": "/d"}]
    run("apply", "-f", "-", stdin=pod("again", script, policy="OnFailure", spec=pod_spec, volumeMounts=mounts))
    path = "jsonpath={.status.containerStatuses[0].restartCount}"
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
    wait_until(lambda: run("get", "pod", "again", "-o", path) == "1" and run("get", "pod", "again", "-o", reason) != "")
    assert run("get", "pod", "again", "-o", reason) == "CrashLoopBackOff"
    assert run("logs", "again", "--previous") == run("logs", "again") == "life 1\n"


@pytest.mark.tier("all")
def test_init_container_runs_first_and_pod_waits_for_a_missing_config_map(run: Run) -> None:
    first = {"name": "first", "image": "example:1", "command": ["sh", "-c", "echo ready > /shared/flag"]}
    mount = [{"name": "shared", "mountPath": "/shared"}, {"name": "late", "mountPath": "/etc/late"}]
    volumes = [{"name": "shared", "emptyDir": {}}, {"name": "late", "configMap": {"name": "late"}}]
    spec = {"initContainers": [{**first, "volumeMounts": mount[:1]}], "volumes": volumes}
    run("apply", "-f", "-", stdin=pod("two", "cat /shared/flag /etc/late/x", spec=spec, volumeMounts=mount))
    path = "jsonpath={.status.initContainerStatuses[0].state.waiting.message}"
    wait_until(lambda: 'configmap "late" not found' in run("get", "pod", "two", "-o", path))
    run("create", "configmap", "late", "--from-literal=x=here")
    assert ended(run, "two", "Succeeded") == "ready\nhere\n"


@pytest.mark.tier("all")
def test_pod_has_only_the_rights_of_its_service_account(run: Run, namespace: str) -> None:
    run("create", "serviceaccount", "reader")
    run("create", "role", "reads", "--verb=get,list", "--resource=configmaps")
    run("create", "rolebinding", "reads", "--role=reads", f"--serviceaccount={namespace}:reader")
    script = "oc whoami; kubectl get cm kube-root-ca.crt -o name; oc get secrets 2>&1; cat $SA/namespace"
    env = [{"name": "SA", "value": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    run("apply", "-f", "-", stdin=pod("acts", script, spec={"serviceAccountName": "reader"}, env=env))
    lines = ended(run, "acts", "Succeeded").splitlines()
    assert lines[:2] == [f"system:serviceaccount:{namespace}:reader", "configmap/kube-root-ca.crt"]
    assert "forbidden" in lines[2] and lines[-1] == namespace


def test_process_cannot_read_sandbox_secrets_or_connect_to_other_ports(run: Run, cluster: Sandbox) -> None:
    if not landlock.find_abi_version():
        pytest.skip("landlock: this kernel has none, and confinement depends on the user alone")
    folder = cluster.kubeconfig.parent
    files = [folder / "secret.key", folder / "kubeconfig", folder / "argosy.db", Path(__file__)]
    assert all(file.exists() for file in files)
    script = f"""
for file in {" ".join(map(str, files))}; do cat "$file" 2>/dev/null && echo READ; done
touch /usr/bin/planted {folder}/planted 2>/dev/null && echo WRITTEN
echo done"""
    run("apply", "-f", "-", stdin=pod("thief", script))
    assert ended(run, "thief", "Succeeded") == "done\n"
    if landlock.find_abi_version() >= 4:
        code = "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as e: print(e.errno)"
        caller = pod("caller", "", command=[sys.executable, "-I", "-c", code])
        run("apply", "-f", "-", stdin=caller)
        assert ended(run, "caller", "Succeeded") == "13\n"


@pytest.mark.tier("all")
def test_process_above_its_memory_limit_fails(run: Run) -> None:
    code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    greedy = pod("greedy", "", command=[sys.executable, "-I", "-c", code], resources={"limits": {"memory": "96Mi"}})
    run("apply", "-f", "-", stdin=greedy)
    run("wait", "pod/greedy", "--for=jsonpath={.status.phase}=Failed", PATIENT)


@pytest.mark.tier("all")
def test_pod_without_a_command_waits_with_a_message(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("mute", "", command=[]))
    path = "jsonpath={.status.containerStatuses[0].state.waiting.message}"
    assert "needs a command" in wait_until(lambda: run("get", "pod", "mute", "-o", path))


@pytest.mark.tier("all")
@pytest.mark.parametrize("number", [9, 15])
def test_no_pod_process_outlives_the_sandbox(tmp_path: Path, number: int) -> None:
    mark = f"{os.getpid()}{number}"
    script = f"sleep 9{mark} & setsid sleep 8{mark} & sleep 7{mark}"
    with sandbox(tmp_path / "data", "--port", "0", "--addons", "simulators") as started:
        manifest = json.dumps(pod("stays", script, policy="Always"))
        assert kubectl(started.kubeconfig, "apply", "-f", "-", input=manifest).code == 0
        wait_until(lambda: len(_alive(mark)) >= 3)
        started.process.send_signal(number)
        started.process.wait(HANG_SECONDS)
        wait_until(lambda: not _alive(mark))


def _alive(mark: str) -> list[str]:
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"sleep") and words[1][1:] == mark.encode():
            pids.append(name)
    return pids
