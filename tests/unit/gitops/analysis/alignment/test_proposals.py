"""Alignment proposals for an Application, built from its observed differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.gitops.analysis.alignment.field_writer_catalog import (
    DOCUMENTED,
    LAST_APPLIED,
    PATTERNS,
    find_broadness_reason,
    find_redundancy_reason,
    list_patterns,
)
from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ProposalKind, ignore_rule_to_wire
from argosy.gitops.analysis.alignment.ignore_rule_builder import build_ignored_field
from argosy.gitops.analysis.alignment.kustomize_selector_labels import (
    build_selector_exclusion_edits,
    list_selector_labels,
)
from argosy.gitops.analysis.alignment.observed_application import RESPECT_OPTION, ObservedApplication, ObservedObject
from argosy.gitops.analysis.alignment.proposal_builder import build_proposals
from argosy.gitops.analysis.alignment.proposed_application_manifest_edits import apply_edits, build_edits
from argosy.gitops.analysis.alignment.sync_and_health_counts import ApplicationStatus, compute_percent, count_statuses
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application import IgnoreDifference, read_application
from argosy.gitops.application.step_results import FieldDifference, Pair
from argosy.kube.objects.yaml_edits import edited
from argosy.kube.patch.json_pointer import parse
from argosy.kube.resource_key import ResourceKey
from argosy.languages.jq_path_expressions import compile_jq

ROUTE = ResourceKey("route.openshift.io", "Route", "minio", "console")
WIDGET = ResourceKey("example.org", "Widget", "ml", "one")
DEPLOYMENT = ResourceKey("apps", "Deployment", "ml", "playground")
ROUTER = Cause(CauseKind.OTHER_CONTROLLER, "changed by router", manager="router")
WEBHOOK = Cause(CauseKind.WEBHOOK, "set by an admission controller, regardless of Git")
HAND = Cause(CauseKind.OTHER_CONTROLLER, "changed by hand", manager="kubectl-edit")
MINE = Cause(CauseKind.GIT_CHANGE, "changed in Git", "argosy app sync models")
FIXED = Cause(CauseKind.IMMUTABLE, "cannot be changed on an existing object")


def application(**spec: Any) -> Any:
    wire = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "models"}, "spec": spec}
    return read_application(wire)


def changed(pointer: str) -> FieldDifference:
    return FieldDifference(pointer, "git", "live")


def seen(key: ResourceKey, *fields: tuple[FieldDifference, Cause], live: Any = None) -> ObservedObject:
    manifest = live or {"metadata": {"name": key.name}, "spec": {}}
    return ObservedObject(Pair(key, manifest, manifest, differs=True), fields)


def sight(*objects: ObservedObject, app: Any = None, **more: Any) -> ObservedApplication:
    desired = {observed.key: observed.pair.desired or {} for observed in objects}
    return ObservedApplication(app or application(), objects, more.pop("desired", desired), **more)


def filter_proposals(proposals: list[Proposal], kind: ProposalKind) -> list[Proposal]:
    return [proposal for proposal in proposals if proposal.kind is kind]


# -- field writer catalog ----------------------------------------------


@pytest.mark.parametrize(
    "group, kind, pointers",
    [
        ("route.openshift.io", "Route", ["/spec/host", "/spec/tls/insecureEdgeTerminationPolicy", "/status",
         "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"]),
        ("apps", "Deployment", ["/spec/selector", "/spec/template/metadata/labels"]),
        ("docling.io", "DoclingServe", ["/status", "/spec/replicas", "/metadata/resourceVersion"]),
        ("networking.istio.io", "Gateway", ["/spec", "/status", "/metadata/annotations", "/metadata/labels"]),
    ],
)  # fmt: skip
def test_documented_ignore_rules_are_in_the_catalog_verbatim(group: str, kind: str, pointers: list[str]) -> None:
    (pattern,) = (documented_pattern for documented_pattern in DOCUMENTED if documented_pattern.kind == kind)
    assert (pattern.group, list(pattern.pointers)) == (group, pointers)


def test_catalog_covers_all_known_kinds() -> None:
    kinds = {pattern.kind for pattern in PATTERNS}
    assert {"*", "Route", "Deployment", "PersistentVolumeClaim", "Gateway", "DataScienceCluster", "PipelineRun",
            "TaskRun", "LlamaStackDistribution", "Subscription", "OperatorGroup", "MachineSet", "ClusterPolicy",
            "NodeFeatureDiscovery", "ServiceMeshControlPlane", "Service", "Job", "ServiceAccount", "LMEvalJob",
            "GrafanaDashboard", "ServiceMonitor", "PodMonitor", "Namespace", "Application"} <= kinds  # fmt: skip
    assert all(pattern.reason and (pattern.effective_pointers or pattern.redundant_pointers) for pattern in PATTERNS)


def test_slash_in_an_annotation_name_is_escaped_in_the_pointer() -> None:
    assert parse(LAST_APPLIED) == ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]
    (job,) = list_patterns("batch", "Job")
    assert parse(job.effective_pointers[0])[-1] == "batch.kubernetes.io/controller-uid"


@pytest.mark.parametrize("pointer", ["/status", "/status/phase", "/metadata/managedFields", LAST_APPLIED,
                                     "/metadata/resourceVersion", "/metadata/generation"])  # fmt: skip
def test_pointers_that_are_never_compared_are_redundant(pointer: str) -> None:
    assert find_redundancy_reason(pointer)


@pytest.mark.parametrize("pointer", ["/spec/host", "/metadata/annotations", "/statusText", "/metadata/labels"])
def test_compared_pointers_are_not_redundant(pointer: str) -> None:
    assert not find_redundancy_reason(pointer)


@pytest.mark.parametrize("pointer", ["/spec", "", "/", "/data", "/metadata"])
def test_pointer_to_a_whole_spec_is_too_broad(pointer: str) -> None:
    assert find_broadness_reason("apps", "Deployment", pointer)


def test_whole_spec_pointer_is_allowed_for_kinds_written_by_an_operator() -> None:
    assert not find_broadness_reason("networking.istio.io", "Gateway", "/spec")
    assert find_broadness_reason("networking.istio.io", "Gateway", "")
    assert not find_broadness_reason("apps", "Deployment", "/status")


# -- fields written by other controllers -----------------------------------


def test_fields_set_by_a_router_become_the_narrowest_ignore_rule() -> None:
    fields = (changed("/spec/host"), ROUTER), (changed("/spec/tls/insecureEdgeTerminationPolicy"), WEBHOOK)
    proposals = build_proposals(sight(seen(ROUTE, *fields)))
    (ignored,) = filter_proposals(proposals, ProposalKind.IGNORE)
    pointers = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy")
    assert ignored.ignores == (IgnoreDifference("route.openshift.io", "Route", pointers=pointers),)
    assert ignored.certain and ignored.fix == "ignore rule"


@pytest.mark.parametrize("cause", [MINE, HAND, FIXED, Cause(CauseKind.UNKNOWN, "x"), Cause(CauseKind.PRUNE, "x")])
def test_changes_in_git_or_by_hand_are_never_ignored(cause: Cause) -> None:
    proposals = build_proposals(sight(seen(WIDGET, (changed("/spec/size"), cause))))
    assert not filter_proposals(proposals, ProposalKind.IGNORE)


def test_change_in_git_proposes_a_sync_command() -> None:
    (proposal,) = build_proposals(sight(seen(WIDGET, (changed("/spec/size"), MINE))))
    assert (proposal.kind, proposal.fix, proposal.commands) == (
        ProposalKind.INFORM,
        "sync",
        ("argosy app sync models",),
    )


def test_whole_spec_difference_is_accepted_if_healthy_and_not_ignored() -> None:
    gone = FieldDifference("/spec", None, {}, has_desired=False)
    proposals = build_proposals(sight(seen(WIDGET, (gone, ROUTER))))
    assert [proposal.kind for proposal in proposals] == [ProposalKind.ACCEPT] and proposals[0].fix == "accepted"
    alignment_proposals = build_proposals(sight(seen(WIDGET, (gone, ROUTER)), is_healthy=False))
    assert alignment_proposals[0].fix == "look"


def test_ignore_rule_names_an_object_unless_all_of_its_kind_differ() -> None:
    one, two = (seen(WIDGET._replace(name=name), (changed("/spec/size"), ROUTER)) for name in ("one", "two"))
    (alone,) = filter_proposals(build_proposals(sight(one, desired={one.key: {}, two.key: {}})), ProposalKind.IGNORE)
    assert alone.ignores[0].name == "one"
    (both,) = filter_proposals(build_proposals(sight(one, two)), ProposalKind.IGNORE)
    assert both.ignores[0].name == ""


def test_replicas_rule_names_its_deployment_and_a_host_rule_covers_all_routes() -> None:
    scaled = seen(DEPLOYMENT, (changed("/spec/replicas"), Cause(CauseKind.OTHER_CONTROLLER, "", manager="scaler")))
    other = DEPLOYMENT._replace(name="other")
    (proposal,) = filter_proposals(
        build_proposals(sight(scaled, desired={DEPLOYMENT: {}, other: {}})), ProposalKind.IGNORE
    )
    assert proposal.ignores[0].name == "playground"
    routed = seen(ROUTE, (changed("/spec/host"), ROUTER))
    (ignore_proposal,) = filter_proposals(
        build_proposals(sight(routed, desired={ROUTE: {}, ROUTE._replace(name="b"): {}})), ProposalKind.IGNORE
    )
    assert ignore_proposal.ignores[0].name == ""


@pytest.mark.parametrize("host, name", [("models.example.org", "console"), ("", "")])
def test_host_rule_names_its_route_if_git_sets_the_host_of_another_route(host: str, name: str) -> None:
    routed, pinned = seen(ROUTE, (changed("/spec/host"), ROUTER)), ROUTE._replace(name="pinned")
    (proposal,) = filter_proposals(
        build_proposals(sight(routed, desired={ROUTE: {}, pinned: {"spec": {"host": host}}})), ProposalKind.IGNORE
    )
    assert proposal.ignores[0].name == name


@pytest.mark.parametrize("pointer", ["/spec/template/spec/containers/0/image", "/spec/predictor/model/storageUri"])
@pytest.mark.parametrize("cause", [WEBHOOK, ROUTER])
def test_ignoring_an_image_or_model_uri_needs_confirmation(pointer: str, cause: Cause) -> None:
    proposals = build_proposals(sight(seen(DEPLOYMENT, (changed(pointer), cause))))
    assert [proposal.decision_tag for proposal in proposals] == ["[ask]", "[ask]"], (
        "neither the rule nor the option that goes with it"
    )
    assert "hides new versions from Git" in proposals[0].text


def test_ignoring_a_webhook_field_changed_in_git_needs_confirmation() -> None:
    anew = replace(WEBHOOK, has_changed_in_git=True)
    (proposal,) = filter_proposals(
        build_proposals(sight(seen(ROUTE, (changed("/spec/host"), anew)))), ProposalKind.IGNORE
    )
    assert not proposal.certain


def test_sync_option_is_certain_only_because_of_certain_rules() -> None:
    image = seen(DEPLOYMENT, (changed("/spec/template/spec/containers/0/image"), ROUTER))
    proposals = build_proposals(sight(image, seen(ROUTE, (changed("/spec/host"), ROUTER))))
    assert [proposal.decision_tag for proposal in filter_proposals(proposals, ProposalKind.IGNORE)] == [
        "[ask]",
        "[auto]",
    ]
    (option,) = filter_proposals(proposals, ProposalKind.SYNC_OPTION)
    assert option.certain and "/spec/host" in option.text and "image" not in option.text


@pytest.mark.parametrize("manager", ["helm", "Terraform", "python-requests", "OpenAPI-Generator"])
def test_ignoring_fields_written_by_client_tools_needs_confirmation(manager: str) -> None:
    cause = Cause(CauseKind.OTHER_CONTROLLER, "", manager=manager)
    (proposal,) = filter_proposals(
        build_proposals(sight(seen(WIDGET, (changed("/spec/size"), cause)))), ProposalKind.IGNORE
    )
    assert not proposal.certain and proposal.decision_tag == "[ask]"


def test_objects_with_different_differences_get_separate_rules() -> None:
    one = seen(WIDGET, (changed("/spec/size"), ROUTER))
    two = seen(WIDGET._replace(name="two"), (changed("/spec/colour"), ROUTER))
    rules = [
        proposal.ignores[0] for proposal in filter_proposals(build_proposals(sight(one, two)), ProposalKind.IGNORE)
    ]
    assert [(rule.name, rule.pointers) for rule in rules] == [("one", ("/spec/size",)), ("two", ("/spec/colour",))]


def test_many_fields_of_one_manager_are_ignored_by_manager_name() -> None:
    fields = [(changed(f"/spec/f{number}"), ROUTER) for number in range(6)]
    (proposal,) = filter_proposals(build_proposals(sight(seen(WIDGET, *fields))), ProposalKind.IGNORE)
    assert proposal.ignores == (IgnoreDifference("example.org", "Widget", managers=("router",)),)
    (ignore_proposal,) = filter_proposals(
        build_proposals(sight(seen(WIDGET, *fields, (changed("/spec/g"), WEBHOOK)))), ProposalKind.IGNORE
    )
    assert not ignore_proposal.ignores[0].managers and len(ignore_proposal.ignores[0].pointers) == 7


LIVE: dict[str, Any] = {
    "metadata": {"annotations": {"a.b/c": "x"}},
    "spec": {"containers": [{"name": "web", "image": "a"}, {"name": "proxy"}], "servers": [{"hosts": ["a"]}, {}]},
}


@pytest.mark.parametrize(
    "pointer, expected",
    [
        ("/spec/containers/0/image", '.spec.containers[] | select(.name == "web") | .image'),
        ("/spec/containers/1", '.spec.containers[] | select(.name == "proxy")'),
        ("/spec/servers/0/hosts", "/spec/servers/0/hosts"),
        ("/metadata/annotations/a.b~1c", "/metadata/annotations/a.b~1c"),
    ],
)
def test_list_element_is_selected_by_its_name(pointer: str, expected: str) -> None:
    spot = build_ignored_field(LIVE, FieldDifference(pointer, None, None))
    assert spot.text == expected
    if spot.jq:
        path = compile_jq(spot.jq)
        assert path is not None and path.delete_paths(LIVE) != LIVE


# -- RespectIgnoreDifferences --------------------------------------------------------


def test_ignored_field_set_in_git_needs_respect_ignore_differences() -> None:
    proposals = build_proposals(sight(seen(ROUTE, (changed("/spec/host"), ROUTER))))
    assert [proposal.options for proposal in filter_proposals(proposals, ProposalKind.SYNC_OPTION)] == [
        (RESPECT_OPTION,)
    ]
    absent = FieldDifference("/spec/host", None, "x", has_desired=False)
    assert not filter_proposals(build_proposals(sight(seen(ROUTE, (absent, ROUTER)))), ProposalKind.SYNC_OPTION)
    app = application(syncPolicy={"syncOptions": [RESPECT_OPTION]})
    assert not filter_proposals(
        build_proposals(sight(seen(ROUTE, (changed("/spec/host"), ROUTER)), app=app)), ProposalKind.SYNC_OPTION
    )


def test_rule_for_an_immutable_selector_needs_respect_ignore_differences() -> None:
    rule = {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/selector"]}
    live = {"metadata": {"name": "playground"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    proposals = build_proposals(sight(seen(DEPLOYMENT, live=live), app=application(ignoreDifferences=[rule])))
    (option,) = filter_proposals(proposals, ProposalKind.SYNC_OPTION)
    assert "/spec/selector" in option.text


# -- redundant and too broad rules ----------------------------------------------------------


RULES = [
    {"kind": "Widget", "group": "example.org", "jsonPointers": ["/status", "/spec/size", "/metadata/generation"]},
    {"kind": "Gadget", "jsonPointers": ["/status"]},
]


def test_redundant_pointers_are_dropped_and_other_pointers_stay() -> None:
    app = application(ignoreDifferences=RULES)
    proposals = build_proposals(sight(seen(WIDGET, (changed("/spec/colour"), ROUTER)), app=app))
    (drop,) = filter_proposals(proposals, ProposalKind.DROP)
    assert drop.certain and {dropped_pointer.pointer for dropped_pointer in drop.drops} == {
        "/status",
        "/metadata/generation",
    }
    edited_manifest = apply_edits(app.wire, build_edits(app.wire, [drop]))
    assert edited_manifest["spec"]["ignoreDifferences"] == [
        {"kind": "Widget", "group": "example.org", "jsonPointers": ["/spec/size"]}
    ]


def test_redundant_rule_is_only_reported_if_nothing_else_changes() -> None:
    app = application(ignoreDifferences=RULES)
    (proposal,) = build_proposals(sight(app=app))
    assert proposal.kind is ProposalKind.INFORM and "argosy check --fix removes them" in proposal.text
    assert not filter_proposals(
        build_proposals(sight(seen(WIDGET, (changed("/spec/colour"), MINE)), app=app)), ProposalKind.DROP
    )


def test_status_rule_is_not_redundant_if_status_is_compared() -> None:
    assert not build_proposals(sight(app=application(ignoreDifferences=RULES[1:]), compares_status=True))


def test_rule_for_a_whole_spec_is_reported_as_too_broad() -> None:
    rules = [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec"]}]
    (proposal,) = build_proposals(sight(app=application(ignoreDifferences=rules)))
    assert proposal.kind is ProposalKind.INFORM and "too broad" in proposal.text
    gateways = [{"group": "networking.istio.io", "kind": "Gateway", "jsonPointers": ["/spec"]}]
    assert not build_proposals(sight(app=application(ignoreDifferences=gateways)))


# -- immutable fields -----------------------------------------------------------

LABEL = FieldDifference("/spec/selector/matchLabels/stage", "two", None, has_live=False)
KUSTOMIZATION = {"resources": ["a.yaml"], "labels": [{"pairs": {"stage": "two"}, "includeSelectors": True}]}


def test_kustomize_labels_in_a_selector_are_found_as_the_root_cause() -> None:
    proposals = build_proposals(
        sight(seen(DEPLOYMENT, (LABEL, FIXED)), kustomizations={"app/kustomization.yaml": KUSTOMIZATION})
    )
    (cure,) = filter_proposals(proposals, ProposalKind.SELECTORS)
    assert (cure.file, cure.labels, cure.certain) == ("app/kustomization.yaml", ("stage",), True)
    assert not filter_proposals(proposals, ProposalKind.RECREATE)


def test_other_immutable_field_proposes_recreation_with_confirmation() -> None:
    innocent = {"labels": [{"pairs": {"stage": "two"}}], "commonLabels": {"other": "x"}}
    proposals = build_proposals(sight(seen(DEPLOYMENT, (LABEL, FIXED)), kustomizations={"k": innocent}))
    (anew,) = filter_proposals(proposals, ProposalKind.RECREATE)
    assert not anew.certain and anew.decision_tag == "[ask]"
    assert "Force=true,Replace=true" in anew.text and "Replace=true alone does not recreate" in anew.text
    assert anew.commands == (
        "argosy app sync models --force --replace --resource apps:Deployment:playground",
        "kubectl delete deployment playground -n ml",
    )


def test_common_labels_of_the_application_set_label_without_selector() -> None:
    app = application(source={"path": "x", "kustomize": {"commonLabels": {"stage": "two"}}})
    (cure,) = filter_proposals(
        build_proposals(sight(seen(DEPLOYMENT, (LABEL, FIXED)), app=app)), ProposalKind.SELECTORS
    )
    edited_manifest = apply_edits(app.wire, build_edits(app.wire, [cure]))
    assert edited_manifest["spec"]["source"]["kustomize"]["labelWithoutSelector"] is True and not cure.file


def test_selector_edits_keep_labels_on_objects() -> None:
    text = "labels:\n  # who asks\n  - pairs:\n      stage: two\n    includeSelectors: true # everywhere\n"
    edits = build_selector_exclusion_edits(KUSTOMIZATION, ["stage"], on_pods=False)
    assert edited(text, edits) == text.replace("includeSelectors: true", "includeSelectors: false")
    common = "commonLabels:\n  stage: two\nresources:\n- a.yaml\n"
    edited_text = edited(
        common, build_selector_exclusion_edits({"commonLabels": {"stage": "two"}}, ["stage"], on_pods=True)
    )
    assert (
        "commonLabels" not in edited_text
        and "includeSelectors: false" in edited_text
        and "includeTemplates: true" in edited_text
    )
    assert list_selector_labels({"commonLabels": {"stage": "two"}}, ["stage", "x"]) == ("stage",)


# -- other proposals, edits and report ----------------------------


def test_shared_resource_warning_is_informational() -> None:
    (proposal,) = build_proposals(sight(conditions=(("SharedResourceWarning", "Namespace/x is part of a and b"),)))
    assert (proposal.kind, proposal.fix, proposal.decision_tag) == (ProposalKind.INFORM, "informational", "")


def test_proposals_are_sorted_smallest_first() -> None:
    proposals = build_proposals(
        sight(
            seen(ROUTE, (changed("/spec/host"), ROUTER)),
            seen(DEPLOYMENT, (LABEL, FIXED)),
            conditions=(("SharedResourceWarning", "x"),),
        )
    )
    kinds = [ProposalKind.IGNORE, ProposalKind.SYNC_OPTION, ProposalKind.RECREATE, ProposalKind.INFORM]
    assert [proposal.kind for proposal in proposals] == kinds


def test_application_file_edits_keep_comments_and_are_idempotent() -> None:
    text = """\
