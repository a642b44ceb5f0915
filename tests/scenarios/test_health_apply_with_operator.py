"""`argosy health apply`, `verify` and `export` with an ArgoCD resource and a stand-in of its operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from support.clusters import Sandbox, argosy, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.gitops_operator import (
    APPLICATIONS,
    GITOPS,
    MODEL_KEY,
    PVC,
    REFRESH,
    RESOURCE,
    application,
    argo_cd_playing,
    as_lines,
    create,
    data,
    entries,
    get,
    health,
    in_order,
    patch,
    ready,
    settings_of,
    version,
    with_environments,
    with_model,
    without_checks,
)
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.usefixtures("needs_kubectl")
RULE = "=" * 42
STRICT = [check.entry for check in build_requested_checks(DEFAULT_KINDS)]
QUICK = ("--settle", "0")
NEVER = f"{5 * HANG_SECONDS:g}"  # longer than any command may run here


@pytest.fixture(scope="module")
def gitops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("health") / "data", "--port", "0", "--addons", "argocd_operator") as started:
        ready(started)
        yield started


@pytest.fixture
def openshift(gitops: Sandbox) -> Sandbox:
    without_checks(gitops)
    return gitops


# -- apply


def test_first_apply_runs_all_steps_and_the_checks_reach_argocd_cm(openshift: Sandbox) -> None:
    done = health(openshift, "apply", *QUICK)
    assert done.code == 0, done.err
    in_order(
        done.out,
        RULE,
        "Applying Custom Health Checks to ArgoCD CR",
        RULE,
        "✓ ArgoCD CR found",
        "✓ No existing resourceHealthChecks found",
        "✓ Health check found in ConfigMap",
        RULE,
        "Current Application Status:",
        RULE,
        RULE,
        "Done!",
        RULE,
    )
    assert [line.split(":")[0] for line in as_lines(done.out) if line.startswith("Step ")] == [
        f"Step {number}" for number in range(1, 8)
    ]
    assert "✓ Health checks applied" in done.out
    assert "argosy health verify" in done.out and "-w" in done.out
    assert entries(openshift) == STRICT
    assert data(openshift)[MODEL_KEY] == STRICT[0]["check"]
    assert done.err == f"target: the sandbox in {openshift.folder} ({openshift.address})\n"


@pytest.mark.tier("all")
def test_apply_explains_why_checks_go_into_the_argocd_resource(openshift: Sandbox) -> None:
    (why,) = [line for line in as_lines(health(openshift, "apply", *QUICK).out) if "removes other keys" in line]
    assert "the operator generates argocd-cm from it" in why and "spec.resourceHealthChecks" in why


def test_apply_keeps_the_entry_of_another_team_first(openshift: Sandbox) -> None:
    patch(openshift, RESOURCE, {"spec": {"resourceHealthChecks": [PVC]}})
    first = health(openshift, "apply", *QUICK, input="y\n")
    in_order(
        first.out,
        "✓ resourceHealthChecks found, but no KServe health checks detected",
        "  PersistentVolumeClaim: not requested, kept unchanged",
    )
    assert "Do you want to continue? (y/n)" in first.out
    second = health(openshift, "apply", "--force", "--profile", "lenient", *QUICK)
    assert (first.code, second.code) == (0, 0)
    assert "✓ Health checks applied" in first.out and "✓ Health checks updated" in second.out
    assert entries(openshift)[0] == PVC
    assert [entry["kind"] for entry in entries(openshift)] == [
        "PersistentVolumeClaim",
        "InferenceService",
        "ServingRuntime",
    ]
    assert data(openshift)["resource.customizations.health.PersistentVolumeClaim"] == PVC["check"]


@pytest.mark.tier("all")
def test_second_apply_writes_neither_object(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    ready(openshift)
    before = version(openshift, RESOURCE), version(openshift, settings_of())
    done = health(openshift, "apply", "--force", *QUICK)
    assert done.code == 0
    assert "✓ Health checks are already up to date" in done.out
    assert (version(openshift, RESOURCE), version(openshift, settings_of())) == before


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("n\n", id="n"),
        pytest.param("yes\n", id="yes", marks=IN_TEST_ALL),
        pytest.param("N", id="N", marks=IN_TEST_ALL),
        pytest.param("\n", id="return", marks=IN_TEST_ALL),
    ],
)
def test_apply_aborts_on_any_answer_but_y(openshift: Sandbox, answer: str) -> None:
    health(openshift, "apply", "--profile", "lenient", *QUICK)
    before = version(openshift, RESOURCE)
    done = health(openshift, "apply", input=answer)
    assert done.code == 0
    assert "⚠ Health checks for KServe already exist in ArgoCD CR" in done.out
    assert "Do you want to continue? (y/n)" in done.out
    assert as_lines(done.out)[-1] == "Aborted by user."
    assert version(openshift, RESOURCE) == before


@pytest.mark.tier("all")
def test_apply_without_an_answer_exits_2_and_writes_nothing(openshift: Sandbox) -> None:
    health(openshift, "apply", "--profile", "lenient", *QUICK)
    before = version(openshift, RESOURCE)
    done = health(openshift, "apply", input="")
    assert done.code == 2 and "Aborted" not in done.out
    assert "no terminal for the prompt" in done.err and "--force" in done.err
    assert version(openshift, RESOURCE) == before


@pytest.mark.tier("all")
@pytest.mark.parametrize("answer", ["y\n", pytest.param("Y", marks=IN_TEST_ALL)])
def test_apply_continues_on_y(openshift: Sandbox, answer: str) -> None:
    health(openshift, "apply", "--profile", "lenient", *QUICK)
    done = health(openshift, "apply", *QUICK, input=answer)
    assert done.code == 0 and "✓ Health checks updated" in done.out
    assert entries(openshift) == STRICT


@pytest.mark.tier("all")
def test_apply_force_is_printed_and_does_not_prompt(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    done = health(openshift, "apply", "-f", *QUICK)
    assert done.code == 0 and "Force detected" in done.out and "(y/n)" not in done.out


@pytest.mark.tier("all")
def test_missing_argocd_resource_exits_1_with_one_sentence(openshift: Sandbox) -> None:
    before = version(openshift, RESOURCE)
    for part in ("apply", "verify"):
        done = health(openshift, part, "--name", "other", "--namespace", "elsewhere")
        assert done.code == 1
        assert "Error: ArgoCD CR 'other' not found in namespace 'elsewhere'" in as_lines(done.err)
        assert "Traceback" not in done.err
    assert version(openshift, RESOURCE) == before


def test_dry_run_prints_changes_and_writes_nothing(openshift: Sandbox) -> None:
    patch(openshift, RESOURCE, {"spec": {"resourceHealthChecks": [PVC, {**STRICT[0], "check": "return {}\n"}]}})
    before = version(openshift, RESOURCE)
    done = health(openshift, "apply", "--dry-run")
    assert done.code == 0 and "Nothing was written." in done.out
    assert "serving.kserve.io/InferenceService (profile strict): replaces another script" in done.out
    assert "serving.kserve.io/ServingRuntime: new" in done.out
    assert "PersistentVolumeClaim: not requested, kept unchanged" in done.out
    assert version(openshift, RESOURCE) == before


@pytest.mark.tier("all")
def test_apply_names_the_profile_that_it_replaces(openshift: Sandbox) -> None:
    health(openshift, "apply", "--profile", "lenient", *QUICK)
    done = health(openshift, "apply", "--force", *QUICK)
    assert "serving.kserve.io/InferenceService (profile strict): replaces profile lenient" in done.out


@pytest.mark.tier("all")
def test_two_profiles_for_one_kind_are_refused(openshift: Sandbox) -> None:
    done = health(openshift, "apply", "--profile", "strict", "--profile", "lenient")
    assert done.code == 2 and "strict and lenient cannot be used together" in done.err
    assert entries(openshift) == []


@pytest.mark.tier("all")
def test_kinds_flag_selects_other_kinds(openshift: Sandbox) -> None:
    done = health(openshift, "apply", "--kinds", "ClusterServingRuntime,TrainedModel,nvj", *QUICK)
    assert done.code == 0, done.err
    assert [entry["kind"] for entry in entries(openshift)] == [
        "ClusterServingRuntime",
        "TrainedModel",
        "NotebookValidationJob",
    ]


@pytest.mark.tier("all")
def test_printed_verify_command_verifies_what_was_applied(openshift: Sandbox) -> None:
    patch(openshift, RESOURCE, {"spec": {"resourceHealthChecks": [{**STRICT[0], "check": "return {}"}]}})
    done = health(openshift, "apply", "--force", "--kinds", "pvc,nvj", *QUICK)
    assert "✓ resourceHealthChecks found, but no health checks for these kinds detected" in as_lines(done.out)
    (line,) = [line for line in as_lines(done.out) if "argosy health verify" in line]
    assert line.endswith("--kinds core/PersistentVolumeClaim,NotebookValidationJob.mlops.mlops.dev")
    verified = health(openshift, *line.partition("argosy health ")[2].split())
    assert verified.code == 0, verified.out
    assert verified.err == f"target: the sandbox in {openshift.folder} ({openshift.address})\n"


@pytest.mark.tier("all")
def test_concurrent_applies_keep_all_checks(openshift: Sandbox) -> None:
    kinds = ("isvc", "servingruntime", "trainedmodel", "clusterservingruntime")
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda kind: health(openshift, "apply", "--force", "--kinds", kind, *QUICK), kinds))
    assert [done.code for done in runs] == [0] * len(kinds), [done.err for done in runs]
    assert len(entries(openshift)) == len(kinds)


@pytest.mark.tier("all")
def test_apply_refuses_if_extra_config_overrides_the_key(openshift: Sandbox) -> None:
    patch(openshift, RESOURCE, {"spec": {"extraConfig": {MODEL_KEY: "return {}"}}})
    done = health(openshift, "apply", *QUICK)
    assert done.code == 1
    assert f"⚠ spec.extraConfig holds {MODEL_KEY}, which overrides spec.resourceHealthChecks" in done.out
    assert as_lines(done.out)[-2:] == [
        "✗ Nothing was written, because these checks would have no effect.",
        f"  Remove {MODEL_KEY} from spec.extraConfig of ArgoCD {GITOPS}, then run the command again",
    ]
    assert "annotate" not in done.out and entries(openshift) == []
    patch(openshift, RESOURCE, {"spec": {"extraConfig": {MODEL_KEY: STRICT[0]["check"]}}})
    assert health(openshift, "apply", *QUICK).code == 0, "the same script there does no harm"


@pytest.mark.tier("all")
def test_apply_warns_if_an_application_syncs_the_argocd_resource(openshift: Sandbox) -> None:
    tracking = "argocd.argoproj.io/tracking-id"
    patch(openshift, RESOURCE, {"metadata": {"annotations": {tracking: f"cluster:argoproj.io/ArgoCD:{GITOPS}/x"}}})
    done = health(openshift, "apply", *QUICK)
    patch(openshift, RESOURCE, {"metadata": {"annotations": {tracking: None}}})
    assert done.code == 0
    in_order(
        done.out,
        "⚠ Application cluster syncs this object from Git and may revert the checks",
        "  Add the checks to Git as well: argosy health export --as cr",
    )


@pytest.mark.tier("all")
def test_rejected_token_exits_5_with_one_sentence(openshift: Sandbox, home: Path) -> None:
    file = home / "other.kubeconfig"
    file.write_text(openshift.kubeconfig.read_text().replace(openshift.endpoint.token, "of-yesterday"))
    done = argosy("health", "apply", "--kubeconfig", file, home=home)
    assert done.code == 5
    assert [line.partition(":")[0] for line in as_lines(done.err)] == ["target", "argosy", "next"]


@pytest.mark.parametrize("verbs", ["get", "get,list,watch"])
@pytest.mark.tier("all")
def test_apply_needs_only_access_to_the_argocd_resource_and_argocd_cm(home: Path, verbs: str) -> None:
    flags = ("--port", "0", "--rbac", "--addons", "argocd_operator")
    with sandbox(home / "data", *flags) as started:
        ready(started)
        (home / "ada").write_text(argosy("sandbox", "user", "add", "ada", "--data-dir", started.folder, home=home).out)
        words = ("apply", "--kubeconfig", home / "ada", "--namespace", GITOPS, "--name", GITOPS)
        refused = argosy("health", *words, home=home)
        assert refused.code == 5 and "Traceback" not in refused.err
        admin = ("-n", GITOPS, "create")
        for may, kinds, name in (("get,patch", "argocds.argoproj.io", GITOPS), (verbs, "configmaps", "argocd-cm")):
            role = kinds.partition(".")[0]
            rule = (f"--verb={may}", f"--resource={kinds}", f"--resource-name={name}")
            assert kubectl(started.kubeconfig, *admin, "role", role, *rule).code == 0
            assert kubectl(started.kubeconfig, *admin, "rolebinding", role, f"--role={role}", "--user=ada").code == 0
        done = argosy("health", *words, home=home)
        assert done.code == 0, done.out + done.err
        in_order(done.out, "✓ Health check found in ConfigMap", "Done!")
        verified = ("verify", "--kubeconfig", home / "ada", "--namespace", GITOPS, "--name", GITOPS)
        assert argosy("health", *verified, home=home).code == 0


# -- applications


@pytest.mark.tier("all")
def test_apply_refreshes_applications_that_have_or_may_have_these_kinds(openshift: Sandbox) -> None:
    create(openshift, APPLICATIONS, application("with-model", "Synced", "Progressing", INFERENCE_SERVICE))
    create(openshift, APPLICATIONS, application("only-web", "Synced", "Healthy", ("apps", "Deployment")))
    create(openshift, APPLICATIONS, application("unknown", "Unknown", "Unknown"))
    done = health(openshift, "apply", *QUICK)
    assert done.code == 0
    refreshed = {
        app["metadata"]["name"]
        for app in get(openshift, APPLICATIONS)["items"]
        if (app["metadata"].get("annotations") or {}).get(REFRESH) == "hard"
    }
    assert refreshed == {"with-model", "unknown"}
    assert "⚠ Argo CD has not completed every refresh yet" in done.out


@pytest.mark.tier("all")
def test_apply_waits_for_the_refresh_and_shows_the_new_health(openshift: Sandbox) -> None:
    with_environments(openshift, dev="Progressing")
    with argo_cd_playing(openshift):
        done = health(openshift, "apply", "--settle", "20")
    assert done.code == 0 and "✓ Argo CD has refreshed them" in done.out
    table = as_lines(done.out.partition("Current Application Status:")[2])
    assert table[2] == "NAME                SYNC STATUS   HEALTH STATUS"
    assert table[3:6] == [
        "llmops-dev          Synced        Healthy",
        "llmops-staging      Synced        Healthy",
        "llmops-production   OutOfSync     Missing",
    ]


@pytest.mark.tier("all")
def test_apply_without_applications_does_not_wait(openshift: Sandbox) -> None:
    done = health(openshift, "apply", "--settle", NEVER)
    assert done.code == 0
    assert f"No application is in namespace {GITOPS}, or you may not see them: nothing to refresh" in done.out


# -- verify


@pytest.mark.tier("all")
def test_verify_prints_all_steps_if_everything_is_configured(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    with_environments(openshift)
    url = with_model(openshift)
    done = health(openshift, "verify")
    assert done.code == 0, done.err
    in_order(
        done.out,
        RULE,
        "Verifying ArgoCD Health Check Configuration",
        RULE,
        "",
        "Step 1: Checking if health check is in ArgoCD CR...",
        "✓ resourceHealthChecks found in ArgoCD CR",
        "✓ InferenceService health check found in ArgoCD CR",
        "",
        "Step 2: Checking if health check propagated to ConfigMap...",
        "✓ Health check successfully propagated to ConfigMap",
        "",
        "Step 3: Checking ArgoCD application health status...",
        "",
        "NAME                SYNC STATUS   HEALTH STATUS",
        "llmops-dev          Synced        Healthy",
        "llmops-staging      Synced        Healthy",
        "llmops-production   OutOfSync     Missing",
        "",
        "Step 4: Checking InferenceService status...",
        "",
        "Namespace: llmops-dev",
        f"NAME                      URL{' ' * (len(url) - 3)}   READY",
        f"dev-qwen25-05b-instruct   {url}   True",
        "",
        RULE,
        "Verification Complete",
        RULE,
    )
    assert "llmops-prod\n" not in done.out, "a namespace that does not exist is skipped"


@pytest.mark.tier("all")
def test_verify_reports_a_namespace_without_models(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    create(openshift, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                             "metadata": {"name": "llmops-staging"}})  # fmt: skip
    in_order(health(openshift, "verify").out, "Namespace: llmops-staging", "  No InferenceServices found")


@pytest.mark.tier("all")
def test_verify_shows_models_of_all_environments_without_applications(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    namespaces = ("llmops-dev", "llmops-staging", "llmops-prod")
    for namespace in namespaces:
        with_model(openshift, namespace)
    out = health(openshift, "verify").out
    for namespace in namespaces:
        openshift.request("DELETE", f"/api/v1/namespaces/{namespace}")
    assert "  No applications found" in as_lines(out)
    assert [line for line in as_lines(out) if line.startswith("Namespace: ")] == [
        f"Namespace: {namespace}" for namespace in namespaces
    ]
    assert out.count("dev-qwen25-05b-instruct ") == 3


@pytest.mark.tier("all")
def test_verify_without_health_checks_exits_1_with_the_command_to_run(openshift: Sandbox) -> None:
    done = health(openshift, "verify")
    assert done.code == 1
    in_order(done.out, "✗ resourceHealthChecks NOT found in ArgoCD CR", "  Run: argosy health apply")
    assert "Step 2" not in done.out


@pytest.mark.tier("all")
def test_verify_without_a_model_check_exits_1(openshift: Sandbox) -> None:
    patch(openshift, RESOURCE, {"spec": {"resourceHealthChecks": [PVC]}})
    done = health(openshift, "verify")
    assert done.code == 1
    in_order(
        done.out,
        "✓ resourceHealthChecks found in ArgoCD CR",
        "✗ InferenceService health check NOT found in ArgoCD CR",
    )


@pytest.mark.tier("all")
def test_verify_finds_an_entry_at_the_end_of_a_long_list(openshift: Sandbox) -> None:
    long = [{"group": f"g{number}.example.com", "kind": "Thing", "check": "-- x\n" * 30} for number in range(20)]
    patch(openshift, RESOURCE, {"spec": {"resourceHealthChecks": long}})
    health(openshift, "apply", "--force", *QUICK)
    assert health(openshift, "verify").code == 0


@pytest.mark.tier("all")
def test_operator_removes_a_manual_key_and_verify_still_passes(openshift: Sandbox) -> None:
    health(openshift, "apply", *QUICK)
    patch(openshift, settings_of(), {"data": {"resource.customizations.health.PersistentVolumeClaim": "return {}"}})
    wait_until(lambda: "resource.customizations.health.PersistentVolumeClaim" not in data(openshift))
    assert health(openshift, "verify").code == 0


@pytest.mark.tier("all")
def test_verify_supports_json_output(openshift: Sandbox) -> None:
    health(openshift, "apply", "--profile", "lenient", *QUICK)
    verification = json.loads(health(openshift, "verify", "-o", "json", "--kinds", "isvc,trainedmodel").out)
    assert (verification["apiVersion"], verification["kind"], verification["ok"]) == (
        "cli.argosy.dev/v1",
        "HealthVerification",
        False,
    )
    assert verification["argocd"] == {"namespace": GITOPS, "name": GITOPS}
    model, trained = verification["checks"]
    assert (model["configured"], model["propagated"], model["profile"]) == (True, True, "lenient")
    assert (trained["configured"], trained["propagated"]) == (False, False)


# -- export


def test_kubectl_applies_the_exported_resource_and_the_operator_acts(openshift: Sandbox) -> None:
    text = health(openshift, "export", "--as", "cr", "--profile", "argocd").out
    done = kubectl(openshift.kubeconfig, "apply", "-f", "-", input=text)
    assert done.code == 0, done.err
    script = build_requested_checks([INFERENCE_SERVICE], "argocd")[0].script
    wait_until(lambda: data(openshift).get(MODEL_KEY) == script)
    assert health(openshift, "verify").code == 0
