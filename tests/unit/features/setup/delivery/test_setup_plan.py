"""Setup and removal plans, built from a delivery file and live objects; no cluster is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.features.health_checks.argocd_install.installed_checks_annotation import SETUP_HEALTH_ANNOTATION
from argosy.features.health_checks.argocd_install.merge import RequestedHealthCheck
from argosy.features.setup.delivery import desired_manifests, rbac_policy
from argosy.features.setup.delivery.cluster_setup_plan import (
    HIDDEN_VALUE,
    ChangeVerb,
    SetupPart,
    SetupPlan,
    SetupRequest,
    SetupState,
    build_setup_plan,
    list_managed_keys,
)
from argosy.features.setup.delivery.rbac_policy import PolicyTexts, replace_block
from argosy.features.setup.delivery.removal import build_removal_plan
from argosy.gitops.application.url_credential_detection import PLACEHOLDER_URL
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import (
    DeliveryEnvironment,
    DeliveryFile,
    DeliveryRbac,
    DeliveryRepository,
    DeliveryRole,
    SyncMode,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey

OPERATED, PLAIN = ArgoCDInstallation("openshift-gitops", "openshift-gitops"), ArgoCDInstallation("argocd")
DEV = DeliveryEnvironment("dev", "llmops-dev", "llmops-dev", "overlays/dev", SyncMode.AUTO)
PRODUCTION = DeliveryEnvironment("production", "llmops-production", "llmops-prod", "overlays/production")
DELIVERY = DeliveryFile(DeliveryRepository("https://github.com/acme/models.git"), (DEV, PRODUCTION))
CHECK = RequestedHealthCheck(GroupKind("serving.kserve.io", "InferenceService"), "return {status = 'Healthy'}\n")
RBAC = DeliveryRbac("role:readonly", "[groups]", ("cluster-admins",), (DeliveryRole("dev", ("team",), ("get",)),))
SECRETS = {"type": "git", "url": DELIVERY.repository.url, "username": "ada", "password": "hunter2"}


def argocd(installation: ArgoCDInstallation, **fields: Any) -> Manifest:
    metadata = {"name": installation.settings_target.name, "namespace": installation.namespace, "resourceVersion": "7"}
    api_version = "argoproj.io/v1beta1" if installation.has_operator else "v1"
    return {"apiVersion": api_version, "kind": installation.settings_target.kind, "metadata": metadata, **fields}


def live(*manifests: Manifest, installation: ArgoCDInstallation = OPERATED, **more: Any) -> SetupState:
    settings = (
        ()
        if any(key_of(existing_manifest) == installation.settings_target for existing_manifest in manifests)
        else (argocd(installation),)
    )
    live_objects = {}
    for manifest in (*settings, *manifests):
        metadata = {"resourceVersion": "7", "uid": "u", **manifest["metadata"]}
        live_objects[key_of(manifest)] = {**manifest, "metadata": metadata}
    return SetupState(installation, live_objects, **more)


def everything(installation: ArgoCDInstallation = OPERATED) -> list[Manifest]:
    manifests = []
    for environment in DELIVERY.environments:
        manifests.append(desired_manifests.build_namespace(environment.namespace))
        manifests.append(desired_manifests.build_role_binding(environment.namespace, installation))
        manifests.append(desired_manifests.build_application(DELIVERY, environment, installation))
    return manifests


def verbs(plan: SetupPlan) -> set[ChangeVerb]:
    return {change.verb for change in plan.changes}


def find_change(plan: SetupPlan, part: SetupPart, environment: str = "") -> Any:
    (change,) = (
        setup_change
        for setup_change in plan.changes
        if setup_change.part is part and setup_change.environment == environment
    )
    return change


def without_mark(manifest: Manifest, **labels: str) -> Manifest:
    other_labels = {
        name: value for name, value in manifest["metadata"]["labels"].items() if name != desired_manifests.MANAGED_BY
    }
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {**other_labels, **labels}}}


# -- environments ----------------------------------------------------------------------------------------------------


def test_empty_cluster_plans_only_creates() -> None:
    plan = build_setup_plan(SetupRequest(DELIVERY), live())
    assert verbs(plan) == {ChangeVerb.CREATE} and len(plan.changes) == 6 and not plan.problems


def test_complete_setup_plans_no_writes() -> None:
    for installation in (OPERATED, PLAIN):
        plan = build_setup_plan(SetupRequest(DELIVERY), live(*everything(installation), installation=installation))
        assert verbs(plan) == {ChangeVerb.UNCHANGED} and plan.to_write == []


def test_plan_contains_only_managed_keys() -> None:
    plan = build_setup_plan(SetupRequest(DELIVERY, (CHECK,)), live())
    assert {change.key for change in plan.changes} <= set(list_managed_keys(DELIVERY, OPERATED))


def test_applications_match_the_documented_manifests() -> None:
    dev = find_change(build_setup_plan(SetupRequest(DELIVERY), live()), SetupPart.APPLICATION, "dev").manifest
    assert dev["metadata"]["namespace"] == "openshift-gitops"
    assert dev["metadata"]["labels"] == {
        "app": "llmops",
        "environment": "dev",
        desired_manifests.MANAGED_BY: desired_manifests.MANAGED_BY_SETUP,
    }
    assert dev["spec"] == {
        "project": "default",
        "source": {"repoURL": DELIVERY.repository.url, "targetRevision": "main", "path": "overlays/dev"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "llmops-dev"},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True, "allowEmpty": False},
            "syncOptions": ["CreateNamespace=true", "PruneLast=true"],
            "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
        },
        "ignoreDifferences": [{"group": "serving.kserve.io", "kind": "InferenceService", "jsonPointers": ["/status"]}],
    }
    production = find_change(
        build_setup_plan(SetupRequest(DELIVERY), live()), SetupPart.APPLICATION, "production"
    ).manifest
    assert "automated" not in production["spec"]["syncPolicy"]


@pytest.mark.parametrize(
    ("installation", "account"),
    [(OPERATED, "openshift-gitops-argocd-application-controller"), (PLAIN, "argocd-application-controller")],
)
def test_sync_service_account_becomes_admin_of_the_namespace(installation: ArgoCDInstallation, account: str) -> None:
    binding = find_change(
        build_setup_plan(SetupRequest(DELIVERY), live(installation=installation)), SetupPart.ROLE_BINDING, "dev"
    ).manifest
    assert binding["metadata"]["name"] == "argocd-admin" and binding["roleRef"]["name"] == "admin"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": installation.namespace}]


def test_namespace_label_is_updated_and_foreign_metadata_is_kept() -> None:
    there = without_mark(
        desired_manifests.build_namespace("llmops-dev"), **{"opendatahub.io/dashboard": "false", "team": "ml"}
    )
    there["metadata"]["annotations"] = {desired_manifests.DISPLAY_NAME_ANNOTATION: "Our models"}
    change = find_change(build_setup_plan(SetupRequest(DELIVERY), live(there)), SetupPart.NAMESPACE, "dev")
    assert change.verb is ChangeVerb.UPDATE and change.version == "7"
    assert change.manifest == {"metadata": {"labels": {"opendatahub.io/dashboard": "true"}}}
    assert change.differences == ("metadata.labels.opendatahub.io/dashboard: false → true",)


def test_role_binding_keeps_foreign_subjects() -> None:
    binding = desired_manifests.build_role_binding("llmops-dev", OPERATED)
    alice = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    change = find_change(
        build_setup_plan(SetupRequest(DELIVERY), live({**binding, "subjects": [alice]})), SetupPart.ROLE_BINDING, "dev"
    )
    assert change.manifest == {"subjects": [alice, *binding["subjects"]]}
    both = {**binding, "subjects": [alice, *binding["subjects"]]}
    assert (
        find_change(build_setup_plan(SetupRequest(DELIVERY), live(both)), SetupPart.ROLE_BINDING, "dev").verb
        is ChangeVerb.UNCHANGED
    )


def test_role_binding_with_another_role_is_a_problem() -> None:
    binding = desired_manifests.build_role_binding("llmops-dev", OPERATED)
    other = {**binding, "roleRef": {**binding["roleRef"], "name": "view"}}
    (problem,) = build_setup_plan(SetupRequest(DELIVERY), live(other)).problems
    assert "RoleBinding/llmops-dev/argocd-admin is for ClusterRole view" in problem


def test_object_being_deleted_is_a_problem() -> None:
    namespace = desired_manifests.build_namespace("llmops-dev")
    namespace["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    (problem,) = build_setup_plan(SetupRequest(DELIVERY), live(namespace)).problems
    assert problem.startswith("Namespace/llmops-dev is being deleted")


def test_automated_application_becomes_manual_and_keeps_foreign_fields() -> None:
    application = desired_manifests.build_application(DELIVERY, replace(PRODUCTION, sync=SyncMode.AUTO), OPERATED)
    application["spec"]["revisionHistoryLimit"] = 3
    change = find_change(
        build_setup_plan(SetupRequest(DELIVERY), live(application)), SetupPart.APPLICATION, "production"
    )
    assert change.manifest == {"spec": {"syncPolicy": {"automated": None}}}


def test_existing_objects_of_others_are_not_marked_as_managed() -> None:
    there = [without_mark(manifest) for manifest in everything() if "labels" in manifest["metadata"]]
    assert verbs(build_setup_plan(SetupRequest(DELIVERY), live(*there))) == {ChangeVerb.UNCHANGED}


def test_environments_can_share_a_namespace() -> None:
    shared = replace(DELIVERY, environments=(DEV, replace(PRODUCTION, namespace="llmops-dev")))
    plan = build_setup_plan(SetupRequest(shared), live())
    assert [change.part for change in plan.changes].count(SetupPart.NAMESPACE) == 1


@pytest.mark.parametrize("namespace", ["llmops-prod", "llmops-production", "llmops-prd"])
def test_namespace_with_a_usual_abbreviation_has_no_note(namespace: str) -> None:
    usual = replace(DELIVERY, environments=(DEV, replace(PRODUCTION, namespace=namespace)))
    assert build_setup_plan(SetupRequest(usual), live()).notes == ()


@pytest.mark.parametrize("namespace", ["llmops-dev", "llmops", "other-prod", "prod"])
def test_namespace_that_does_not_match_the_application_name_has_a_note(namespace: str) -> None:
    odd = replace(DELIVERY, environments=(DEV, replace(PRODUCTION, namespace=namespace)))
    (note,) = build_setup_plan(SetupRequest(odd), live()).notes
    assert note.startswith(f'production: Application "llmops-production" deploys to namespace "{namespace}"')
    assert note.count("?") == 1 and "environments.production.namespace" in note


# -- repository Secret -----------------------------------------------------------------------------------------------


def secret(**values: str) -> Manifest:
    key = ResourceKey("", "Secret", "openshift-gitops", "theirs")
    manifest = desired_manifests.build_repository_secret(key, {**SECRETS, **values})
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}}


def test_repository_secret_has_type_and_url_and_its_password_is_redacted() -> None:
    change = find_change(build_setup_plan(SetupRequest(DELIVERY, values=SECRETS), live()), SetupPart.REPOSITORY)
    assert change.manifest["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "repository"
    assert desired_manifests.decode_secret_data(change.manifest) == SECRETS
    assert (
        change.redacted_manifest["stringData"] == {**SECRETS, "password": HIDDEN_VALUE}
        and "data" not in change.redacted_manifest
    )
    assert "hunter2" not in repr(change) and "hunter2" not in repr(SetupRequest(DELIVERY, values=SECRETS))


def test_no_repository_secret_is_planned_without_credentials() -> None:
    assert not any(
        change.part is SetupPart.REPOSITORY for change in build_setup_plan(SetupRequest(DELIVERY), live()).changes
    )


@pytest.mark.parametrize(
    ("there", "verb", "said"),
    [
        (secret(), ChangeVerb.UNCHANGED, ()),
        (secret(password="old"), ChangeVerb.UPDATE, ("password: changed",)),
        (secret(url="https://github.com/acme/models"), ChangeVerb.UPDATE, ("url: changed",)),
        (secret(url="https://github.com/acme/others.git"), ChangeVerb.CREATE, ()),
    ],
)
def test_existing_secret_of_the_repository_is_reused(there: Manifest, verb: ChangeVerb, said: tuple[str, ...]) -> None:
    change = find_change(
        build_setup_plan(SetupRequest(DELIVERY, values=SECRETS), live(repositories=[there])), SetupPart.REPOSITORY
    )
    assert (change.verb, change.differences) == (verb, said)
    assert change.key.name == ("llmops-repository" if verb is ChangeVerb.CREATE else "theirs")


# -- health checks ---------------------------------------------------------------------------------------------------

FOREIGN = {"group": "", "kind": "PersistentVolumeClaim", "check": "return {}"}


def test_health_check_is_added_to_foreign_checks_and_marked_as_managed() -> None:
    request = SetupRequest(DELIVERY, (CHECK,))
    change = find_change(
        build_setup_plan(request, live(argocd(OPERATED, spec={"resourceHealthChecks": [FOREIGN]}))), SetupPart.HEALTH
    )
    assert change.manifest["spec"]["resourceHealthChecks"] == [FOREIGN, CHECK.entry]
    assert change.manifest["metadata"]["annotations"] == {SETUP_HEALTH_ANNOTATION: "serving.kserve.io_InferenceService"}
    assert change.differences == ("serving.kserve.io/InferenceService: new", "keeps PersistentVolumeClaim")


def test_existing_health_check_is_not_marked_as_managed() -> None:
    other = {**CHECK.entry, "check": "return {status = 'Degraded'}"}
    change = find_change(
        build_setup_plan(
            SetupRequest(DELIVERY, (CHECK,)), live(argocd(OPERATED, spec={"resourceHealthChecks": [other]}))
        ),
        SetupPart.HEALTH,
    )
    assert change.verb is ChangeVerb.UPDATE and "annotations" not in change.manifest["metadata"]


def test_health_checks_go_to_argocd_cm_without_an_operator() -> None:
    there = live(argocd(PLAIN, data={"url": "https://argocd"}), installation=PLAIN)
    change = find_change(build_setup_plan(SetupRequest(DELIVERY, (CHECK,)), there), SetupPart.HEALTH)
    assert change.key == ResourceKey("", "ConfigMap", "argocd", "argocd-cm")
    assert change.manifest["data"] == {CHECK.key: CHECK.script}


# -- policy ----------------------------------------------------------------------------------------------------------

OURS = ["g, cluster-admins, role:admin", "p, role:dev, applications, get, */*, allow", "g, team, role:dev"]
FRAUD = "# argosy-setup fraud: begin\ng, x, y\n# argosy-setup fraud: end\n"


def block(*lines: str) -> str:
    return "".join(f"{line}\n" for line in ("# argosy-setup llmops: begin", *lines, "# argosy-setup llmops: end"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", block(*OURS)),
        ("p, a, b\n", "p, a, b\n" + block(*OURS)),
        ("p, a, b", "p, a, b\n" + block(*OURS)),
        # a foreign line with the same content is not repeated, regardless of its spacing
        ("g,cluster-admins,  role:admin\n", "g,cluster-admins,  role:admin\n" + block(*OURS[1:])),
        ("\n".join(OURS), "\n".join(OURS)),
        # an old block is replaced in place
        ("p, a, b\n" + block("g, gone, role:dev") + "p, c, d\n", "p, a, b\n" + block(*OURS) + "p, c, d\n"),
        # a block without an end marker: its lines stay, without an owner
        ("# argosy-setup llmops: begin\ng, x, y\n", block(*OURS) + "g, x, y\n"),
        # the block of another delivery
        (FRAUD, FRAUD + block(*OURS)),
    ],
)
def test_policy_block_is_replaced_and_foreign_lines_are_kept(before: str, after: str) -> None:
    assert replace_block(before, OURS, "llmops") == after
    assert replace_block(after, OURS, "llmops") == after, "a second time changes nothing"


def test_policy_goes_to_the_argocd_resource_or_to_argocd_rbac_cm() -> None:
    request = SetupRequest(replace(DELIVERY, rbac=RBAC))
    change = find_change(
        build_setup_plan(request, live(argocd(OPERATED, spec={"rbac": {"policy": "p, a, b\n"}}))), SetupPart.POLICY
    )
    assert change.key == OPERATED.settings_target and change.verb is ChangeVerb.UPDATE
    rbac = change.manifest["spec"]["rbac"]
    assert (rbac["defaultPolicy"], rbac["scopes"]) == ("role:readonly", "[groups]")
    assert rbac["policy"].startswith("p, a, b\n# argosy-setup llmops: begin\n")
    plain = find_change(build_setup_plan(request, live(installation=PLAIN)), SetupPart.POLICY)
    assert (plain.key.name, plain.verb) == ("argocd-rbac-cm", ChangeVerb.CREATE)
    assert set(plain.manifest["data"]) == {"policy.csv", "policy.default", "scopes"}


def test_unset_default_role_and_scopes_keep_their_current_values() -> None:
    before = PolicyTexts("p, a, b\n", "role:custom", "[email]")
    after = rbac_policy.merge_policy(before, replace(RBAC, default_role=None, scopes=None), "llmops")
    assert (after.default_role, after.scopes) == ("role:custom", "[email]")


def test_removing_the_policy_block_restores_the_previous_text() -> None:
    before = PolicyTexts("p, a, b\n", "role:custom", "[email]")
    after = rbac_policy.merge_policy(before, replace(RBAC, default_role=None, scopes=None), "llmops")
    assert rbac_policy.remove_policy(after, "llmops") == before
    assert rbac_policy.remove_policy(PolicyTexts(), "llmops") == PolicyTexts()


# -- removal ---------------------------------------------------------------------------------------------------------


def test_removal_deletes_only_marked_objects_with_applications_first() -> None:
    *first, application = everything()
    there = live(*first, without_mark(application))
    plan = build_removal_plan(SetupRequest(DELIVERY), there, with_namespaces=True)
    assert [change.part for change in plan.changes] == [
        SetupPart.APPLICATION,
        SetupPart.ROLE_BINDING,
        SetupPart.NAMESPACE,
    ]
    assert "Application/openshift-gitops/llmops-production stays: setup did not create it" in plan.notes[0]


def test_kept_application_keeps_its_role_binding_and_namespace() -> None:
    *first, application = everything()
    plan = build_removal_plan(SetupRequest(DELIVERY), live(*first, without_mark(application)), with_namespaces=True)
    assert sum("Application llmops-production deploys there" in note for note in plan.notes) == 2
    assert not any("llmops-prod" in (change.key.namespace, change.key.name) for change in plan.changes)


def test_placeholder_repository_url_is_noted() -> None:
    untouched = replace(DELIVERY, repository=replace(DELIVERY.repository, url=PLACEHOLDER_URL))
    assert any("repository.url is still" in note for note in build_setup_plan(SetupRequest(untouched), live()).notes)
    assert not any("repository.url" in note for note in build_setup_plan(SetupRequest(DELIVERY), live()).notes)


def test_removal_keeps_namespaces_by_default() -> None:
    plan = build_removal_plan(SetupRequest(DELIVERY), live(*everything()), with_namespaces=False)
    assert not any(change.part is SetupPart.NAMESPACE for change in plan.changes)
    assert sum("--namespaces" in note for note in plan.notes) == 2


@pytest.mark.parametrize(
    ("script", "left"), [(CHECK.script, [FOREIGN]), ("return {}", [FOREIGN, {**CHECK.entry, "check": "return {}"}])]
)
def test_removal_deletes_only_unchanged_health_checks_of_setup(script: str, left: list[Any]) -> None:
    settings = argocd(OPERATED, spec={"resourceHealthChecks": [FOREIGN, {**CHECK.entry, "check": script}]})
    settings["metadata"]["annotations"] = {SETUP_HEALTH_ANNOTATION: "serving.kserve.io_InferenceService"}
    plan = build_removal_plan(SetupRequest(DELIVERY, (CHECK,)), live(settings), with_namespaces=False)
    assert find_change(plan, SetupPart.HEALTH).manifest["spec"]["resourceHealthChecks"] == left


def test_removal_keeps_an_unmarked_health_check() -> None:
    settings = argocd(OPERATED, spec={"resourceHealthChecks": [CHECK.entry]})
    assert build_removal_plan(SetupRequest(DELIVERY, (CHECK,)), live(settings), with_namespaces=False).changes == ()
