"""The sandbox API server accepts the rendered charts and the requests of their scripts, sent with real kubectl."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kube.schema.bundled_crds import load_definition, load_definitions
from support.clusters import KUBECTL, Sandbox, kubectl, sandbox
from support.deadlines import HANG_SECONDS
from support.helm_charts import CHARTS, GLOBAL, NAMESPACE, NOTEBOOKS, SCRIPT, URL, needs_helm, rendered

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")

OUTSIDE = (
    "builds.build.openshift.io", "buildconfigs.build.openshift.io", "imagestreams.image.openshift.io",
    "imagestreamtags.image.openshift.io", "notebookvalidationjobs.mlops.mlops.dev",
    "inferenceservices.serving.kserve.io", "gitea.pfe.rhpds.com",
)  # fmt: skip
SECRETS = {"gitea-credentials-source": "Opaque", "git-credentials-source": "kubernetes.io/basic-auth"}
PASSWORD = "pa$$ w'or\"d"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("charts") / "data", "--port", "0") as started:
        for namespace in (NAMESPACE, "gitea"):
            assert kubectl(started.kubeconfig, "create", "namespace", namespace).code == 0
        send(started, *load_definitions(*OUTSIDE))
        crd_names = [f"crd/{name}" for name in OUTSIDE]
        assert kubectl(started.kubeconfig, "wait", "--for=condition=Established", *crd_names).code == 0
        yield started


@pytest.fixture
def oc(running: Sandbox, tmp_path: Path) -> Path:
    """A program `oc` that runs kubectl and records its arguments."""
    program = tmp_path / "oc"
    program.write_text(
        f'#!/bin/sh\necho "$*" >> "{tmp_path}/calls"\nexec "{KUBECTL}" --kubeconfig "{running.kubeconfig}" "$@"\n'
    )
    program.chmod(0o755)
    return program


def build(name: str, of: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"buildconfig": of}}
    return {"apiVersion": "build.openshift.io/v1", "kind": "Build", "metadata": metadata, "spec": {}}


def tell(running: Sandbox, kind: str, name: str, namespace: str, status: dict[str, str]) -> None:
    """Write a status as the kind's controller does."""
    (version,) = load_definition(kind)["spec"]["versions"]
    where = ["--subresource=status"] if "status" in version.get("subresources", {}) else []
    patch = ["--type=merge", "-p", json.dumps({"status": status})]
    done = kubectl(running.kubeconfig, "patch", kind, name, "-n", namespace, *where, *patch)
    assert done.code == 0, done.err


def send(running: Sandbox, *manifests: dict[str, Any], dry_run: bool = False) -> str:
    flags = ["--dry-run=server"] if dry_run else []
    done = kubectl(running.kubeconfig, "apply", *flags, "-f", "-", input=yaml.safe_dump_all(manifests))
    assert done.code == 0, done.err
    return done.out


@needs_helm
def test_server_accepts_every_object_of_the_chart(running: Sandbox) -> None:
    values = {"global": {"git": {"repoURL": URL}}, "waitForImage": {"autoStart": True}}
    manifests = rendered(values, GLOBAL, NOTEBOOKS)
    assert {manifest["kind"] for manifest in manifests} >= {
        "Job",
        "BuildConfig",
        "NotebookValidationJob",
        "InferenceService",
    }
    assert send(running, *manifests, dry_run=True).count("(server dry run)") == len(manifests)


@pytest.mark.tier("all")
def test_wait_script_reports_the_failed_build_of_its_own_build_config(running: Sandbox, oc: Path) -> None:
    send(running, build("mine-1", "mine"), build("other-1", "other"))
    tell(running, "builds.build.openshift.io", "mine-1", NAMESPACE, {"phase": "Failed", "message": "out of disk"})
    tell(running, "builds.build.openshift.io", "other-1", NAMESPACE, {"phase": "Running"})
    script = "".join(SCRIPT.read_text().splitlines(keepends=True)[1:-1])
    env = {"IMAGE_TAG": "mine:latest", "NAMESPACE": NAMESPACE, "BUILD_CONFIG": "mine", "HOME": str(oc.parent)}
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": f"{oc.parent}:/usr/bin:/bin", **env},
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "build mine-1 ended as Failed: out of disk" in done.stderr


def load(oc: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    base_env = {"PATH": os.environ["PATH"], "HOME": str(oc.parent)}
    command = ["make", "-s", "-C", str(CHARTS), "load-env-secrets", f"OC={oc}", f"NAMESPACE={NAMESPACE}"]
    return subprocess.run(
        command, env={**base_env, **environment}, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )


def secrets(running: Sandbox) -> dict[str, tuple[str, str, str]]:
    done = kubectl(running.kubeconfig, "get", "secrets", "-n", NAMESPACE, "-o", "json", *SECRETS)
    assert done.code == 0, done.err
    credentials = {}
    for secret in json.loads(done.out)["items"]:
        data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
        credentials[secret["metadata"]["name"]] = (secret["type"], data["username"], data["password"])
    return credentials


@pytest.mark.tier("all")
def test_credentials_from_environment_are_written_to_both_secrets_and_updated(running: Sandbox, oc: Path) -> None:
    for password in ("the-first", PASSWORD):
        done = load(oc, GITEA_USERNAME="ops", GITEA_PASSWORD=password)
        assert done.returncode == 0, done.stderr
        assert secrets(running) == {name: (kind, "ops", password) for name, kind in SECRETS.items()}


def test_password_is_never_printed_or_passed_as_an_argument(running: Sandbox, oc: Path) -> None:
    done = load(oc, GITEA_USERNAME="ops", GITEA_PASSWORD=PASSWORD)
    output = done.stdout + done.stderr + (oc.parent / "calls").read_text()
    assert "secret/gitea-credentials-source serverside-applied" in output
    assert PASSWORD not in output
    assert base64.b64encode(PASSWORD.encode()).decode() not in output


@pytest.mark.tier("all")
def test_credentials_are_read_from_the_gitea_resource_without_environment(running: Sandbox, oc: Path) -> None:
    metadata = {"name": "gitea-with-admin", "namespace": "gitea"}
    spec = {"giteaAdminUser": "admin"}
    send(running, {"apiVersion": "pfe.rhpds.com/v1", "kind": "Gitea", "metadata": metadata, "spec": spec})
    early = load(oc)
    assert early.returncode != 0
    assert "has no status.adminPassword yet" in early.stderr
    status = {"adminPassword": "from-the-cluster"}
    tell(running, "gitea.pfe.rhpds.com", "gitea-with-admin", "gitea", status)
    done = load(oc)
    assert done.returncode == 0, done.stderr
    assert secrets(running)["gitea-credentials-source"] == ("Opaque", "admin", "from-the-cluster")
    assert "from-the-cluster" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"GITEA_USERNAME": "ops"}, "belong together"),
        ({"GITEA_PASSWORD": PASSWORD}, "belong together"),
        ({"GITEA_NAME": "absent"}, "set GITEA_USERNAME and GITEA_PASSWORD instead"),
    ],
)
def test_missing_credentials_give_an_error_that_says_what_to_set(
    running: Sandbox, oc: Path, environment: dict[str, str], sentence: str
) -> None:
    done = load(oc, **environment)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