# the way in
spec:
  source:
    targetRevision: old # why
  ignoreDifferences:
    # volumes
    - kind: Claim
      jsonPointers:
        - /spec/volumeName # chosen
"""
    manifest = {
        "spec": {
            "source": {"targetRevision": "old"},
            "ignoreDifferences": [{"kind": "Claim", "jsonPointers": ["/spec/volumeName"]}],
        }
    }
    rules = IgnoreDifference("", "Claim", pointers=("/spec/other",)), IgnoreDifference("g", "Route", pointers=("/a",))
    proposals = [
        Proposal("x", ProposalKind.BRANCH, "", "", ref="main"),
        Proposal("x", ProposalKind.IGNORE, "", "", ignores=rules),
        Proposal("x", ProposalKind.SYNC_OPTION, "", "", options=(RESPECT_OPTION,)),
    ]
    edits = build_edits(manifest, proposals)
    edited_text = edited(text, edits)
    assert (
        "targetRevision: main # why" in edited_text
        and "# volumes" in edited_text
        and "volumeName # chosen" in edited_text
    )
    assert (
        edited_text.count("kind: Claim") == 1 and "kind: Route" in edited_text and f"- {RESPECT_OPTION}" in edited_text
    )
    assert not build_edits(apply_edits(manifest, edits), proposals), "a second time there is nothing to do"


def test_ignore_rule_to_wire_omits_empty_fields() -> None:
    assert ignore_rule_to_wire(IgnoreDifference("", "Claim", pointers=("/a",))) == {
        "kind": "Claim",
        "jsonPointers": ["/a"],
    }


GOOD = ApplicationStatus("Synced", "Healthy")
DRIFTED = ApplicationStatus("OutOfSync", "Healthy")
BROKEN = [
    ApplicationStatus("Unknown", "Healthy", ("ComparisonError",)),
    ApplicationStatus("OutOfSync", "Healthy", ("SyncError",)),
]


def test_status_report_counts_all_applications() -> None:
    eight = [*[GOOD] * 3, *[DRIFTED] * 3, *BROKEN]
    assert count_statuses(eight).lines == (
        "Synced 3/8 (37.5%)",
        "Healthy 8/8 (100.0%)",
        "errors 2 (ComparisonError, SyncError)",
    )
    nine = count_statuses([*eight, ApplicationStatus("Synced", "Degraded", ("UnknownError",))])
    assert nine.lines == (
        "Synced 4/9 (44.4%)",
        "Healthy 8/9 (88.9%)",
        "errors 3 (ComparisonError, SyncError, UnknownError)",
    )
    assert count_statuses([GOOD] * 7 + [DRIFTED]).lines[0] == "Synced 7/8 (87.5%)"
    assert compute_percent(0, 0) == 100.0
    assert (
        count_statuses([ApplicationStatus("Unknown", "Healthy", ("SyncError",))] * 2).lines[2]
        == "errors 2 (SyncError x2)"
    )
