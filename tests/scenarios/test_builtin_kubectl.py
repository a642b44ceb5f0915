"""The built-in `argosy kubectl` and `argosy oc`; compared with the real kubectl if it is installed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.demo.in_process_demo_stack import write_command_stubs
from argosy.features.kubectl.installed_programs import find_kubectl, render_argosy_script
from support.clusters import KUBECTL, Finished, Sandbox, kubectl, sandbox
from support.deadlines import HANG_SECONDS
from support.forked_commands import run
from support.tiers import IN_TEST_ALL

PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # kubectl reports the reason before the test kills it
CONTENT = """
apiVersion: v1
kind: Namespace
metadata: {name: small}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: small, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example:1"}]}
---
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: model, namespace: small}
---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: model, namespace: small}
spec:
  source: {git: {uri: "https://git.example.com/model"}}
  strategy: {dockerStrategy: {}}
  output: {to: {kind: ImageStreamTag, name: "model:latest"}}
---
apiVersion: v1
kind: Event
metadata: {name: strange, namespace: small}
type: Normal
reason: Odd
message: "a\\e[31mred\\nsecond line"
involvedObject: {kind: ImageStream, name: model, namespace: small}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("small")
    with sandbox(folder / "data", "--port", "0", "--addons", "simulators") as started:
        done = oc(started, "apply", "-f", "-", stdin=CONTENT)
        assert done.out.splitlines()[1] == "deployment.apps/web created", done
        assert oc(started, "wait", "deploy", "web", "-n", "small", "--for=condition=available", PATIENT).code == 0
        yield started


def oc(cluster: Sandbox, *words: str, stdin: str = "", program: str = "oc", **environment: str) -> Finished:
    """Run the built-in oc or kubectl; `ARGOSY_KUBECTL` in `environment` selects a real kubectl."""
    own = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "ARGOSY_KUBECTL": "none", **environment}
    return Finished(*run([program, *words], env=own, input=stdin, timeout=HANG_SECONDS), 0.0)


@pytest.mark.usefixtures("needs_kubectl")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param("get namespaces -o name", marks=IN_TEST_ALL),
        "get deployment web -n small -o name",
        pytest.param("get deploy,cm -n small -o name", marks=IN_TEST_ALL),
        pytest.param("get deployment web -n small -o jsonpath={.metadata.labels.app}", marks=IN_TEST_ALL),
        "get deployment.apps web -n small -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app,NO:.x",
        "get pod nobody -n small",
        pytest.param("get deployment/web -n small -o json", marks=IN_TEST_ALL),
        pytest.param("get nodes --no-headers -o custom-columns=NAME:.metadata.name", marks=IN_TEST_ALL),
        pytest.param(f"wait deployment/web -n small --for=condition=Available {PATIENT}", marks=IN_TEST_ALL),
        pytest.param("get cm kube-root-ca.crt -n small -o jsonpath={.metadata.name}{'\\n'}", marks=IN_TEST_ALL),
        pytest.param("get secrets -n small", marks=IN_TEST_ALL),
        "get events strange -n small",
        pytest.param("wait pod/nobody -n small --for=delete", marks=IN_TEST_ALL),
    ],
)
def test_builtin_kubectl_prints_the_same_as_real_kubectl(cluster: Sandbox, words: str) -> None:
    real, small = kubectl(cluster.kubeconfig, *words.split()), oc(cluster, *words.split(), program="kubectl")
    assert (small.code, small.out, small.err) == (real.code, real.out, real.err)


def test_unsupported_verb_reports_that_kubectl_is_required(cluster: Sandbox) -> None:
    done = oc(cluster, "exec", "web", "--", "sh")
    assert done.code == 1
    assert "needs kubectl, which is not installed" in done.err and "Traceback" not in done.err
    assert "pip install 'argosy[kubectl]'" in done.err


def test_create_label_annotate_patch_and_delete_work(cluster: Sandbox) -> None:
    outputs = [
        oc(cluster, *words.split()).out.strip()
        for words in (
            "create configmap made -n small --from-literal=a=b",
            "label configmap made -n small tier=one",
            "annotate cm/made -n small note=x",
            'patch cm made -n small --type merge -p {"data":{"a":"c"}}',
            "get cm made -n small -o jsonpath={.data.a},{.metadata.labels.tier},{.metadata.annotations.note}",
            "delete cm made -n small",
        )
    ]
    assert outputs == [
        "configmap/made created", "configmap/made labeled", "configmap/made annotated", "configmap/made patched",
        "c,one,x", 'configmap "made" deleted',
    ]  # fmt: skip
    refused = oc(cluster, "annotate", "deploy", "web", "-n", "small", "deployment.kubernetes.io/revision=9")
    assert refused.code == 1 and "--overwrite" in refused.err


