"""What is proposed for an Application, by what was seen of it."""

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
from argosy.gitops.analysis.alignment.ignore_rules import build_ignored_field
from argosy.gitops.analysis.alignment.kustomize_selector_labels import build_selector_edits, list_selector_labels
from argosy.gitops.analysis.alignment.observed_application import RESPECT_OPTION, ObservedApplication, ObservedObject
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind, ignore_rule_to_wire
from argosy.gitops.analysis.alignment.proposals import build_proposals
from argosy.gitops.analysis.alignment.proposed_application_edits import apply_edits, build_edits
from argosy.gitops.analysis.alignment.status_counts import ApplicationStatus, compute_percent, count_statuses
from argosy.gitops.analysis.difference_cause import Cause, CauseKind
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
MINE = Cause(CauseKind.CHANGED_IN_GIT, "changed in Git", "argosy app sync models")
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


# -- the catalogue -----------------------------------------------------


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
def test_the_documented_rules_are_kept_to_the_letter(group: str, kind: str, pointers: list[str]) -> None:
    (pattern,) = (documented_pattern for documented_pattern in DOCUMENTED if documented_pattern.kind == kind)
    assert (pattern.group, list(pattern.pointers)) == (group, pointers)


def test_the_catalogue_speaks_of_every_kind_that_is_known_for_it() -> None:
    kinds = {pattern.kind for pattern in PATTERNS}
    assert {"*", "Route", "Deployment", "PersistentVolumeClaim", "Gateway", "DataScienceCluster", "PipelineRun",
            "TaskRun", "LlamaStackDistribution", "Subscription", "OperatorGroup", "MachineSet", "ClusterPolicy",
            "NodeFeatureDiscovery", "ServiceMeshControlPlane", "Service", "Job", "ServiceAccount", "LMEvalJob",
            "GrafanaDashboard", "ServiceMonitor", "PodMonitor", "Namespace", "Application"} <= kinds  # fmt: skip
    assert all(pattern.reason and (pattern.effective_pointers or pattern.redundant_pointers) for pattern in PATTERNS)


def test_a_slash_in_an_annotation_is_escaped_and_read_back() -> None:
    assert parse(LAST_APPLIED) == ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]
    (job,) = list_patterns("batch", "Job")
    assert parse(job.effective_pointers[0])[-1] == "batch.kubernetes.io/controller-uid"


@pytest.mark.parametrize("pointer", ["/status", "/status/phase", "/metadata/managedFields", LAST_APPLIED,
                                     "/metadata/resourceVersion", "/metadata/generation"])  # fmt: skip
def test_what_is_never_compared_is_redundant_and_says_why(pointer: str) -> None:
    assert find_redundancy_reason(pointer)


@pytest.mark.parametrize("pointer", ["/spec/host", "/metadata/annotations", "/statusText", "/metadata/labels"])
def test_what_may_be_compared_is_not_redundant(pointer: str) -> None:
    assert not find_redundancy_reason(pointer)


@pytest.mark.parametrize("pointer", ["/spec", "", "/", "/data", "/metadata"])
def test_a_whole_spec_is_refused_for_kinds_that_people_write(pointer: str) -> None:
    assert find_broadness_reason("apps", "Deployment", pointer)


def test_a_whole_spec_is_no_mistake_where_an_operator_writes_all_of_it() -> None:
    assert not find_broadness_reason("networking.istio.io", "Gateway", "/spec")
    assert find_broadness_reason("networking.istio.io", "Gateway", "")
    assert not find_broadness_reason("apps", "Deployment", "/status")


# -- what others write -----------------------------------------------------


def test_fields_that_a_router_sets_become_the_narrowest_rule() -> None:
    fields = (changed("/spec/host"), ROUTER), (changed("/spec/tls/insecureEdgeTerminationPolicy"), WEBHOOK)
    proposals = build_proposals(sight(seen(ROUTE, *fields)))
    (ignored,) = filter_proposals(proposals, ProposalKind.IGNORE)
    pointers = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy")
    assert ignored.ignores == (IgnoreDifference("route.openshift.io", "Route", pointers=pointers),)
    assert ignored.certain and ignored.fix == "ignore rule"


