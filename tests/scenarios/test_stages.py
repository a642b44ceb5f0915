"""The example `stages` in one demo: initial state of eight applications, the cause of each state, and the fixes.

The tests run in order; each continues where the previous one ended.
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
TEST = "[`test_guide_block_has_its_documented_effect`](../../tests/scenarios/test_stages.py)"
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
    """Differing fields as `Kind/name /pointer`, each with its cause."""
    items = json.loads(shown.argosy("app", "diff", name, "-o", "json", code=1))["items"]
    return {
        f"{item['kind']}/{item['name']} {field['path']}": field["cause"] for item in items for field in item["fields"]
    }


@pytest.mark.tier("all")
def test_initially_three_of_eight_applications_are_synced_and_two_have_errors(shown: Demo) -> None:
    assert {name: read_app_state(app) for name, app in shown.apps().items()} == FOUND
    states = list(FOUND.values())
    assert sum(sync == "Synced" for sync, _, _ in states) / len(states) == 0.375
    assert "8 applications, all healthy, and 3 of them synced" in shown.printed


@pytest.mark.tier("all")
def test_only_gateway_without_ignore_rule_drifts_and_operator_is_the_cause(shown: Demo) -> None:
    causes = fields(shown, "stage00-datasciencecluster")
    assert set(causes) == {
        "Gateway/knative-local-gateway /spec/selector/knative",
        "Gateway/knative-local-gateway /spec/servers/0/hosts",
    }
    assert {(cause["kind"], cause["manager"]) for cause in causes.values()} == {
        ("OtherController", "opendatahub-operator")
    }


@pytest.mark.tier("all")
def test_only_route_host_and_tls_drift_and_webhook_is_the_cause(shown: Demo) -> None:
    causes = fields(shown, "stage00-minio")
    paths = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy")
    assert set(causes) == {f"Route/minio-{name} {path}" for name in ("api", "console") for path in paths}
    assert {cause["kind"] for cause in causes.values()} == {"Webhook"}


@pytest.mark.tier("all")
def test_namespace_of_two_applications_causes_shared_resource_warning(shown: Demo) -> None:
    apps = "applications openshift-gitops/stage01-model-registry and stage01-model-serving"
    shared = f"Namespace/private-ai-demo is part of {apps}"
    assert condition(shown, "stage01-model-registry") == shared


@pytest.mark.tier("all")
def test_file_missing_in_branch_is_comparison_error_with_file_and_line(shown: Demo) -> None:
    app = shown.apps()["stage01-model-serving"]
    assert app["spec"]["source"]["targetRevision"] == "stage1-complete"
    where = "gitops/stage01/model-serving/kustomization.yaml:7"
    missing = f"{where}: serving/vllm/pvc-mistral-24b.yaml does not exist"
    assert missing in condition(shown, "stage01-model-serving")
    assert "mistral-24b" in shown.kubectl("get", "isvc", "-n", "private-ai-demo")  # the running model is kept


@pytest.mark.tier("all")
def test_immutable_selector_change_is_sync_error_traced_to_kustomization(shown: Demo) -> None:
    app = shown.apps()["stage02-model-alignment"]
    assert app["spec"]["source"]["targetRevision"] == "feature/stage2-implementation"
    assert "field is immutable" in condition(shown, "stage02-model-alignment")
    causes = fields(shown, "stage02-model-alignment")
    leaked = causes["Deployment/llama-stack-playground /spec/selector/matchLabels/stage"]
    assert (leaked["kind"], leaked["file"]) == ("Immutable", "gitops/stage02/model-alignment/kustomization.yaml")
    scaled = causes["DoclingServe/docling /spec/replicas"]
    assert (scaled["kind"], scaled["manager"]) == ("OtherController", "docling-operator")


@pytest.mark.tier("all")
def test_root_application_drifts_only_in_self_heal_set_by_kubectl_edit(shown: Demo) -> None:
    [(path, cause)] = fields(shown, "private-ai-demo-root").items()
    assert path == "Application/stage00-gpu-infrastructure /spec/syncPolicy/automated/selfHeal"
    assert cause["manager"] == "kubectl-edit" and "by hand" in cause["text"]


@pytest.mark.tier("all")
def test_doctor_reports_rule_cause_and_remedy_per_application_and_score(shown: Demo) -> None:
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
def test_demo_break_is_refused_for_example_without_failure_drills(shown: Demo) -> None:
    stderr = shown.argosy_said("demo", "break", "model", code=2)
    assert "the example stages has no failure drills" in stderr


@pytest.mark.tier("all")
def test_main_branch_of_demo_repository_equals_example_folder(shown: Demo, tmp_path: Path) -> None:
    shown.git("clone", "-q", shown.where["repository"], str(tmp_path / "work"))
    work, ours = tmp_path / "work" / "gitops", ROOT / "examples" / "stages" / "gitops"
    cloned = {path.relative_to(work): path.read_bytes() for path in work.rglob("*.yaml")}
    assert cloned == {path.relative_to(ours): path.read_bytes() for path in ours.rglob("*.yaml")}
    branches = shown.git("-C", str(tmp_path / "work"), "branch", "-r", "--format=%(refname:short)").split()
    assert {"origin/main", "origin/stage1-complete", "origin/feature/stage2-implementation"} <= set(branches)


# -- the fixes: run the guide, block by block -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(shown: Demo) -> Reader:
    guide_reader = Reader(shown)
    guide_reader.places[PAGE] = guide_reader.home
    return guide_reader


@pytest.mark.tier("all")
@pytest.mark.parametrize("block", ALIGNING_BLOCKS, ids=lambda guide_block: guide_block.id)
def test_guide_block_has_its_documented_effect(reader: Reader, block: Block) -> None:
    typed = reader.type(PAGE, text_of(block, ALIGNING_BLOCKS, blocks_of(PAGE)))
    typed.checked(block.shows, block.fails)
    if block.then:
        assert reader.others(PAGE, f"come_true {shlex.quote(block.then)}").failed == [], typed.out


def test_every_guide_block_is_listed_and_has_a_row_in_scenarios_page() -> None:
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
def test_after_the_guide_all_eight_applications_are_synced_and_healthy(shown: Demo) -> None:
    after = {name: read_app_state(app) for name, app in shown.apps().items()}
    good = dict.fromkeys(FOUND, ("Synced", "Healthy", ()))
    assert after == good | {"stage01-model-registry": ("Synced", "Healthy", ("SharedResourceWarning",))}
    refs = {app["spec"]["source"]["targetRevision"] for app in shown.apps().values()}
    assert refs == {"main"}


@pytest.mark.tier("all")
def test_after_the_guide_fields_written_by_operators_remain(shown: Demo) -> None:
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
def test_align_figures_include_ninth_application_with_comparison_error(shown: Demo, tmp_path: Path) -> None:
    (tmp_path / "ninth.yaml").write_text(NINTH)
    shown.kubectl("apply", "-f", str(tmp_path / "ninth.yaml"))
    shown.until(lambda: shown.words("stage03-evaluation")[0] == "Unknown")
    figures = json.loads(shown.argosy("align", "--all", "-o", "json", code=1))["before"]
    assert (figures["applications"], figures["synced"], figures["syncedPercent"]) == (9, 8, 88.9)
    assert figures["errors"] == ["ComparisonError"]
