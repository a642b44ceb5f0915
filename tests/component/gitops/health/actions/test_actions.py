"""Which actions a manifest has, and what each would do, by scripts of the settings and by those that ship."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import UserError
from argosy.gitops.health.actions import (
    ActionImpact,
    ActionRunner,
    ResourceAction,
    build_patch,
    load_bundled_actions,
    merge_actions,
    read_actions,
    read_impacts,
    split_status,
)
from argosy.gitops.health.lua import run_script
from argosy.gitops.health.settings import CustomActions
from support.examples import examples
from support.file_pools import FilePool

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "prod",
        "labels": {"app": "web"},
        "annotations": {},
        "resourceVersion": "7",
    },
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
            "spec": {
                "containers": [{"name": "web", "image": "web:1", "resources": {}, "args": []}],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            },
        },
    },
    "status": {"replicas": 3},
}


def check(discovery="return {}", *, pattern="apps/Deployment", merge_builtin=False, **definitions):
    where = "resource.customizations.actions.apps_Deployment"
    return CustomActions(pattern, discovery, definitions, merge_builtin, where)


POOL = FilePool(workers=1, preload=["argosy.gitops.health.lua.worker"])
close_pool = POOL.fixture()


def play(scene, *checks):
    """Run a scene with the actions in force; users' scripts run confined."""
    return POOL.run(lambda pool: scene(ActionRunner(pool, checks)))


def discover(manifest, *checks):
    return play(lambda actions: actions.discover(manifest), *checks)


def run(manifest, action, *checks, **parameters):
    return play(lambda actions: actions.run(manifest, action, parameters), *checks)


def refusal(manifest, action, *checks, **parameters):
    with pytest.raises(UserError) as caught:
        run(manifest, action, *checks, **parameters)
    return str(caught.value)


# -- discovery -----------------------------------------------------------------------------------------------------


def test_a_kind_nobody_knows_has_no_actions():
    assert discover({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}) == []


def test_a_kind_is_no_path_into_the_folders_of_rules():
    for kind in ("../apps/Deployment", "Deployment/actions/..", "/"):
        assert discover({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}}) == []


def test_bundled_actions_are_told_without_a_setting():
    assert [action.name for action in discover(DEPLOYMENT)] == ["pause", "restart", "resume", "scale"]


def test_an_action_is_told_with_its_state_icon_title_and_parameters():
    script = """return {roll = {disabled = true, iconClass = "fa fa-redo", displayName = "Roll it",
        params = {{name = "percent", default = "10"}, {name = "pause"}}}, plain = {}}"""
    assert discover(DEPLOYMENT, check(script)) == [
        ResourceAction("plain"),
        ResourceAction("roll", True, "fa fa-redo", "Roll it", ("percent", "pause")),
    ]


def test_actions_of_the_settings_hide_the_bundled_ones():
    assert discover(DEPLOYMENT, check("return {roll = {}}")) == [ResourceAction("roll")]


def test_with_merge_the_bundled_actions_stay_and_the_users_win():
    actions = discover(DEPLOYMENT, check("return {restart = {disabled = true}, roll = {}}", merge_builtin=True))
    assert [action.name for action in actions] == ["pause", "restart", "resume", "roll", "scale"]
    assert actions[1] == ResourceAction("restart", disabled=True)


def test_a_discovery_without_a_result_names_no_actions():
    assert discover(DEPLOYMENT, check("local unused = obj")) == []
    assert discover(DEPLOYMENT, check("")) == []


def test_actions_under_a_pattern_with_wildcards_are_not_used():
    actions = discover(DEPLOYMENT, check("return {roll = {}}", pattern="apps/*"))
    assert ResourceAction("roll") not in actions


@pytest.mark.parametrize(
    ("script", "part"),
    [
        ("return 'restart'", "expect table output from Lua script, not string"),
        ("return {'restart'}", "not a list"),
        ("return {restart = true}", "restart must be a table"),
        ("return {restart = {disabled = 'yes'}}", "disabled of restart must be true or false"),
        ("return {restart = {iconClass = 3}}", "iconClass of restart must be a string"),
        ("return {restart = {params = {'replicas'}}}", "params of restart must be a list of tables"),
        ("return {restart = {params = 3}}", "params of restart must be a list of tables"),
        ("return string.rep('x', 3)", "attempt to index"),
        ("return obj.status.conditions[1]", "<string>:1:"),
    ],
)
def test_a_faulty_discovery_is_told_with_the_object_and_the_setting(script, part):
    with pytest.raises(UserError) as caught:
        discover(DEPLOYMENT, check(script))
    text = str(caught.value)
    assert text.startswith("apps/Deployment/prod/web: cannot list its actions: ")
    assert part in text
    assert text.endswith("(resource.customizations.actions.apps_Deployment)")