@pytest.mark.tier("all")
def test_oc_start_build_creates_imagestreamtag(cluster: Sandbox) -> None:
    started = oc(cluster, "start-build", "model", "-n", "small", "--wait")
    assert started.out == "build.build.openshift.io/model-1 started\n", started
    waited = oc(cluster, "wait", "imagestreamtag/model:latest", "-n", "small", "--for=create", PATIENT)
    assert waited.out == "imagestreamtag.image.openshift.io/model:latest condition met\n", waited
    assert "not found" in oc(cluster, "start-build", "other", "-n", "small").err
    for target in ("bc/model", "build/model-1"):
        assert oc(cluster, "logs", target, "-n", "small").out.startswith("build model-1 is Complete: "), target
    assert oc(cluster, "tag", "a", "b").err.startswith(
        "error: oc tag is not supported: argosy's oc is kubectl plus whoami"
    )


@pytest.mark.tier("all")
@pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")
def test_buildrequest_to_instantiate_subresource_starts_build(cluster: Sandbox) -> None:
    path = "/apis/build.openshift.io/v1/namespaces/small/buildconfigs/model/instantiate"
    sent = {"apiVersion": "build.openshift.io/v1", "kind": "BuildRequest", "metadata": {"name": "model"}}
    result = kubectl(cluster.kubeconfig, "create", "--raw", path, "-f", "-", input=json.dumps(sent))
    assert result.code == 0 and json.loads(result.out)["spec"]["triggeredBy"] == [{"message": "Manually triggered"}], (
        result
    )
    name = json.loads(result.out)["metadata"]["name"]
    complete = "--for=jsonpath={.status.phase}=Complete"
    done = kubectl(cluster.kubeconfig, "wait", complete, f"build/{name}", "-n", "small", PATIENT)
    assert done.code == 0, done
    listed = kubectl(cluster.kubeconfig, "get", "--raw", "/apis/build.openshift.io/v1").out
    parts = {resource["name"]: resource for resource in json.loads(listed)["resources"]}
    assert parts["buildconfigs/instantiate"]["kind"] == "BuildRequest"


@pytest.mark.tier("all")
def test_oc_supports_whoami_extract_and_login(cluster: Sandbox, tmp_path: Path) -> None:
    assert oc(cluster, "whoami").out == "admin\n"
    assert oc(cluster, "whoami", "--show-server").out == f"{cluster.address}\n"
    oc(cluster, "create", "secret", "generic", "door", "-n", "small", "--from-literal=admin.password=sesame")
    result = oc(cluster, "extract", "secret/door", "-n", "small", "--keys=admin.password", "--to=-")
    assert (result.out, result.err) == ("sesame\n", "# admin.password\n")
    oc(cluster, "extract", "secret/door", "-n", "small", "--to", str(tmp_path))
    assert (tmp_path / "admin.password").read_text() == "sesame"
    assert "from the kubeconfig" in oc(cluster, "login", "-u", "developer").out
    server = oc(cluster, "whoami", "--show-server").out.strip()
    assert "from the kubeconfig" in oc(cluster, "login", server, "-u", "developer").out
    for words in ("login https://api.prod.example:6443 -u developer", "login --server=https://api.prod.example:6443"):
        refused = oc(cluster, *words.split())
        assert refused.code == 1 and "https://api.prod.example:6443 is not the server of the kubeconfig" in refused.err


@pytest.mark.usefixtures("needs_kubectl")
def test_installed_kubectl_is_preferred_except_for_oc_verbs(cluster: Sandbox) -> None:
    assert "clientVersion" in json.loads(oc(cluster, "version", "-o", "json", ARGOSY_KUBECTL=str(KUBECTL)).out)
    assert oc(cluster, "whoami", ARGOSY_KUBECTL=str(KUBECTL)).out == "admin\n"


def test_find_kubectl_ignores_scripts_written_by_argosy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubectl").write_text(render_argosy_script("kubectl"))
    (tmp_path / "kubectl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.delenv("ARGOSY_KUBECTL", raising=False)
    assert str(tmp_path) not in find_kubectl()
    assert {script.name for script in write_command_stubs(tmp_path).iterdir()} >= {"argosy", "argocd", "oc"}
