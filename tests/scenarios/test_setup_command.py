"""`argosy setup plan|apply|status|destroy` against a sandbox with simulated OpenShift GitOps or plain Argo CD."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.clusters import ARGOSY, Sandbox, argosy, environment, sandbox
from support.deadlines import HANG_SECONDS
from support.setup_objects import (
    FOREIGN,
    GITOPS,
    PLAIN,
    RBAC,
    application,
    argocd,
    binding,
    delivery,
    get,
    patch,
    setup,
    versions,
)

# -- plan, apply, status, destroy ------------------------------------------------------------------------------------


def test_plan_lists_changes_and_writes_nothing(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "planned")
    done = setup(openshift, "plan", "-f", file)
    assert done.code == 0, done.err
    assert "ArgoCD/openshift-gitops in openshift-gitops (managed by an operator" in done.out
    assert re.search(r"dev +planned-dev +auto +\+ namespace planned-dev  \+ rolebinding argocd-admin", done.out)
    plan = json.loads(setup(openshift, "plan", "-f", file, "-o", "json").out)
    assert (plan["kind"], plan["create"], plan["delete"]) == ("SetupPlan", 9, 0)
    assert plan["update"] + plan["unchanged"] == 2, "settings of Argo CD, which another delivery may have set"
    verbs = Counter(change["verb"] for change in plan["changes"])
    assert verbs == Counter(create=9, update=plan["update"], unchanged=plan["unchanged"])
    assert f"Plan: 9 to add, {plan['update']} to change, 0 to remove." in done.out
    assert "! production" not in done.out, "-prod is the usual shortening"
    assert get(openshift, "/api/v1/namespaces/planned-dev") is None
    assert setup(openshift, "apply", "-f", file, "--dry-run").code == 0
    assert get(openshift, "/api/v1/namespaces/planned-dev") is None


def test_second_apply_changes_nothing(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "twice")
    first = setup(openshift, "apply", "-f", file, "-y")
    assert first.code == 0, first.err
    assert "target: the sandbox in " in first.err and "created   application twice-dev in openshift-gitops" in first.out
    namespace = get(openshift, "/api/v1/namespaces/twice-prod")["metadata"]
    assert namespace["labels"]["opendatahub.io/dashboard"] == "true"
    assert namespace["annotations"]["openshift.io/display-name"] == "twice-prod"
    (subject,) = get(openshift, binding("twice-dev"))["subjects"]
    assert subject["name"] == "openshift-gitops-argocd-application-controller" and subject["namespace"] == GITOPS
    dev, staging = (get(openshift, application(f"twice-{end}"))["spec"] for end in ("dev", "staging"))
    assert dev["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True, "allowEmpty": False}
    assert "automated" not in staging["syncPolicy"]
    before = versions(openshift, "twice")
    second = setup(openshift, "apply", "-f", file)
    assert second.code == 0 and "Plan: nothing to do." in second.out, second.err
    lines = second.out.partition("Plan: ")[2].splitlines()[1:]
    assert len(lines) == 11 and all(line.startswith("unchanged ") for line in lines)
    assert versions(openshift, "twice") == before


@pytest.mark.tier("all")
def test_apply_keeps_foreign_argo_cd_settings_and_adds_its_own(openshift: Sandbox, home: Path) -> None:
    live = get(openshift, argocd())["spec"]
    checks = [*(live.get("resourceHealthChecks") or ()), FOREIGN]
    policy = "g, my-own-group, role:admin\n" + (live["rbac"].get("policy") or "")
    patch(openshift, argocd(), {"spec": {"resourceHealthChecks": checks, "rbac": {"policy": policy}}})
    assert setup(openshift, "apply", "-f", delivery(home, "merged"), "-y").code == 0
    spec = get(openshift, argocd())["spec"]
    assert FOREIGN in spec["resourceHealthChecks"]
    assert spec["rbac"]["policy"].startswith("g, my-own-group, role:admin\n")
    data = get(openshift, f"/api/v1/namespaces/{GITOPS}/configmaps/argocd-cm")["data"]
    assert "resource.customizations.health.serving.kserve.io_InferenceService" in data
    lines = get(openshift, f"/api/v1/namespaces/{GITOPS}/configmaps/argocd-rbac-cm")["data"]["policy.csv"].splitlines()
    assert "p, role:merged-developer, applications, action/*, default/merged-*, allow" in lines
    assert lines.count("g, cluster-admins, role:admin") == 1, "somebody's line says it already"


def test_apply_without_terminal_and_without_yes_flag_writes_nothing(openshift: Sandbox, home: Path) -> None:
    done = setup(openshift, "apply", "-f", delivery(home, "unasked"))
    assert done.code == 2 and "add -y" in done.err
    assert get(openshift, "/api/v1/namespaces/unasked-dev") is None


@pytest.mark.tier("all")
@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("y\n", 0)])
def test_apply_on_a_terminal_asks_for_confirmation(openshift: Sandbox, home: Path, answer: str, code: int) -> None:
    name = f"asked-{answer.strip()}"
    file = delivery(home, name)
    ours, terminal = pty.openpty()
    os.write(ours, answer.encode())
    command = [str(ARGOSY), "setup", "apply", "-f", str(file), "--data-dir", str(openshift.folder)]
    done = subprocess.run(
        command, stdin=terminal, capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
        env=environment(openshift.folder.parent),
    )  # fmt: skip
    os.close(ours)
    os.close(terminal)
    assert done.returncode == code and "Do it? [y/N]" in done.stderr
    assert (get(openshift, f"/api/v1/namespaces/{name}-dev") is None) == (code == 2)


@pytest.mark.tier("all")
def test_status_reports_missing_and_differing_objects(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "told")
    before = setup(openshift, "status", "-f", file)
    assert before.code == 1 and "namespace told-dev is missing" in before.out
    assert setup(openshift, "apply", "-f", file, "-y").code == 0
    status = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
    patch(openshift, application("told-dev"), {"status": status})
    after = setup(openshift, "status", "-f", file)
    assert after.code == 0, after.out
    assert re.search(r"^dev +told-dev +told-dev +Synced +Healthy +complete$", after.out, re.MULTILINE)
    patch(openshift, application("told-dev"), {"spec": {"source": {"targetRevision": "other"}}})
    result = setup(openshift, "status", "-f", file, "-o", "json")
    assert result.code == 1
    report = json.loads(result.out)
    assert report["complete"] is False and report["environments"][0]["missing"] == ["application told-dev differs"]


def test_destroy_removes_own_objects_and_namespaces_only_with_flag(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "gone")
    assert openshift.request("POST", "/api/v1/namespaces", {"metadata": {"name": "gone-prod"}}).code == 201
    assert setup(openshift, "apply", "-f", file, "-y").code == 0
    refused = setup(openshift, "destroy", "-f", file)
    assert refused.code == 2 and get(openshift, application("gone-dev")) is not None
    assert setup(openshift, "destroy", "-f", file, "--namespaces").code == 2
    rehearsed = setup(openshift, "destroy", "-f", file, "--dry-run", "-o", "json")
    assert json.loads(rehearsed.out)["delete"] == 6 and get(openshift, application("gone-dev")) is not None
    done = setup(openshift, "destroy", "-f", file, "-y")
    assert done.code == 0 and done.out.index("deleted   application") < done.out.index("deleted   rolebinding")
    assert get(openshift, application("gone-dev")) is None and get(openshift, binding("gone-dev")) is None
    assert get(openshift, "/api/v1/namespaces/gone-dev") is not None
    policy = get(openshift, argocd())["spec"]["rbac"]["policy"]
    assert "gone-developer" not in policy and "cluster-admins" in policy
    assert setup(openshift, "destroy", "-f", file, "--namespaces", "-y").code == 0
    left = get(openshift, "/api/v1/namespaces/gone-dev")
    assert left is None or left["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in get(openshift, "/api/v1/namespaces/gone-prod")["metadata"], "somebody else's"
    assert "Plan: nothing to do." in setup(openshift, "destroy", "-f", file, "-y").out


@pytest.mark.tier("all")
def test_destroy_exits_4_if_an_application_is_not_deleted_in_time(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "held")
    assert setup(openshift, "apply", "-f", file, "-y").code == 0
    patch(openshift, application("held-dev"), {"metadata": {"finalizers": ["example.com/held"]}})
    late = setup(openshift, "destroy", "-f", file, "-y", "--namespaces", "--timeout", "0.2")
    assert late.code == 4 and "Error: Application held-dev is still being deleted after 0.2 s" in late.err
    assert "deleted   application held-dev" not in late.out
    assert get(openshift, binding("held-dev")) is not None, "its prune needs the permission"
    assert "deletionTimestamp" not in get(openshift, "/api/v1/namespaces/held-dev")["metadata"]
    patch(openshift, application("held-dev"), {"metadata": {"finalizers": None}})
    assert setup(openshift, "destroy", "-f", file, "-y", "--namespaces").code == 0
    assert get(openshift, binding("held-dev")) is None


@pytest.mark.tier("all")
def test_argo_cd_without_operator_gets_settings_in_its_config_maps(plain: Sandbox, home: Path) -> None:
    file = delivery(home, "llmops", argocd=PLAIN)
    path = f"/api/v1/namespaces/{PLAIN}/configmaps"
    patch(plain, f"{path}/argocd-cm", {"data": {"url": "https://argocd.example.com"}})
    patch(plain, f"{path}/argocd-rbac-cm", {"data": {"policy.csv": "g, my-own-group, role:admin\n"}})
    done = setup(plain, "apply", "-f", file, "-y")
    assert done.code == 0, done.err
    assert "argocd (no operator: settings go directly into argocd-cm)" in done.out
    data = get(plain, f"{path}/argocd-cm")["data"]
    assert data["url"] == "https://argocd.example.com"
    assert "resource.customizations.health.serving.kserve.io_InferenceService" in data
    policy = get(plain, f"{path}/argocd-rbac-cm")["data"]["policy.csv"]
    assert policy.startswith("g, my-own-group, role:admin\n") and "role:llmops-developer" in policy
    (subject,) = get(plain, binding("llmops-dev"))["subjects"]
    assert (subject["name"], subject["namespace"]) == ("argocd-application-controller", PLAIN)
    before = versions(plain, "llmops", PLAIN)
    assert setup(plain, "apply", "-f", file).code == 0 and versions(plain, "llmops", PLAIN) == before
    assert setup(plain, "status", "-f", file).code == 0
    assert setup(plain, "destroy", "-f", file, "-y").code == 0
    assert get(plain, f"{path}/argocd-cm")["data"] == {"url": "https://argocd.example.com"}
    assert get(plain, f"{path}/argocd-rbac-cm")["data"]["policy.csv"] == "g, my-own-group, role:admin\n"


@pytest.mark.tier("all")
def test_password_is_written_to_the_secret_and_never_printed(openshift: Sandbox, home: Path) -> None:
    (home / "token").write_text("hunter2-of-a-test\n")
    credentials = ", credentials: {username: ada, passwordFrom: {file: token}}"
    file = delivery(home, "private", credentials=credentials)
    outputs = [setup(openshift, "plan", "-f", file, "-o", form) for form in ("text", "json", "yaml")]
    outputs.append(setup(openshift, "apply", "-f", file, "-y", "-o", "json"))
    assert [done.code for done in outputs] == [0, 0, 0, 0]
    path = f"/api/v1/namespaces/{GITOPS}/secrets/private-repository"
    secret = get(openshift, path)
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert data == {
        "type": "git",
        "url": "https://github.com/acme/models.git",
        "username": "ada",
        "password": "hunter2-of-a-test",
    }
    assert secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "repository"
    (home / "token").write_text("another-of-a-test")
    outputs.append(setup(openshift, "apply", "-f", file, "-y"))
    assert "password: changed" in outputs[-1].out
    assert base64.b64decode(get(openshift, path)["data"]["password"]) == b"another-of-a-test"
    (home / "token").unlink()
    outputs.append(setup(openshift, "plan", "-f", file))
    assert "! the repository's password cannot be read: file token is empty or missing" in outputs[-1].out
    printed = "".join(done.out + done.err for done in outputs)
    assert "of-a-test" not in printed and "aHVudGVyMi1vZi1hLXRlc3Q=" not in printed
    assert openshift.request("DELETE", path).code == 200
    missing = setup(openshift, "apply", "-f", file, "-y")
    assert missing.code == 2 and "cannot be read" in missing.err


def test_invalid_file_is_refused_with_exit_code_2(openshift: Sandbox, home: Path) -> None:
    file = delivery(home, "wrong")
    file.write_text(file.read_text().replace("profile: strict", "profile: strikt"))
    done = setup(openshift, "plan", "-f", file)
    assert done.code == 2 and "health: unknown profile strikt" in done.err and "Traceback" not in done.err
    assert setup(openshift, "plan", "-f", home / "none.yaml").code == 2


@pytest.mark.tier("all")
def test_plan_without_argo_cd_exits_1(shared: Sandbox, home: Path) -> None:
    done = setup(shared, "plan", "-f", delivery(home, "nowhere"))
    assert done.code == 1 and "not found in namespace 'openshift-gitops'" in done.err


# -- a user with write permission only in the declared namespaces ----------------------------------------------------


def may(where: Sandbox, namespace: str, name: str, rules: list[dict[str, Any]]) -> None:
    """Grant alice a Role, or a ClusterRole if the namespace is empty."""
    path = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    prefix = "" if namespace else "Cluster"
    role = {"metadata": {"name": name}, "rules": rules}
    assert where.request("POST", f"{path}/{prefix.lower()}roles", role).code == 201
    bind(where, namespace, name, f"{prefix}Role", name)


def bind(where: Sandbox, namespace: str, name: str, kind: str, role: str) -> None:
    path = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    role_binding = {"metadata": {"name": f"alice-{name}"}, "roleRef": reference, "subjects": [subject]}
    assert where.request("POST", path, role_binding).code == 201


def rule(group: str, resources: str, verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def refusals(where: Sandbox) -> int:
    text = where.request("GET", "/metrics").body.decode()
    return sum(int(count) for count in re.findall(r'^apiserver_request_total\{.*code="403"\} (\d+)$', text, re.M))


@pytest.mark.tier("all")
@pytest.mark.tier("all")
def test_user_with_rights_only_in_declared_namespaces_can_set_up(home: Path) -> None:
    with sandbox(home / "data", "--port", "0", "--rbac", "--addons", "argocd_operator") as guarded:
        added = argosy("sandbox", "user", "add", "alice", "--data-dir", guarded.folder, home=home)
        kubeconfig = home / "alice.kubeconfig"
        kubeconfig.write_text(added.out)
        may(guarded, "", "reader", [rule("*", "*", "get list watch")])
        settings = [rule("argoproj.io", "applications", "create patch delete"), rule("argoproj.io", "argocds", "patch")]
        may(guarded, GITOPS, "deliverer", settings)
        labels = {**rule("", "namespaces", "patch"), "resourceNames": ["llmops-dev", "llmops-staging", "llmops-prod"]}
        may(guarded, "", "labels", [labels])
        for end in ("dev", "staging", "prod"):
            assert guarded.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"llmops-{end}"}}).code == 201
            bind(guarded, f"llmops-{end}", "admin", "ClusterRole", "admin")
        flags = ("-f", delivery(home, "llmops"), "--kubeconfig", kubeconfig)
        done = argosy("setup", "apply", *flags, "-y", home=home)
        assert done.code == 0, done.err
        assert "user alice" in done.out and "created   application llmops-dev" in done.out
        assert argosy("setup", "status", *flags, home=home).code == 0
        assert argosy("setup", "destroy", *flags, "-y", home=home).code == 0
        assert refusals(guarded) == 0, "something was tried that alice may not do"
        elsewhere = ("-f", delivery(home, "fraud"), "--kubeconfig", kubeconfig)
        assert argosy("setup", "plan", *elsewhere, home=home).code == 0, "reading is allowed everywhere"
        refused = argosy("setup", "apply", *elsewhere, "-y", home=home)
        assert refused.code == 5 and 'User "alice" cannot create resource "namespaces"' in refused.err
