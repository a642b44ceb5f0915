"""`argosy setup argocd|apps|credentials`, and the setup scripts that call these commands."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from argosy.kube.schema.bundled_crds import load_definition
from support.clusters import ARGOSY, Sandbox, argosy, environment
from support.deadlines import HANG_SECONDS
from support.setup_objects import GITOPS, NAMES, application, binding, delivery, get, patch, setup

# -- the commands behind the scripts ---------------------------------------------------------------------------------


def write_applications(folder: Path, name: str, namespace: str = GITOPS) -> Path:
    folder.mkdir(exist_ok=True)
    for tier in NAMES:
        manifest = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": f"{name}-{tier}", "namespace": namespace},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.com/r.git", "targetRevision": "main", "path": tier},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": f"{name}-{tier}"},
                "syncPolicy": {"automated": {"prune": True}},
            },
        }
        (folder / f"{tier}-application.yaml").write_text(json.dumps(manifest))
    return folder


def test_argocd_creates_namespaces_and_bindings_and_hides_the_password(openshift: Sandbox, home: Path) -> None:
    apps = write_applications(home / "apps", "ready")
    namespace = {"metadata": {"name": "ready-staging", "labels": {"team": "ml"}}}
    assert openshift.request("POST", "/api/v1/namespaces", namespace).code == 201
    first = setup(openshift, "argocd", "--apps", apps)
    assert first.code == 0, first.err
    assert "✓ Subscription openshift-gitops-operator found in namespace openshift-gitops-operator" in first.out
    assert "✓ Namespace ready-dev created" in first.out
    assert "✓ Namespace ready-staging is already there; its labels were refreshed" in first.out
    assert "✓ RoleBinding argocd-admin created in ready-production" in first.out
    labels = get(openshift, "/api/v1/namespaces/ready-staging")["metadata"]["labels"]
    assert labels["opendatahub.io/dashboard"] == "true" and labels["team"] == "ml"
    host = get(openshift, f"/apis/route.openshift.io/v1/namespaces/{GITOPS}/routes/openshift-gitops-server")
    assert f"URL:      https://{host['spec']['host']}" in first.out and "Username: admin" in first.out
    secret = get(openshift, f"/api/v1/namespaces/{GITOPS}/secrets/openshift-gitops-cluster")
    password = base64.b64decode(secret["data"]["admin.password"]).decode()
    assert password not in first.out + first.err
    assert "Password: kubectl -n openshift-gitops get secret openshift-gitops-cluster" in first.out
    second = setup(openshift, "argocd", "--apps", apps, "--show-password")
    assert second.code == 0 and f"Password: {password}" in second.out
    assert second.out.count("is already there") == 6 and second.out.count("skipped") == 3
    assert "created" not in second.out


@pytest.mark.tier("all")
def test_argocd_without_the_operator_exits_1(plain: Sandbox, home: Path) -> None:
    done = setup(plain, "argocd", "--apps", write_applications(home / "apps", "no"))
    assert done.code == 1 and "the OpenShift GitOps operator is not installed" in done.err
    assert get(plain, "/api/v1/namespaces/no-dev") is None


@pytest.mark.tier("all")
def test_argocd_waits_until_the_server_is_available(running: Sandbox, home: Path) -> None:
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert running.request("POST", kinds, load_definition("subscriptions.operators.coreos.com")).code == 201
    assert running.request("POST", "/api/v1/namespaces", {"metadata": {"name": "openshift-operators"}}).code == 201
    subscription = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "openshift-gitops-operator"},
        "spec": {"name": "openshift-gitops-operator", "source": "s", "sourceNamespace": "n"},
    }
    path = "/apis/operators.coreos.com/v1alpha1/namespaces/openshift-operators/subscriptions"
    while (answer := running.request("POST", path, subscription)).code == 404:
        pass  # the kind is not served yet
    assert answer.code == 201, answer.body
    apps = write_applications(home / "apps", "late")
    late = setup(running, "argocd", "--apps", apps, "--timeout", "0.5")
    assert late.code == 4 and "namespace openshift-gitops did not appear within 0.5 s" in late.err
    command = [str(ARGOSY), "setup", "argocd", "--apps", str(apps), "--data-dir", str(running.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(home)) as waiting:
        assert waiting.stdout is not None
        for line in waiting.stdout:
            if line.startswith("Step 3: Waiting"):
                break
        assert running.request("POST", "/api/v1/namespaces", {"metadata": {"name": GITOPS}}).code == 201
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
        deployments = f"/apis/apps/v1/namespaces/{GITOPS}/deployments"
        server = {"metadata": {"name": "openshift-gitops-server"}, "spec": spec}
        assert running.request("POST", deployments, server).code == 201
        condition = {"type": "Available", "status": "True", "reason": "r", "message": "m"}
        patch(running, f"{deployments}/openshift-gitops-server/status", {"status": {"conditions": [condition]}})
        rest = waiting.stdout.read()
    assert waiting.returncode == 0 and "✓ Namespace late-dev created" in rest


@pytest.mark.tier("all")
@pytest.mark.parametrize("words", [("argocd", "--apps"), ("apps",)])
def test_missing_login_exits_5_and_suggests_oc_login(openshift: Sandbox, home: Path, words: tuple[str, ...]) -> None:
    kubeconfig = home / "nobody.kubeconfig"
    kubeconfig.write_text(openshift.kubeconfig.read_text().replace(openshift.endpoint.token, "of-nobody"))
    apps = write_applications(home / "apps", "nobody")
    done = argosy("setup", *words, apps, "--kubeconfig", kubeconfig, home=home)
    assert done.code == 5 and "you are not logged in" in done.err and "oc login" in done.err


def test_apps_reports_created_updated_or_unchanged_and_lists_them(openshift: Sandbox, home: Path) -> None:
    apps = write_applications(home / "apps", "listed")
    first = setup(openshift, "apps", apps)
    assert first.code == 0, first.err
    assert [f"✓ Application listed-{tier} created" in first.out for tier in NAMES] == [True] * 3
    before = [get(openshift, application(f"listed-{tier}"))["metadata"]["resourceVersion"] for tier in NAMES]
    second = setup(openshift, "apps", apps)
    assert second.out.count("unchanged") == 3
    assert [get(openshift, application(f"listed-{tier}"))["metadata"]["resourceVersion"] for tier in NAMES] == before
    patch(openshift, application("listed-dev"), {"status": {"sync": {"status": "OutOfSync"}}})
    file = apps / "dev-application.yaml"
    file.write_text(file.read_text().replace('"syncPolicy": {"automated": {"prune": true}}', '"syncPolicy": {}'))
    third = setup(openshift, "apps", apps)
    assert "✓ Application listed-dev updated" in third.out and third.out.count("unchanged") == 2
    assert "automated" not in get(openshift, application("listed-dev"))["spec"]["syncPolicy"]
    assert re.search(r"^NAME +SYNC STATUS +HEALTH STATUS\nlisted-dev +OutOfSync +-\nlisted-staging ", third.out, re.M)
    assert re.search(r"^URL: https://openshift-gitops-server", third.out, re.MULTILINE)


@pytest.mark.tier("all")
def test_apps_warns_about_a_placeholder_repo_url(openshift: Sandbox, home: Path) -> None:
    apps = write_applications(home / "apps", "untouched")
    assert "repoURL is still" not in setup(openshift, "apps", apps).out
    file = apps / "staging-application.yaml"
    file.write_text(
        file.read_text().replace("https://example.com/r.git", "https://github.com/your-org/llmops-demo.git")
    )
    result = setup(openshift, "apps", apps)
    assert result.code == 0
    assert "⚠ untouched-staging: repoURL is still the placeholder https://github.com/your-org/" in result.out


@pytest.mark.tier("all")
def test_destroy_keeps_role_bindings_of_applications_applied_from_files(openshift: Sandbox, home: Path) -> None:
    apps = write_applications(home / "apps", "kept")
    assert setup(openshift, "argocd", "--apps", apps).code == 0
    assert setup(openshift, "apps", apps).code == 0
    result = setup(openshift, "destroy", "-y", "-f", delivery(home, "kept"))
    assert result.code == 0, result.err
    assert "Application kept-dev deploys there" in result.out + result.err
    assert get(openshift, application("kept-dev"))
    assert get(openshift, binding("kept-dev"))


@pytest.mark.tier("all")
@pytest.mark.parametrize("missing", [f"{name}-application.yaml" for name in NAMES])
def test_apps_names_the_file_that_is_missing_and_applies_none(openshift: Sandbox, home: Path, missing: str) -> None:
    apps = write_applications(home / "apps", "partly")
    (apps / missing).unlink()
    done = setup(openshift, "apps", apps)
    assert done.code == 1 and missing in done.err and "Application" not in done.out
    assert all(get(openshift, application(f"partly-{tier}")) is None for tier in NAMES)


@pytest.mark.tier("all")
def test_apps_refuses_unknown_namespaces_and_other_kinds(openshift: Sandbox, home: Path) -> None:
    done = setup(openshift, "apps", write_applications(home / "apps", "x", namespace="nowhere"))
    assert done.code == 1 and "namespace nowhere does not exist" in done.err
    (home / "apps/dev-application.yaml").write_text('{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}')
    done = setup(openshift, "apps", home / "apps")
    assert done.code == 2 and "contains Secret x, not an Application" in done.err


@pytest.mark.tier("all")
def test_gitea_credentials_follow_the_gitea_status_and_are_never_printed(openshift: Sandbox) -> None:
    gitea = "/apis/pfe.rhpds.com/v1/namespaces/gitea/gitea"
    secrets = "/api/v1/namespaces/default/secrets"
    words = ("credentials", "gitea", "--namespace", "default")
    skipped = setup(openshift, *words)
    assert skipped.code == 0 and "skipped: there is no Gitea gitea-with-admin in namespace gitea" in skipped.out
    assert openshift.request("POST", "/api/v1/namespaces", {"metadata": {"name": "gitea"}}).code == 201
    manifest = {
        "apiVersion": "pfe.rhpds.com/v1",
        "kind": "Gitea",
        "metadata": {"name": "gitea-with-admin"},
        "spec": {"giteaAdminUser": "opentlc-mgr"},
    }
    assert openshift.request("POST", gitea, manifest).code == 201
    early = setup(openshift, *words)
    assert early.code == 0 and "has no status.adminPassword yet" in early.out
    printed = early.out + early.err
    first, new = "first-of-a-test", "new-of-a-test"
    for password, word in ((first, "created"), (first, "unchanged"), (new, "updated")):
        where = f"{gitea}/gitea-with-admin"
        answer = openshift.request(
            "PATCH", f"{where}/status", {"status": {"adminPassword": password}}, "application/merge-patch+json"
        )
        if answer.code == 404:  # the CRD has no status subresource
            patch(openshift, where, {"status": {"adminPassword": password}})
        done = setup(openshift, *words)
        assert done.code == 0 and done.out.count(f" {word}\n") == 2, done.out
        printed += done.out + done.err
        for name in ("gitea-credentials-source", "git-credentials-source"):
            data = get(openshift, f"{secrets}/{name}")["data"]
            assert base64.b64decode(data["username"]) == b"opentlc-mgr"
            assert base64.b64decode(data["password"]).decode() == password
    assert get(openshift, f"{secrets}/git-credentials-source")["type"] == "kubernetes.io/basic-auth"
    assert "of-a-test" not in printed


SCRIPTS = Path(__file__).parents[2] / "llmops-via-argocd" / "setup_scripts"


def script(where: Sandbox, name: str, *flags: str) -> str:
    env = {**where.environment, "ARGOSY": str(ARGOSY), "KUBECONFIG": str(where.kubeconfig)}
    command = ["bash", str(SCRIPTS / name), *flags]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.tier("all")
def test_setup_scripts_apply_three_applications_and_are_repeatable(openshift: Sandbox) -> None:
    assert "✓ RoleBinding argocd-admin created in llmops-prod" in script(openshift, "setup-argocd.sh")
    applied = script(openshift, "apply-argocd-apps.sh")
    assert "✓ Application llmops-production created" in applied
    table = r"^NAME +SYNC STATUS +HEALTH STATUS\nllmops-dev .*\nllmops-staging .*\nllmops-production "
    assert re.search(table, applied, re.MULTILINE)
    assert script(openshift, "setup-argocd.sh").count("skipped") == 3
    assert script(openshift, "apply-argocd-apps.sh").count("unchanged") == 3
