"""The role validated_patterns_deploy, run by real Ansible against Argo CD with and without an operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.gitops.health.bundled_rules import load_bundled_rules, load_profile_rules
from argosy.kube.resource_key import GroupKind
from support.ansible_playbooks import (
    ANSIBLE,
    DEPLOY,
    ROLES,
    Run,
    ask,
    create_recording_kubectl,
    needs_ansible,
    needs_kubectl,
    play,
    read,
)
from support.clusters import KUBECTL, Sandbox, argosy, sandbox
from support.deadlines import HANG_SECONDS

pytestmark = [needs_ansible, needs_kubectl]

GITOPS = ("-n", "openshift-gitops")
RESOURCE = (*GITOPS, "argocds.argoproj.io", "openshift-gitops")
SETTINGS = (*GITOPS, "configmap", "argocd-cm")
PLAIN_SETTINGS = ("-n", "argocd", "configmap", "argocd-cm")
PREFIX = "resource.customizations.health."
CLAIM, SERVICE, SECRET = "PersistentVolumeClaim", "InferenceService", "ExternalSecret"
# Braces as in a Jinja template; Ansible must not expand them.
FOREIGN = {"group": "example.com", "kind": "Theirs", "check": "local t = {{1}, {2}}\nreturn {status = 'Healthy'}\n"}
OLD = {"group": "serving.kserve.io", "kind": SERVICE, "check": "return {status = 'Degraded'}\n"}


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("ansible") / "data", "--port", "0", "--addons", "argocd_operator") as started:
        ask(started, *GITOPS, "wait", "argocd/openshift-gitops", "--for=jsonpath={.status.phase}=Available")
        yield started


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("plain") / "data"
    with sandbox(folder, "--port", "0", "--addons", "argocd_operator=plain") as started:
        controller = "statefulset/argocd-application-controller"
        ask(started, "-n", "argocd", "rollout", "status", controller, f"--timeout={HANG_SECONDS:g}s")
        yield started


def begin_with(operated: Sandbox, *entries: dict[str, str], **extra: str) -> None:
    none = {"resourceHealthChecks": None, "extraConfig": None}
    for spec in (none, {"resourceHealthChecks": list(entries) or None, "extraConfig": extra or None}):
        ask(operated, *GITOPS, "patch", "argocd", "openshift-gitops", "--type=merge", "-p", json.dumps({"spec": spec}))


def entries(operated: Sandbox) -> list[dict[str, str]]:
    return read(operated, *RESOURCE)["spec"].get("resourceHealthChecks") or []


def run(running: Sandbox, *flags: object, client: Path = KUBECTL, **variables: Any) -> Run:
    return play(running, "--tags", "health", *flags, client=client, **variables)


def version(running: Sandbox, *words: object) -> str:
    return str(read(running, *words)["metadata"]["resourceVersion"])


def shipped(name: str) -> str:
    return (DEPLOY / "files" / f"{name.lower()}-health-check.lua").read_bytes().decode()


OURS = [
    {"group": "", "kind": CLAIM, "check": shipped("pvc")},
    {"group": "serving.kserve.io", "kind": SERVICE, "check": shipped(SERVICE)},
    {"group": "external-secrets.io", "kind": SECRET, "check": shipped(SECRET)},
]


def test_scripts_of_the_role_are_byte_identical_to_the_bundled_rules() -> None:
    claim, service = GroupKind("", CLAIM), GroupKind("serving.kserve.io", SERVICE)
    assert shipped("pvc") == load_profile_rules("wait-for-consumer")[claim].script
    assert shipped(SERVICE) == load_profile_rules("lenient")[service].script
    assert shipped(SECRET) == load_bundled_rules()[GroupKind("external-secrets.io", SECRET)].script
    assert {file.name for file in (DEPLOY / "files").iterdir()} == {
        "pvc-health-check.lua", "inferenceservice-health-check.lua", "externalsecret-health-check.lua",
    }  # fmt: skip


def test_playbook_runs_both_roles_and_merges_the_checks(operated: Sandbox) -> None:
    begin_with(operated, FOREIGN, OLD)
    first = play(operated)  # both roles, as users run it
    assert (first.code, first.changed) == (0, 1), first.text
    assert "serving.kserve.io/InferenceService: replaces another script" in first.text
    assert "PersistentVolumeClaim: new" in first.text
    claim, service, secret = OURS
    assert entries(operated) == [FOREIGN, service, claim, secret]
    data = read(operated, *SETTINGS)["data"]
    assert data[f"{PREFIX}PersistentVolumeClaim"] == claim["check"]
    assert data[f"{PREFIX}serving.kserve.io_InferenceService"] == service["check"]


@pytest.mark.tier("all")
def test_first_run_merges_checks_and_second_run_changes_nothing(operated: Sandbox) -> None:
    begin_with(operated, FOREIGN, OLD)
    first = run(operated)
    assert (first.code, first.changed) == (0, 1), first.text
    assert [entry["kind"] for entry in entries(operated)] == ["Theirs", SERVICE, CLAIM, SECRET]
    before = version(operated, *RESOURCE), version(operated, *SETTINGS)
    second = run(operated)
    assert (second.code, second.changed) == (0, 0), second.text
    assert (version(operated, *RESOURCE), version(operated, *SETTINGS)) == before


@pytest.mark.tier("all")
def test_argocd_resource_without_health_checks_gets_the_list(operated: Sandbox) -> None:
    begin_with(operated)
    assert run(operated).changed == 1
    assert entries(operated) == OURS


@pytest.mark.tier("all")
def test_check_mode_reports_the_change_and_writes_nothing(operated: Sandbox) -> None:
    begin_with(operated, FOREIGN)
    before = version(operated, *RESOURCE)
    done = run(operated, "--check")
    assert (done.code, done.changed) == (0, 1), done.text
    assert "external-secrets.io/ExternalSecret: new" in done.text
    assert version(operated, *RESOURCE) == before


@pytest.mark.tier("all")
def test_disabled_health_checks_leave_argo_cd_unchanged(operated: Sandbox) -> None:
    begin_with(operated, FOREIGN)
    before = version(operated, *RESOURCE)
    done = run(operated, configure_argocd_health_checks=False)
    assert (done.code, done.changed) == (0, 0), done.text
    assert version(operated, *RESOURCE) == before


@pytest.mark.tier("all")
def test_checks_exported_by_argosy_replace_the_default_list(operated: Sandbox, tmp_path: Path) -> None:
    begin_with(operated, FOREIGN)
    exported = argosy("health", "export", "--as", "ansible", home=tmp_path)
    assert exported.code == 0, exported.err
    (tmp_path / "checks.yaml").write_text(exported.out)
    done = run(operated, "-e", f"@{tmp_path / 'checks.yaml'}")
    assert (done.code, done.changed) == (0, 1), done.text
    strict = yaml.safe_load(exported.out)["validated_patterns_argocd_health_checks"]
    assert entries(operated) == [FOREIGN, *strict]
    result = argosy("health", "apply", "--dry-run", "--kubeconfig", operated.kubeconfig, home=tmp_path)
    assert "it is already up to date" in result.out, result


@pytest.mark.tier("all")
def test_two_checks_for_one_kind_are_rejected(operated: Sandbox) -> None:
    begin_with(operated, FOREIGN)
    done = run(operated, argocd_health_checks=[OLD, *OURS])
    assert done.code != 0 and "serving.kserve.io/InferenceService has 2 health checks" in done.words
    assert entries(operated) == [FOREIGN]


@pytest.mark.tier("all")
def test_entry_added_between_read_and_write_is_not_lost(operated: Sandbox, tmp_path: Path) -> None:
    begin_with(operated, OLD)
    changed_spec = json.dumps({"spec": {"resourceHealthChecks": [OLD, {**FOREIGN, "check": "return {}"}]}})
    patch = f"patch argocd openshift-gitops -n openshift-gitops --type=merge -p '{changed_spec}' >/dev/null </dev/null"
    before = f'case "$*" in *--type=json*) "{KUBECTL}" --kubeconfig "{operated.kubeconfig}" {patch};; esac'
    done = run(operated, client=create_recording_kubectl(tmp_path, before))
    assert done.code != 0 and "was left as it is" in done.words and "run the playbook again" in done.words, done.text
    assert [entry["kind"] for entry in entries(operated)] == [SERVICE, "Theirs"]
    again = run(operated)
    assert (again.code, again.changed) == (0, 1), again.text
    assert [entry["kind"] for entry in entries(operated)] == [SERVICE, "Theirs", CLAIM, SECRET]


@pytest.mark.tier("all")
def test_check_overridden_by_extra_config_is_reported(operated: Sandbox) -> None:
    key = f"{PREFIX}PersistentVolumeClaim"
    begin_with(operated, **{key: "return {}"})
    done = run(operated, wait_retries=1)
    assert done.code != 0, done.text
    assert f"does not hold {key}." in done.words and "spec.extraConfig, which wins" in done.words


@pytest.mark.tier("all")
def test_argo_cd_settings_are_not_printed(operated: Sandbox) -> None:
    begin_with(operated, **{"dex.config": "clientSecret: not-for-logs"})
    for changed in (1, 0):
        done = run(operated, "-vvv")
        assert (done.code, done.changed) == (0, changed), done.text
        assert "not-for-logs" not in done.text


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"argocd_name": "other"}, "argocd-cm belongs to an ArgoCD resource of another name"),
        ({"argocd_namespace": "default"}, "in namespace default, and no argocd-cm either"),
        ({"kubeconfig": "/nowhere"}, "cannot read the settings of Argo CD in namespace openshift-gitops"),
        ({"kubectl": "/nowhere"}, "in namespace openshift-gitops: it could not be started."),
    ],
)
@pytest.mark.tier("all")
def test_argo_cd_that_cannot_be_found_gives_a_readable_error(
    operated: Sandbox, variables: dict[str, Any], sentence: str
) -> None:
    done = run(operated, **variables)
    assert done.code != 0 and done.failed == 1, done.text
    assert sentence in done.words and "validated_patterns_" in done.words


@pytest.mark.tier("all")
def test_stopped_application_controller_after_a_change_is_an_error(plain: Sandbox) -> None:
    controller = ("-n", "argocd", "statefulset", "argocd-application-controller")
    ask(plain, "scale", *controller, "--replicas=0")
    awaited = ("wait", "--for=delete", "pod/argocd-application-controller-0", f"--timeout={HANG_SECONDS:g}s")
    ask(plain, "-n", "argocd", *awaited)
    ask(plain, "-n", "argocd", "patch", "configmap", "argocd-cm", "--type=merge", "-p", '{"data": null}')
    done = run(plain, argocd_namespace="argocd", wait_retries=1)
    assert done.code != 0 and "argocd-application-controller in namespace argocd is not running (no pod)" in done.words
    ask(plain, "scale", *controller, "--replicas=1")
    ask(plain, "-n", "argocd", "patch", "configmap", "argocd-cm", "--type=merge", "-p", '{"data": null}')


@pytest.mark.tier("all")
def test_argo_cd_without_operator_gets_health_checks_in_argocd_cm(plain: Sandbox) -> None:
    """The controller runs again here, even if the previous test scaled it to zero."""
    patch = json.dumps({"data": {"theirs": "kept", f"{PREFIX}PersistentVolumeClaim": "return {}"}})
    ask(plain, "-n", "argocd", "patch", "configmap", "argocd-cm", "--type=merge", "-p", patch)
    rehearsed = run(plain, "--check", argocd_namespace="argocd")
    assert (rehearsed.code, rehearsed.changed) == (0, 1), rehearsed.text
    assert read(plain, *PLAIN_SETTINGS)["data"] == json.loads(patch)["data"]
    first = run(plain, argocd_namespace="argocd")
    assert (first.code, first.changed) == (0, 1), first.text
    assert read(plain, *PLAIN_SETTINGS)["data"] == {
        "theirs": "kept",
        f"{PREFIX}PersistentVolumeClaim": shipped("pvc"),
        f"{PREFIX}serving.kserve.io_InferenceService": shipped(SERVICE),
        f"{PREFIX}external-secrets.io_ExternalSecret": shipped(SECRET),
    }
    before = version(plain, *PLAIN_SETTINGS)
    second = run(plain, argocd_namespace="argocd")
    assert (second.code, second.changed) == (0, 0), second.text
    assert version(plain, *PLAIN_SETTINGS) == before


@pytest.mark.parametrize("role", sorted(ROLES.iterdir()), ids=lambda role: role.name)
def test_readme_and_argument_specs_name_every_role_variable(role: Path) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    specified = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert specified.keys() == defaults.keys()
    assert {
        name: option["default"] for name, option in specified.items() if "default" in option
    }.items() <= defaults.items()
    page = (role / "README.md").read_text()
    assert [name for name in defaults if f"| `{name}` |" not in page] == []
    assert (ANSIBLE / "README.md").read_text().count(role.name) >= 1