@pytest.mark.parametrize("cause", [MINE, HAND, FIXED, Cause(CauseKind.UNKNOWN, "x"), Cause(CauseKind.PRUNE, "x")])
def test_what_git_or_a_hand_changed_is_never_ignored(cause: Cause) -> None:
    proposals = build_proposals(sight(seen(WIDGET, (changed("/spec/size"), cause))))
    assert not filter_proposals(proposals, ProposalKind.IGNORE)


def test_your_own_change_is_told_with_what_to_type() -> None:
    (proposal,) = build_proposals(sight(seen(WIDGET, (changed("/spec/size"), MINE))))
    assert (proposal.kind, proposal.fix, proposal.commands) == (
        ProposalKind.INFORM,
        "sync",
        ("argosy app sync models",),
    )


def test_a_whole_spec_is_not_proposed_but_accepted_where_it_is_healthy() -> None:
    gone = FieldDifference("/spec", None, {}, has_desired=False)
    proposals = build_proposals(sight(seen(WIDGET, (gone, ROUTER))))
    assert [proposal.kind for proposal in proposals] == [ProposalKind.ACCEPT] and proposals[0].fix == "accepted"
    alignment_proposals = build_proposals(sight(seen(WIDGET, (gone, ROUTER)), is_healthy=False))
    assert alignment_proposals[0].fix == "look"


def test_one_of_several_objects_is_named_and_all_of_them_are_not() -> None:
    one, two = (seen(WIDGET._replace(name=name), (changed("/spec/size"), ROUTER)) for name in ("one", "two"))
    (alone,) = filter_proposals(build_proposals(sight(one, desired={one.key: {}, two.key: {}})), ProposalKind.IGNORE)
    assert alone.ignores[0].name == "one"
    (both,) = filter_proposals(build_proposals(sight(one, two)), ProposalKind.IGNORE)
    assert both.ignores[0].name == ""


def test_the_replicas_of_one_deployment_are_not_ignored_for_all_and_a_route_stands_for_all() -> None:
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
def test_a_host_that_git_gives_to_another_route_is_not_hidden(host: str, name: str) -> None:
    routed, pinned = seen(ROUTE, (changed("/spec/host"), ROUTER)), ROUTE._replace(name="pinned")
    (proposal,) = filter_proposals(
        build_proposals(sight(routed, desired={ROUTE: {}, pinned: {"spec": {"host": host}}})), ProposalKind.IGNORE
    )
    assert proposal.ignores[0].name == name


@pytest.mark.parametrize("pointer", ["/spec/template/spec/containers/0/image", "/spec/predictor/model/storageUri"])
@pytest.mark.parametrize("cause", [WEBHOOK, ROUTER])
def test_what_new_versions_come_as_is_never_ignored_without_asking(pointer: str, cause: Cause) -> None:
    proposals = build_proposals(sight(seen(DEPLOYMENT, (changed(pointer), cause))))
    assert [proposal.decision_tag for proposal in proposals] == ["[ask]", "[ask]"], (
        "neither the rule nor the option that goes with it"
    )
    assert "hides new versions from Git" in proposals[0].text


def test_what_git_has_just_changed_and_admission_sets_back_is_asked_about() -> None:
    anew = replace(WEBHOOK, has_changed_in_git=True)
    (proposal,) = filter_proposals(
        build_proposals(sight(seen(ROUTE, (changed("/spec/host"), anew)))), ProposalKind.IGNORE
    )
    assert not proposal.certain


def test_a_rule_that_is_asked_about_does_not_bring_its_option_and_a_certain_one_beside_it_does() -> None:
    image = seen(DEPLOYMENT, (changed("/spec/template/spec/containers/0/image"), ROUTER))
    proposals = build_proposals(sight(image, seen(ROUTE, (changed("/spec/host"), ROUTER))))
    assert [proposal.decision_tag for proposal in filter_proposals(proposals, ProposalKind.IGNORE)] == [
        "[ask]",
        "[auto]",
    ]
    (option,) = filter_proposals(proposals, ProposalKind.SYNC_OPTION)
    assert option.certain and "/spec/host" in option.text and "image" not in option.text


