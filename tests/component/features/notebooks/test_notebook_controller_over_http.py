"""The notebook controller with a cluster client over HTTP instead of the embedded store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.schema.bundled_crds import load_definitions
from support.clusters import TOKEN, served
from support.deadlines import HANG_SECONDS
from support.notebook_controller import FAILED, PASSED, RUNNING, ToldRuns, job, world

pytestmark = pytest.mark.anyio
KINDS = ("inferenceservices.serving.kserve.io", "imagestreams.image.openshift.io", "builds.build.openshift.io")


@pytest.mark.tier("all")
async def test_jobs_run_retry_check_models_build_and_are_deleted_over_http(tmp_path: Path) -> None:
    async with served(tmp_path / "server") as server:
        address = server.endpoint.address
        cluster = await connect(Connection(address, "a test", ca_file=str(server.authority), token=TOKEN))
        try:
            for definition in load_definitions(*KINDS, "buildconfigs.build.openshift.io"):
                await cluster.apply(definition, manager="test")
            async with world(cluster, ToldRuns({1: PASSED})) as at:  # type: ignore[arg-type]
                await at.apply(job("good"))
                assert (await at.ends("good"))["phase"] == "Succeeded"
                at.runs.answers[1] = FAILED
                await at.apply(job("bad", retryPolicy={"true": "any", "maxRetries": 1, "backoff": "50ms"}))
                assert (await at.ends("bad"))["retryCount"] == 1
                await at.apply(job("asks", modelValidation={"targetModels": ["m"]}))
                validation = await at.becomes(lambda status: status["modelValidationResult"], "asks")
                assert "model m not found" in validation["message"]
                await at.apply(job("builds", pod={"buildConfig": {"enabled": True}}))
                await at.becomes(lambda status: status["buildStatus"]["phase"] == "Running", "builds")
                at.runs.answers[1] = RUNNING
                await at.apply(job("goes"))
                await at.becomes(lambda status: status["results"], "goes")
                await at.delete("goes")
                async with asyncio.timeout(HANG_SECONDS):
                    while any(name == "goes" for name, _ in at.runs.alive):
                        await asyncio.sleep(0.01)
                await at.told("ValidationSucceeded", "ValidationRetrying", "BuildStarted")
        finally:
            await cluster.close()
