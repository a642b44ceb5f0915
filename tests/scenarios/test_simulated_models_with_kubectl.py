"""Simulated models, builds and the wait-for-image script, with the real kubectl, which also runs under the name oc."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.generate.image_wait_job_manifests import ImageWait
from argosy.kube.objects import dump_yaml
from support.clusters import KUBECTL, Sandbox, kubectl, sandbox
from support.deadlines import HANG_SECONDS

PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # kubectl reports the reason before the test kills it
pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("needs_kubectl")]
FOLDER = Path(__file__).parents[2] / "llmops-via-argocd"
ADDONS = "argocd_operator,simulators"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("played") / "data", "--port", "0", "--addons", ADDONS) as started:
        for namespace in ("llmops-dev", "ml"):
            kubectl(started.kubeconfig, "create", "namespace", namespace)
        yield started


def run(played: Sandbox, *words: str, stdin: str | None = None) -> str:
    done = kubectl(played.kubeconfig, *words, input=stdin)
    assert done.code == 0, done.err
    return done.out


def test_kubectl_lists_ready_inferenceservice_with_url_and_route(played: Sandbox) -> None:
    run(played, "apply", "-k", str(FOLDER / "deploy_model/overlays/dev"))
    ready = "--for=condition=Ready"
    run(played, "wait", ready, "inferenceservice/dev-qwen25-05b-instruct", "-n", "llmops-dev", PATIENT)
    table = run(played, "get", "inferenceservice", "-n", "llmops-dev")
    header, row = table.splitlines()
    assert header.split()[:3] == ["NAME", "URL", "READY"]
    name, url, is_ready = row.split()[:3]
    assert (name, is_ready) == ("dev-qwen25-05b-instruct", "True")
    assert url.startswith("http://dev-qwen25-05b-instruct-llmops-dev.localhost:")
    routes = run(played, "get", "route", "--all-namespaces")
    assert any("llmops" in line and "dev-qwen25-05b-instruct" in line for line in routes.splitlines())


def test_second_apply_of_inferenceservice_is_unchanged_despite_webhook_defaults(played: Sandbox) -> None:
    overlay = str(FOLDER / "deploy_model/overlays/dev")
    run(played, "apply", "-k", overlay)
    again = run(played, "apply", "-k", overlay).splitlines()
    assert "inferenceservice.serving.kserve.io/dev-qwen25-05b-instruct unchanged" in again


def test_wait_for_image_script_finds_image_built_by_buildconfig(played: Sandbox, tmp_path: Path) -> None:
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream"}
    config = {"apiVersion": "build.openshift.io/v1", "kind": "BuildConfig"}
    about = {"metadata": {"name": "trainer", "namespace": "ml"}}
    spec = {
        "source": {"git": {"uri": "https://example.com/it.git"}},
        "strategy": {"dockerStrategy": {}},
        "output": {"to": {"kind": "ImageStreamTag", "name": "trainer:latest"}},
        "triggers": [{"type": "ConfigChange"}],
    }
    for manifest in ({**stream, **about}, {**config, **about, "spec": spec}):
        run(played, "apply", "-f", "-", stdin=dump_yaml(manifest))
    (tmp_path / "oc").symlink_to(KUBECTL)
    job = ImageWait(name="trainer", image_tag="trainer:latest", namespace="ml", interval=1)
    container = job.build_manifests()[-1]["spec"]["template"]["spec"]["containers"][0]
    env = {variable["name"]: variable["value"] for variable in container["env"]}
    env |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(played.kubeconfig), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", *container["args"]], env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "image stream tag trainer:latest is there" in done.stdout
    table = run(played, "get", "builds", "-n", "ml")
    assert "trainer-1" in table and "Complete" in table
