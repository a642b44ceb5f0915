"""The stages, on one demo: eight applications as they are found, why each of them is so, and the way to all green.

The tests tell it in their order; each begins where the one before has ended.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import KUBECTL
from support.deadlines import HANG_SECONDS
from support.demo import Demo, demo
from support.guide_blocks import ALIGNING_BLOCKS, Block, text_of
from support.guide_terminal import ROOT, Reader, blocks_of

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")
[PAGE] = {block.page for block in ALIGNING_BLOCKS}
TEST = "[`test_a_block_of_the_guide_does_what_it_says`](../../tests/scenarios/test_stages.py)"
FOUND = {
    "private-ai-demo-root": ("OutOfSync", "Healthy", ()),
    "stage00-datasciencecluster": ("OutOfSync", "Healthy", ()),
    "stage00-gpu-infrastructure": ("Synced", "Healthy", ()),
    "stage00-minio": ("OutOfSync", "Healthy", ()),
    "stage00-operators": ("Synced", "Healthy", ()),
    "stage01-model-registry": ("Synced", "Healthy", ("SharedResourceWarning",)),
    "stage01-model-serving": ("Unknown", "Healthy", ("ComparisonError",)),
    "stage02-model-alignment": ("OutOfSync", "Healthy", ("SyncError",)),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("stages"), "--example", "stages", "--api-port", "0") as running:
        yield running


def read_app_state(app: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    status = app["status"]
    conditions = tuple(condition_entry["type"] for condition_entry in status.get("conditions") or ())
    return status["sync"]["status"], status["health"]["status"], conditions


def condition(shown: Demo, name: str) -> str:
    [only_condition] = shown.apps()[name]["status"]["conditions"]
    return str(only_condition["message"])


def fields(shown: Demo, name: str) -> dict[str, dict[str, Any]]:
    """What differs, `Kind/name /pointer`, each with its cause."""
    items = json.loads(shown.argosy("app", "diff", name, "-o", "json", code=1))["items"]
    return {
        f"{item['kind']}/{item['name']} {field['path']}": field["cause"] for item in items for field in item["fields"]
    }


@pytest.mark.tier("all")
def test_three_of_eight_are_synced_all_are_healthy_and_there_are_two_errors(shown: Demo) -> None:
    assert {name: read_app_state(app) for name, app in shown.apps().items()} == FOUND
    states = list(FOUND.values())
    assert sum(sync == "Synced" for sync, _, _ in states) / len(states) == 0.375
    assert "8 applications, all healthy, and 3 of them synced" in shown.printed


@pytest.mark.tier("all")
def test_an_operator_rewrites_the_gateway_that_has_no_rule_and_the_other_one_is_no_drift(shown: Demo) -> None:
    causes = fields(shown, "stage00-datasciencecluster")
    assert set(causes) == {
        "Gateway/knative-local-gateway /spec/selector/knative",
        "Gateway/knative-local-gateway /spec/servers/0/hosts",
    }
    assert {(cause["kind"], cause["manager"]) for cause in causes.values()} == {
        ("OtherController", "opendatahub-operator")
    }


@pytest.mark.tier("all")
def test_a_server_that_fills_in_hosts_is_named_as_the_cause_and_no_other_path_is(shown: Demo) -> None:
    causes = fields(shown, "stage00-minio")
    paths = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy")
    assert set(causes) == {f"Route/minio-{name} {path}" for name in ("api", "console") for path in paths}
    assert {cause["kind"] for cause in causes.values()} == {"Webhook"}


@pytest.mark.tier("all")
def test_a_namespace_of_two_applications_is_a_warning_and_no_drift(shown: Demo) -> None:
    shared = "Namespace/private-ai-demo is part of applications stage01-model-registry and stage01-model-serving"
    assert condition(shown, "stage01-model-registry") == shared


@pytest.mark.tier("all")
def test_a_branch_without_the_files_is_a_comparison_error_that_names_file_and_line(shown: Demo) -> None:
    app = shown.apps()["stage01-model-serving"]
    assert app["spec"]["source"]["targetRevision"] == "stage1-complete"
    where = "gitops/stage01/model-serving/kustomization.yaml:7"
    missing = f"{where}: serving/vllm/pvc-mistral-24b.yaml does not exist"
    assert missing in condition(shown, "stage01-model-serving")
    assert "mistral-24b" in shown.kubectl("get", "isvc", "-n", "private-ai-demo")  # what runs goes on running


@pytest.mark.tier("all")
def test_a_selector_that_labels_leaked_into_is_a_sync_error_and_its_line_is_in_the_kustomization(shown: Demo) -> None:
    app = shown.apps()["stage02-model-alignment"]
    assert app["spec"]["source"]["targetRevision"] == "feature/stage2-implementation"
    assert "field is immutable" in condition(shown, "stage02-model-alignment")
    causes = fields(shown, "stage02-model-alignment")
    leaked = causes["Deployment/llama-stack-playground /spec/selector/matchLabels/stage"]
    assert (leaked["kind"], leaked["file"]) == ("Immutable", "gitops/stage02/model-alignment/kustomization.yaml")
    scaled = causes["DoclingServe/docling /spec/replicas"]
    assert (scaled["kind"], scaled["manager"]) == ("OtherController", "docling-operator")


@pytest.mark.tier("all")
def test_the_root_differs_by_one_switch_that_a_person_turned(shown: Demo) -> None:
    [(path, cause)] = fields(shown, "private-ai-demo-root").items()
    assert path == "Application/stage00-gpu-infrastructure /spec/syncPolicy/automated/selfHeal"
    assert cause["manager"] == "kubectl-edit" and "by hand" in cause["text"]


@pytest.mark.tier("all")
def test_the_doctor_tells_each_cause_and_what_helps_and_counts_what_it_proved(shown: Demo) -> None:
    diagnosis = json.loads(shown.argosy("doctor", "-o", "json", "--timeout", f"{HANG_SECONDS:g}", code=1))
    assert {check["state"] for check in diagnosis["checks"]} == {"ok"}
    rules_and_states = {
        finding["application"]: (finding["rule"], finding["state"]) for finding in diagnosis["findings"]
    }
    assert rules_and_states == {
        "private-ai-demo-root": ("AGY515", "OutOfSync"),
        "stage00-datasciencecluster": ("AGY501", "OutOfSync"),
        "stage00-minio": ("AGY501", "OutOfSync"),
        "stage01-model-registry": ("AGY511", "Warning"),
        "stage01-model-serving": ("AGY509", "ComparisonError"),
        "stage02-model-alignment": ("AGY510", "SyncError"),
    }
    fixes = {finding["application"]: (finding["remedy"], finding["certain"]) for finding in diagnosis["findings"]}
    assert fixes["stage01-model-serving"] == ("main", True)
    assert fixes["stage01-model-registry"] == ("informational", None)
    assert fixes["stage00-minio"][1] is True and fixes["stage00-minio"][0].startswith("ignore rule")
    causes = {finding["application"]: finding["cause"] for finding in diagnosis["findings"]}
    assert causes["stage01-model-serving"] == (
        "targetRevision stage1-complete: path serving/vllm/pvc-mistral-24b.yaml not in branch; main renders"
    )
    assert causes["stage00-minio"].startswith("acceptable: Route/minio-api, Route/minio-console: spec.host")
    score = diagnosis["score"]
    assert (score["synced"], score["applications"], score["syncedPercent"]) == (3, 8, 37.5)
    assert score["after"] >= 7
    lines = shown.argosy("doctor", "--match", "stage0|stage1|stage2", "-o", "status", code=1).splitlines()
    assert len(lines) == 7 and "stage00-operators          ... Synced/Healthy" in lines


@pytest.mark.tier("all")
def test_accidents_of_another_example_are_not_staged_here(shown: Demo) -> None:
    stderr = shown.argosy_said("demo", "break", "model", code=2)
    assert "the example stages has no failure drills" in stderr


@pytest.mark.tier("all")
def test_the_branch_main_of_the_demo_is_the_folder_of_the_example(shown: Demo, tmp_path: Path) -> None:
    shown.git("clone", "-q", shown.where["repository"], str(tmp_path / "work"))
    work, ours = tmp_path / "work" / "gitops", ROOT / "examples" / "stages" / "gitops"
    cloned = {path.relative_to(work): path.read_bytes() for path in work.rglob("*.yaml")}
    assert cloned == {path.relative_to(ours): path.read_bytes() for path in ours.rglob("*.yaml")}
    branches = shown.git("-C", str(tmp_path / "work"), "branch", "-r", "--format=%(refname:short)").split()
    assert {"origin/main", "origin/stage1-complete", "origin/feature/stage2-implementation"} <= set(branches)


# -- aligned: the guide is typed, block by block --------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(shown: Demo) -> Reader:
    guide_reader = Reader(shown)
    guide_reader.places[PAGE] = guide_reader.home
    return guide_reader


@pytest.mark.tier("all")
@pytest.mark.parametrize("block", ALIGNING_BLOCKS, ids=lambda guide_block: guide_block.id)
def test_a_block_of_the_guide_does_what_it_says(reader: Reader, block: Block) -> None:
    typed = reader.type(PAGE, text_of(block, ALIGNING_BLOCKS, blocks_of(PAGE)))
    typed.checked(block.shows, block.fails)
    if block.then:
        assert reader.others(PAGE, f"come_true {shlex.quote(block.then)}").failed == [], typed.out


def test_every_block_of_the_guide_has_a_verdict_and_a_row() -> None:
    assert [text_of(guide_block, ALIGNING_BLOCKS, blocks_of(PAGE)) for guide_block in ALIGNING_BLOCKS] == blocks_of(
        PAGE
    )
    rows = (ROOT / "docs/reference/scenarios.md").read_text()
    assert [
        row
        for guide_block in ALIGNING_BLOCKS
        if (row := f"| {guide_block.id} | {guide_block.told} | {TEST} |") not in rows
    ] == []


@pytest.mark.tier("all")
def test_then_eight_of_eight_are_synced_and_healthy_without_an_error(shown: Demo) -> None:
    after = {name: read_app_state(app) for name, app in shown.apps().items()}
    good = dict.fromkeys(FOUND, ("Synced", "Healthy", ()))
    assert after == good | {"stage01-model-registry": ("Synced", "Healthy", ("SharedResourceWarning",))}
    refs = {app["spec"]["source"]["targetRevision"] for app in shown.apps().values()}
    assert refs == {"main"}


@pytest.mark.tier("all")
def test_the_operators_go_on_writing_and_nothing_is_drift(shown: Demo) -> None:
    at = ("-n", "private-ai-demo", "-o", "jsonpath={.spec.replicas}")
    assert shown.kubectl("get", "doclingserve", "docling", *at) == "2"
    hosts = "jsonpath={.spec.servers[0].hosts}"
    assert shown.kubectl("get", "gateway", "knative-local-gateway", "-n", "knative-serving", "-o", hosts) == '["*"]'
    assert shown.kubectl("get", "route", "minio-api", "-n", "minio", "-o", "jsonpath={.spec.host}")


NINTH = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: stage03-evaluation
  namespace: openshift-gitops
spec:
  project: default
  source: {repoURL: https://github.com/your-org/private-ai-demo.git, targetRevision: gone, path: gitops/stage03}
  destination: {server: https://kubernetes.default.svc, namespace: private-ai-demo}
"""


@pytest.mark.tier("all")
def test_a_ninth_application_changes_every_figure(shown: Demo, tmp_path: Path) -> None:
    (tmp_path / "ninth.yaml").write_text(NINTH)
    shown.kubectl("apply", "-f", str(tmp_path / "ninth.yaml"))
    shown.until(lambda: shown.words("stage03-evaluation")[0] == "Unknown")
    figures = json.loads(shown.argosy("align", "--all", "-o", "json", code=1))["before"]
    assert (figures["applications"], figures["synced"], figures["syncedPercent"]) == (9, 8, 88.9)
    assert figures["errors"] == ["ComparisonError"]