def test_fields_of_a_discovered_action_are_taken_in_any_case():
    assert read_actions({"a": {"Disabled": True, "DISPLAYNAME": "A"}}) == [ResourceAction("a", True, display_name="A")]


def test_the_first_script_wins_in_a_merge():
    first, second = [ResourceAction("b", disabled=True)], [ResourceAction("b"), ResourceAction("a")]
    assert merge_actions(first, second) == [ResourceAction("a"), ResourceAction("b", disabled=True)]


# -- running -------------------------------------------------------------------------------------------------------


def test_an_object_alone_is_a_patch_of_the_source():
    impacts = run(DEPLOYMENT, "grow", check(grow="obj.spec.replicas = obj.spec.replicas + 1\nreturn obj"))
    assert [impact.operation for impact in impacts] == ["patch"]
    assert build_patch(DEPLOYMENT, impacts[0]) == {"spec": {"replicas": 4}}


def test_a_patch_of_nothing_is_empty():
    assert build_patch(DEPLOYMENT, run(DEPLOYMENT, "look", check(look="return obj"))[0]) == {}


def test_parameters_reach_the_script_as_texts():
    script = "obj.metadata.labels.size = actionParams.size .. type(actionParams.size)\nreturn obj"
    impact = run(DEPLOYMENT, "size", check(size=script), size="6")[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"size": "6string"}}}


def test_a_list_creates_and_patches_in_its_order():
    script = """
      obj.spec.paused = true
      local note = {apiVersion = "v1", kind = "ConfigMap", metadata = {name = "note", namespace = "prod"}}
      return {{operation = "create", resource = note}, {operation = "patch", resource = obj}}"""
    impacts = run(DEPLOYMENT, "note", check(note=script))
    assert [(impact.operation, impact.manifest["kind"]) for impact in impacts] == [
        ("create", "ConfigMap"),
        ("patch", "Deployment"),
    ]
    assert build_patch(DEPLOYMENT, impacts[1]) == {"spec": {"paused": True}}


def test_a_created_object_may_leave_its_name_to_the_cluster():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "run-"}, "spec": {"selector": []}}
    assert read_impacts([{"operation": "create", "resource": job}], DEPLOYMENT) == [ActionImpact("create", job)]


def test_an_object_without_a_name_can_be_judged_at_the_desk():
    nameless = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}
    assert read_impacts(nameless | {"spec": {"paused": True}}, nameless)[0].manifest["spec"] == {"paused": True}


def test_an_empty_result_changes_nothing():
    assert run(DEPLOYMENT, "idle", check(idle="return {}")) == []


def test_an_action_runs_with_closed_libraries_and_the_clock():
    script = 'obj.metadata.labels.libs = tostring(string) .. tostring(os) .. type(require("os").time())\nreturn obj'
    impact = run(DEPLOYMENT, "libs", check(libs=script))[0]
    assert impact.manifest["metadata"]["labels"]["libs"] == "nilnilnumber"


def test_a_users_action_wins_over_the_bundled_one_of_its_name():
    impact = run(DEPLOYMENT, "restart", check(restart="obj.metadata.labels.mine = 'yes'\nreturn obj"))[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"mine": "yes"}}}


def test_a_users_discovery_may_name_a_bundled_action_and_it_runs():
    assert run(DEPLOYMENT, "pause", check("return {pause = {}}"))[0].manifest["spec"]["paused"] is True


def test_an_unknown_action_is_refused_with_those_that_there_are():
    assert refusal(DEPLOYMENT, "restrat") == (
        "apps/Deployment/prod/web: no action 'restrat'; its actions are pause, restart, resume, scale"
    )
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert refusal(other, "restart") == "ConfigMap/a: no action 'restart'; its kind has no actions"


@pytest.mark.parametrize(
    ("script", "part"),
    [
        ("error('no such ring', 0)", "no such ring"),
        ("local x = obj.status.nothing.more", "<string>:1:"),
        ("return obj obj", "<string>"),
        ("return 3", "expect table output from Lua script, not number"),
        ("local unused = 1", "expect table output from Lua script, not nil"),
        ("return {{operation = 'delete', resource = obj}}", "unsupported operation: 'delete'"),
        ("return {{resource = obj}}", "unsupported operation: None"),
        ("return {{operation = 'create'}}", "has no resource"),
        ("return {'create'}", "item 1 of the result must be a table"),
        ("return {spec = {}}", "did not return a Kubernetes object"),
        ("obj.metadata.name = 'other'\nreturn obj", "the script patches apps/Deployment/prod/other"),
        ("obj.metadata.namespace = 'dev'\nreturn obj", "only its own object, apps/Deployment/prod/web"),
        ("obj.kind = 'StatefulSet'\nreturn {{operation = 'patch', resource = obj}}", "patches apps/StatefulSet"),
        ("obj.apiVersion = 'apps/v2'\nreturn obj", "changed apiVersion from apps/v1 to apps/v2"),
        ("while true do end", "ran longer than 1 second"),
    ],
)
def test_a_faulty_action_is_told_with_the_object_the_action_and_the_setting(script, part):
    text = refusal(DEPLOYMENT, "odd", check(odd=script))
    assert text.startswith("apps/Deployment/prod/web: action 'odd' failed: ")
    assert part in text
    assert text.endswith("(resource.customizations.actions.apps_Deployment)")


