"""Samples of the upstream notebook operator: accepted if the upstream CRD accepts them, and run.

The samples belong to `tosin2013/jupyter-notebook-validator-operator`, not to this project. ARGOSY_OPERATOR_CHECKOUT
names a checkout of it; the default is in `shared/data` beside this checkout. Without one these tests are skipped.
The notebooks that the samples name are replaced by stand-ins through `source.mirrors`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ArgosyError
from argosy.kube.objects import Manifest, dump_yaml, read_yaml_documents
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.clusters import KUBECTL, Sandbox, kubectl, sandbox
from support.deadlines import wait_until, wait_until_async
from support.notebook_jobs import Repository, notebook

NAME = "jupyter-notebook-validator-operator"
ROOT = Path(__file__).parents[2]
CHECKOUT = Path(os.environ.get("ARGOSY_OPERATOR_CHECKOUT") or ROOT.parent / "shared" / "data" / NAME)
SAMPLES, BASES = CHECKOUT / "config" / "samples", CHECKOUT / "config" / "crd" / "bases"
OURS = ROOT / "deploy" / "notebooks" / "definition.yaml"
CRD = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "notebookvalidationjobs.mlops.mlops.dev")
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"there is no checkout of tosin2013/{NAME} here")


def jobs() -> list[Manifest]:
    manifests = [
        document
        for file in sorted(SAMPLES.rglob("*.yaml"))
        for document in read_yaml_documents(file.read_bytes(), where=str(file))
        if isinstance(document, dict) and document.get("kind") == "NotebookValidationJob"
    ]
    return [{**job, "metadata": {"namespace": "default", **job["metadata"]}} for job in manifests]


JOBS = jobs() if SAMPLES.is_dir() else []


async def stored(definition: Path) -> AsyncIterator[EmbeddedCluster]:
    """Yield a cluster with this CRD of the kind and the namespaces of the samples."""
    async with EmbeddedCluster.open() as cluster:
        for manifest in read_yaml_documents(definition.read_bytes()):
            await cluster.create(manifest)

        async def is_served() -> bool:
            crd = await cluster.get(CRD)
            conditions = ((crd or {}).get("status") or {}).get("conditions") or ()
            return {"type": "Established", "status": "True"}.items() <= {
                key: value
                for condition in conditions
                if condition["type"] == "Established"
                for key, value in condition.items()
            }.items()

        await wait_until_async(is_served)
        for namespace in {job["metadata"]["namespace"] for job in JOBS} - {"default"}:
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield cluster


async def specs(definition: Path) -> dict[str, Any]:
    """Return, by job name, the spec as stored (with defaults, without unknown fields) or the error message."""
    stored_specs: dict[str, Any] = {}
    async for cluster in stored(definition):
        for job in JOBS:
            try:
                stored_specs[job["metadata"]["name"]] = (await cluster.create(job))["spec"]
            except ArgosyError as error:
                stored_specs[job["metadata"]["name"]] = str(error)
    return stored_specs


def without_additions(ours: Any, upstream: Any) -> Any:
    """Return our stored spec without fields that the upstream CRD drops, such as `spec.retryPolicy`."""
    if isinstance(ours, dict) and isinstance(upstream, dict):
        return {name: without_additions(value, upstream[name]) for name, value in ours.items() if name in upstream}
    return ours


async def test_samples_accepted_by_the_upstream_crd_are_stored_without_field_loss() -> None:
    upstream_specs = await specs(BASES / "mlops.mlops.dev_notebookvalidationjobs.yaml")
    accepted = {name: spec for name, spec in upstream_specs.items() if not isinstance(spec, str)}
    ours = await specs(OURS)
    assert len(accepted) > 30
    assert {name: without_additions(ours[name], spec) for name, spec in accepted.items()} == accepted


def needs(job: Manifest) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each namespaced object that a job needs to run."""
    config: Mapping[str, Any] = job["spec"].get("podConfig") or {}
    for field in ("notebook", "goldenNotebook"):
        if secret := ((job["spec"].get(field) or {}).get("git") or {}).get("credentialsSecret"):
            yield "Secret", secret
    yield from (("Secret", name) for name in config.get("credentials") or ())
    for source in config.get("envFrom") or ():
        yield from (("Secret" if kind == "secretRef" else "ConfigMap", ref["name"]) for kind, ref in source.items())
    for volume in config.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]
        elif "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"]
        elif "secret" in volume:
            yield "Secret", volume["secret"]["secretName"]


