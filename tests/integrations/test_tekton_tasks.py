"""The Tekton tasks: accepted by a cluster with Tekton's CRDs, and their scripts run by a real shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml

from argosy.features.init.service import initialize
from argosy.kube.objects import key_of
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

FOLDER = Path(__file__).parents[2] / "integrations" / "tekton"
FILES = sorted(FOLDER.glob("*.yaml"))
VARIABLE = re.compile(r"\$\(((?:params|workspaces|results|context|steps)\.[^)]*)\)")
KINDS = ("tasks.tekton.dev", "taskruns.tekton.dev", "pipelines.tekton.dev", "pipelineruns.tekton.dev")


class Ended(NamedTuple):
    code: int
    printed: str
    results: dict[str, str]


class Pod:
    """Simulates a task's Pod for its script: variables, workspaces, results, and the programs of its image."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source, self.reports = folder, folder / "source", folder / "reports"
        initialize(self.source, "llmops", "", is_committed=True)
        self.reports.mkdir()
        (folder / "bin").mkdir()
        program = folder / "bin" / "argosy"
        path = os.environ.get("PYTHONPATH", "")
        program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m argosy "$@"\n')
        program.chmod(0o755)

    def run(self, file: str, *, has_reports: bool = False, **params: str) -> Ended:
        spec = yaml.safe_load((FOLDER / file).read_text())["spec"]
        variables = self._known(spec, params, has_reports)
        step = spec["steps"][0]
        assert not VARIABLE.search(step["script"]), "parameters are no text of a script"
        env = {
            env_var["name"]: VARIABLE.sub(lambda match: variables[match[1]], env_var["value"])
            for env_var in step["env"]
        }
        script = self.folder / "script.sh"
        script.write_text(step["script"])
        done = subprocess.run(
            ["sh", str(script)], cwd=VARIABLE.sub(lambda match: variables[match[1]], step["workingDir"]), text=True,
            env={"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **env}, timeout=HANG_SECONDS, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        names = [result["name"] for result in spec["results"]]
        results = {name: (self.folder / name).read_text() for name in names if (self.folder / name).exists()}
        return Ended(done.returncode, done.stdout, results)

    def _known(self, spec: Mapping[str, Any], params: Mapping[str, str], has_reports: bool) -> dict[str, str]:
        """tekton: the variables that can be written as $(…)."""
        typed = {name.replace("_", "-"): value for name, value in params.items()}
        declared = {param["name"]: param.get("default") for param in spec["params"]}
        assert typed.keys() <= declared.keys()
        return {
            **{f"params.{name}": typed.get(name, default) for name, default in declared.items()},
            **{f"results.{result['name']}.path": str(self.folder / result["name"]) for result in spec["results"]},
            "workspaces.source.path": str(self.source),
            "workspaces.reports.path": str(self.reports) if has_reports else "",
            "workspaces.reports.bound": "true" if has_reports else "false",
        }


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.mark.anyio
async def test_cluster_accepts_every_task_and_pipeline_with_all_fields() -> None:
    documents = [document for file in FILES for document in yaml.safe_load_all(file.read_text())]
    assert {"Task", "Pipeline"} <= {document["kind"] for document in documents}
    async with EmbeddedCluster.open() as cluster:
        for definition in load_definitions(*KINDS):
            await cluster.apply(definition, manager="test")
        for document in documents:
            document["metadata"].setdefault("namespace", "default")
            created = await cluster.create(document)
            if "name" in document["metadata"]:
                assert (await cluster.get(key_of(document)) or {})["spec"] == created["spec"] == document["spec"]


def test_valid_repository_passes(pod: Pod) -> None:
    ended = pod.run("argosy-check.yaml")
    assert ended.code == 0, ended.printed
    assert ended.results["result"] == "passed" and ended.results["summary"].startswith("3 Applications, ")


@pytest.mark.tier("all")
def test_finding_fails_the_task_and_is_written_to_the_reports(pod: Pod) -> None:
    file = pod.source / "argocd-apps" / "staging-application.yaml"
    file.write_text(file.read_text().replace("    targetRevision:", "    nosuch: 1\n    targetRevision:"))
    ended = pod.run("argosy-check.yaml", has_reports=True)
    assert ended.code == 1 and ended.results["result"] == "failed"
    assert "argocd-apps/staging-application.yaml:14: AGY151 warning" in ended.printed
    assert ElementTree.parse(pod.reports / "junit.xml").getroot().get("failures") == "1"
    assert "AGY151" in (pod.reports / "argosy.sarif").read_text()


def test_parameters_are_not_executed_by_the_shell(pod: Pod) -> None:
    proof = pod.folder / "run"
    ended = pod.run("argosy-check.yaml", folder=f"$(touch {proof});`touch {proof}`", baseline=f"a; touch {proof}")
    assert not proof.exists() and ended.code == 2 and ended.results["result"] == "error"


@pytest.mark.tier("all")
def test_preview_reports_the_change_and_writes_report_files(pod: Pod) -> None:
    overlay = pod.source / "deploy_model" / "overlays" / "dev" / "kustomization.yaml"
    overlay.write_text(overlay.read_text().replace('value: "500m"', 'value: "800m"'))
    ended = pod.run("argosy-preview.yaml", has_reports=True, base="HEAD")
    assert ended.code == 0, ended.printed
    assert ended.results["result"] == "passed" and "1 app" in ended.results["summary"]
    assert "800m" in ended.printed and "800m" in (pod.reports / "preview.md").read_text()
    assert sorted(report.name for report in pod.reports.iterdir()) == ["preview.html", "preview.json", "preview.md"]
    proof = pod.folder / "run"
    ended = pod.run("argosy-preview.yaml", base=f"$(touch {proof})")
    assert ended.results["result"] == "error" and ended.code == 2 and not proof.exists()