@pytest.mark.parametrize("manager", ["helm", "Terraform", "python-requests", "OpenAPI-Generator"])
def test_what_a_tool_of_people_wrote_is_asked_about(manager: str) -> None:
    cause = Cause(CauseKind.OTHER_CONTROLLER, "", manager=manager)
    (proposal,) = filter_proposals(
        build_proposals(sight(seen(WIDGET, (changed("/spec/size"), cause)))), ProposalKind.IGNORE
    )
    assert not proposal.certain and proposal.decision_tag == "[ask]"


def test_objects_that_differ_otherwise_each_have_their_rule() -> None:
    one = seen(WIDGET, (changed("/spec/size"), ROUTER))
    two = seen(WIDGET._replace(name="two"), (changed("/spec/colour"), ROUTER))
    rules = [
        proposal.ignores[0] for proposal in filter_proposals(build_proposals(sight(one, two)), ProposalKind.IGNORE)
    ]
    assert [(rule.name, rule.pointers) for rule in rules] == [("one", ("/spec/size",)), ("two", ("/spec/colour",))]


def test_many_fields_of_one_writer_are_ignored_by_its_name() -> None:
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
def test_an_element_of_a_list_is_named_by_what_tells_it_from_others(pointer: str, expected: str) -> None:
    spot = build_ignored_field(LIVE, FieldDifference(pointer, None, None))
    assert spot.text == expected
    if spot.jq:
        path = compile_jq(spot.jq)
        assert path is not None and path.delete_paths(LIVE) != LIVE


# -- a sync that leaves it alone -----------------------------------------------------


def test_what_git_has_and_a_rule_ignores_needs_a_sync_that_respects_it() -> None:
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


