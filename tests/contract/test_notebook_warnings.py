"""Admission warnings for notebook jobs on a real API server, from the shipped deploy/notebooks/warnings.yaml."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.kube.objects import dump_yaml
from argosy.kube.schema.bundled_crds import load_definition
from support.clusters import KUBECTL, kubectl, until_served
from support.deadlines import HANG_SECONDS

if TYPE_CHECKING:
    from conftest import RealServer

POLICY = Path(__file__).parents[2] / "deploy" / "notebooks" / "warnings.yaml"
JOB = """
apiVersion: mlops.mlops.dev/v1alpha1
kind: NotebookValidationJob
metadata: {name: warned, namespace: default}
spec:
  notebook: {git: {url: https://example.org/a.git, ref: main}, path: a.ipynb}
  podConfig:
    volumeMounts: [{name: models, mountPath: /mnt/models}]
  volumes:
    - {name: models, persistentVolumeClaim: {claimName: models}}
"""


@pytest.mark.tier("realcluster")
@pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl here (make install)")
def test_real_server_admits_a_notebook_job_with_misplaced_volumes_and_warns(own_server: RealServer) -> None:
    config = own_server.kubeconfig
    kind = dump_yaml(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    assert kubectl(config, "apply", "--server-side", "--force-conflicts", "-f", "-", input=kind).code == 0
    until_served(config, "notebookvalidationjobs.mlops.mlops.dev")
    assert kubectl(config, "apply", "-f", POLICY).code == 0
    try:
        deadline, warnings = time.monotonic() + HANG_SECONDS, ""
        while (
            "spec.podConfig.volumes" not in warnings and time.monotonic() < deadline
        ):  # a policy takes effect after a delay
            warnings = kubectl(config, "apply", "--dry-run=server", "-f", "-", input=JOB).err
        done = kubectl(config, "apply", "-f", "-", input=JOB)
        assert done.code == 0, done.err
        assert "move them to spec.podConfig.volumes" in done.err
        assert "quay.io/jupyter/minimal-notebook:latest is used" in done.err
        assert kubectl(config, "apply", "-f", "-", input=JOB).out.strip().endswith("unchanged")
    finally:
        kubectl(config, "delete", "nvj", "warned", "-n", "default", "--ignore-not-found")
        kubectl(config, "delete", "-f", POLICY)
        kubectl(config, "delete", "crd/notebookvalidationjobs.mlops.mlops.dev")  # other tests define it as well