def test_a_bundled_action_tells_what_is_wrong_with_a_parameter():
    message = refusal(DEPLOYMENT, "scale", replicas="lots")
    assert 'replicas must be a whole number from 0 to 2147483647, not "lots"' in message
    assert message.endswith("(bundled apps/Deployment/actions/scale/action.lua)")


# -- what Lua cannot carry -----------------------------------------------------------------------------------------


def test_objects_that_were_empty_are_objects_again_at_any_depth():
    returned = {
        **DEPLOYMENT,
        "metadata": {**DEPLOYMENT["metadata"], "annotations": []},
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "web", "image": "web:1", "resources": [], "args": []}],
                    "volumes": [{"name": "scratch", "emptyDir": []}, {"name": "more", "emptyDir": []}],
                }
            }
        },
    }
    manifest = read_impacts(returned, DEPLOYMENT)[0].manifest
    assert manifest["metadata"]["annotations"] == {}
    pod = manifest["spec"]["template"]["spec"]
    assert pod["containers"] == [{"name": "web", "image": "web:1", "resources": {}, "args": []}]
    assert pod["volumes"] == [{"name": "scratch", "emptyDir": {}}, {"name": "more", "emptyDir": []}]


def test_the_last_entry_of_a_map_can_be_taken_away():
    impact = run(DEPLOYMENT, "bare", check(bare="obj.metadata.labels.app = nil\nreturn obj"))[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"app": None}}}


def test_nulls_and_numbers_beyond_lua_are_no_change():
    source = {
        "apiVersion": "example.com/v1",
        "kind": "Limit",
        "metadata": {"name": "a"},
        "spec": {"most": 9223372036854775807, "none": None, "items": [1, None, {"x": None, "y": {}}], "share": 0.1},
    }
    same = CustomActions("example.com/Limit", "", {"same": "return obj"}, False, "here")
    assert build_patch(source, run(source, "same", same)[0]) == {}


LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
PARTS = st.recursive(
    LEAVES | NAMES,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(NAMES, parts, max_size=4),
    max_leaves=20,
)


@settings(max_examples=examples())
@given(spec=PARTS)
def test_a_script_that_gives_back_its_object_changes_nothing(spec):
    source = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
    (impact,) = read_impacts(run_script("return obj", source), source)
    assert build_patch(source, impact) == {}


@settings(max_examples=examples())
@given(spec=PARTS)
def test_a_patch_holds_nothing_but_what_the_script_changed(spec):
    source = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"deep": spec}}
    (impact,) = read_impacts(run_script("obj.spec.marked = true\nreturn obj", source), source)
    assert build_patch(source, impact) == {"spec": {"marked": True}}


def test_the_source_is_not_changed_by_its_own_action():
    before = repr(DEPLOYMENT)
    run(DEPLOYMENT, "restart")
    assert repr(DEPLOYMENT) == before


# -- patches -------------------------------------------------------------------------------------------------------


def test_a_patch_leaves_alone_what_only_the_cluster_writes():
    source = {**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "uid": "u", "generation": 3, "managedFields": []}}
    anew = {**source, "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web", "tier": "1"}}}
    assert build_patch(source, ActionImpact("patch", anew)) == {
        "metadata": {"labels": {"tier": "1"}, "annotations": None}
    }


def test_a_patch_of_status_goes_apart():
    assert split_status({"spec": {"a": 1}, "status": {"b": 2}}) == ({"spec": {"a": 1}}, {"status": {"b": 2}})
    assert split_status({"spec": {}}) == ({"spec": {}}, {})


def test_a_bundled_restart_patches_one_annotation():
    patch = build_patch(DEPLOYMENT, run(DEPLOYMENT, "restart")[0])
    annotations = patch["spec"]["template"]["metadata"].pop("annotations")
    assert list(annotations) == ["kubectl.kubernetes.io/restartedAt"]
    assert patch == {"spec": {"template": {"metadata": {}}}}


def test_every_bundled_action_is_discovered_and_every_discovered_one_is_there():
    assert len(load_bundled_actions()) >= 11
    for of, scripts in load_bundled_actions().items():
        text = scripts.discoveries[0].text
        assert scripts.definitions, of
        assert all(f'actions["{name}"]' in text for name in scripts.definitions), of
        assert text.count('actions["') == len(scripts.definitions), of