def test_a_rule_for_an_immutable_selector_needs_it_as_well() -> None:
    rule = {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/selector"]}
    live = {"metadata": {"name": "playground"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    proposals = build_proposals(sight(seen(DEPLOYMENT, live=live), app=application(ignoreDifferences=[rule])))
    (option,) = filter_proposals(proposals, ProposalKind.SYNC_OPTION)
    assert "/spec/selector" in option.text


# -- rules that do nothing, or too much -----------------------------------------------------


RULES = [
    {"kind": "Widget", "group": "example.org", "jsonPointers": ["/status", "/spec/size", "/metadata/generation"]},
    {"kind": "Gadget", "jsonPointers": ["/status"]},
]


def test_redundant_rules_are_dropped_and_the_rest_of_them_stays() -> None:
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


def test_where_nothing_else_changes_a_redundant_rule_may_stay() -> None:
    app = application(ignoreDifferences=RULES)
    (proposal,) = build_proposals(sight(app=app))
    assert proposal.kind is ProposalKind.INFORM and "argosy check --fix removes them" in proposal.text
    assert not filter_proposals(
        build_proposals(sight(seen(WIDGET, (changed("/spec/colour"), MINE)), app=app)), ProposalKind.DROP
    )


def test_a_rule_for_status_is_not_redundant_where_status_is_compared() -> None:
    assert not build_proposals(sight(app=application(ignoreDifferences=RULES[1:]), compares_status=True))


def test_a_rule_that_hides_a_whole_spec_is_told() -> None:
    rules = [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec"]}]
    (proposal,) = build_proposals(sight(app=application(ignoreDifferences=rules)))
    assert proposal.kind is ProposalKind.INFORM and "too broad" in proposal.text
    gateways = [{"group": "networking.istio.io", "kind": "Gateway", "jsonPointers": ["/spec"]}]
    assert not build_proposals(sight(app=application(ignoreDifferences=gateways)))


# -- what cannot be changed -----------------------------------------------------

LABEL = FieldDifference("/spec/selector/matchLabels/stage", "two", None, has_live=False)
KUSTOMIZATION = {"resources": ["a.yaml"], "labels": [{"pairs": {"stage": "two"}, "includeSelectors": True}]}


def test_kustomizes_labels_in_a_selector_are_found_as_the_root_cause() -> None:
    proposals = build_proposals(
        sight(seen(DEPLOYMENT, (LABEL, FIXED)), kustomizations={"app/kustomization.yaml": KUSTOMIZATION})
    )
    (cure,) = filter_proposals(proposals, ProposalKind.SELECTORS)
    assert (cure.file, cure.labels, cure.certain) == ("app/kustomization.yaml", ("stage",), True)
    assert not filter_proposals(proposals, ProposalKind.RECREATE)


def test_an_immutable_field_without_such_a_cause_is_to_be_recreated_and_asks() -> None:
    innocent = {"labels": [{"pairs": {"stage": "two"}}], "commonLabels": {"other": "x"}}
    proposals = build_proposals(sight(seen(DEPLOYMENT, (LABEL, FIXED)), kustomizations={"k": innocent}))
    (anew,) = filter_proposals(proposals, ProposalKind.RECREATE)
    assert not anew.certain and anew.decision_tag == "[ask]"
    assert "Force=true,Replace=true" in anew.text and "Replace=true alone does not recreate" in anew.text
    assert anew.commands == (
        "argosy app sync models --force --replace --resource apps:Deployment:playground",
        "kubectl delete deployment playground -n ml",
    )


def test_common_labels_of_the_application_itself_are_kept_out_by_its_own_switch() -> None:
    app = application(source={"path": "x", "kustomize": {"commonLabels": {"stage": "two"}}})
    (cure,) = filter_proposals(
        build_proposals(sight(seen(DEPLOYMENT, (LABEL, FIXED)), app=app)), ProposalKind.SELECTORS
    )
    edited_manifest = apply_edits(app.wire, build_edits(app.wire, [cure]))
    assert edited_manifest["spec"]["source"]["kustomize"]["labelWithoutSelector"] is True and not cure.file


def test_labels_stay_on_objects_and_leave_selectors() -> None:
    text = "labels:\n  # who asks\n  - pairs:\n      stage: two\n    includeSelectors: true # everywhere\n"
    edits = build_selector_edits(KUSTOMIZATION, ["stage"], on_pods=False)
    assert edited(text, edits) == text.replace("includeSelectors: true", "includeSelectors: false")
    common = "commonLabels:\n  stage: two\nresources:\n- a.yaml\n"
    edited_text = edited(common, build_selector_edits({"commonLabels": {"stage": "two"}}, ["stage"], on_pods=True))
    assert (
        "commonLabels" not in edited_text
        and "includeSelectors: false" in edited_text
        and "includeTemplates: true" in edited_text
    )
    assert list_selector_labels({"commonLabels": {"stage": "two"}}, ["stage", "x"]) == ("stage",)


# -- the rest -----------------------------------------------------


def test_a_shared_object_is_a_warning_and_nothing_to_change() -> None:
    (proposal,) = build_proposals(sight(conditions=(("SharedResourceWarning", "Namespace/x is part of a and b"),)))
    assert (proposal.kind, proposal.fix, proposal.decision_tag) == (ProposalKind.INFORM, "informational", "")


def test_proposals_come_smallest_first() -> None:
    proposals = build_proposals(
        sight(
            seen(ROUTE, (changed("/spec/host"), ROUTER)),
            seen(DEPLOYMENT, (LABEL, FIXED)),
            conditions=(("SharedResourceWarning", "x"),),
        )
    )
    kinds = [ProposalKind.IGNORE, ProposalKind.SYNC_OPTION, ProposalKind.RECREATE, ProposalKind.INFORM]
    assert [proposal.kind for proposal in proposals] == kinds


def test_an_application_file_keeps_its_comments_and_gets_what_is_missing() -> None:
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


def test_a_rule_is_written_without_what_it_does_not_say() -> None:
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


def test_the_report_counts_what_is_there_and_a_ninth_changes_every_figure() -> None:
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