def keys(job: Manifest) -> dict[tuple[str, str], dict[str, str]]:
    """Return, by kind and name, the Secret and ConfigMap keys that variables or volumes of a job reference."""
    keys_by_object: dict[tuple[str, str], dict[str, str]] = {}
    config: Mapping[str, Any] = job["spec"].get("podConfig") or {}
    for variable in config.get("env") or ():
        for field, ref in (variable.get("valueFrom") or {}).items():
            kind = "ConfigMap" if field == "configMapKeyRef" else "Secret"
            keys_by_object.setdefault((kind, ref["name"]), {})[ref["key"]] = "stand-in"
    for volume in config.get("volumes") or ():
        for field, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            for item in (volume.get(field) or {}).get("items") or ():
                keys_by_object.setdefault((kind, volume[field][name]), {})[item["key"]] = "stand-in"
    return keys_by_object


def is_runnable(job: Manifest) -> bool:
    """True unless the job needs an image builder or a model platform, which the sandbox does not have."""
    spec = job["spec"]
    config = spec.get("podConfig") or {}
    builds = (config.get("buildConfig") or {}).get("enabled")
    return not builds and not (spec.get("modelValidation") or {}).get("enabled")


def provided(job: Manifest) -> Iterator[Manifest]:
    """Yield the objects that the job needs, with stand-in values."""
    referenced_keys = keys(job)
    for kind, name in dict.fromkeys([*needs(job), *referenced_keys]):
        metadata = {"name": name, "namespace": job["metadata"]["namespace"]}
        if kind == "PersistentVolumeClaim":
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            yield {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
        elif kind == "ConfigMap":
            yield {
                "apiVersion": "v1",
                "kind": kind,
                "metadata": metadata,
                "data": referenced_keys.get((kind, name), {"a": "b"}),
            }
        else:
            data = {"username": "robot", "password": "stand-in", **referenced_keys.get((kind, name), {})}
            yield {"apiVersion": "v1", "kind": kind, "metadata": metadata, "stringData": data}


def stand_in() -> str:
    """Return a notebook saved with its output, so that it is its own golden notebook."""
    document = json.loads(notebook("print('stand-in')"))
    document["cells"][0]["execution_count"] = 1
    document["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "stand-in\n"}]
    return json.dumps(document)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    named = [job["spec"][field] for job in JOBS for field in ("notebook", "goldenNotebook") if field in job["spec"]]
    repository = Repository(tmp_path_factory.mktemp("git") / "notebooks")
    repository.commit({notebook_source["path"]: stand_in() for notebook_source in named})
    addresses = dict.fromkeys(notebook_source["git"]["url"] for notebook_source in named)
    mirrors = "".join(f"{address} file://{repository.folder}\n" for address in addresses)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": "argocd"}}
    with sandbox(
        tmp_path_factory.mktemp("samples") / "data", "--port", "0", "--addons", "notebooks"
    ) as running_sandbox:
        for namespace in {"argocd", *(job["metadata"]["namespace"] for job in JOBS)} - {"default"}:
            assert kubectl(running_sandbox.kubeconfig, "create", "namespace", namespace).code == 0
        text = dump_yaml({**settings, "data": {"source.mirrors": mirrors}})
        assert kubectl(running_sandbox.kubeconfig, "apply", "-f", "-", input=text).code == 0
        yield running_sandbox


@pytest.mark.tier("all")
@pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl here (make install)")
@pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone")
@pytest.mark.parametrize("job", [job for job in JOBS if is_runnable(job)], ids=lambda job: str(job["metadata"]["name"]))
def test_sample_runs_with_a_mirror_of_its_repository(server: Sandbox, job: Manifest) -> None:
    pytest.importorskip("nbclient")
    for manifest in (*provided(job), job):
        # Two samples have fields that the upstream CRD does not define, and kubectl rejects those by default.
        done = kubectl(server.kubeconfig, "apply", "--validate=ignore", "-f", "-", input=dump_yaml(manifest))
        assert done.code == 0, done.err

    def status() -> dict[str, Any]:
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        output = kubectl(server.kubeconfig, "get", "notebookvalidationjob", name, "-n", namespace, "-o", "json").out
        job_status: dict[str, Any] = json.loads(output).get("status") or {}
        return job_status

    wait_until(lambda: status().get("phase") in ("Succeeded", "Failed"), "the job ends")
    assert (status()["phase"], status()["message"].partition(":")[0]) == ("Succeeded", "Validation completed")
