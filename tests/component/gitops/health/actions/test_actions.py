"""Resource actions: discovery and execution of custom Lua scripts (argocd-cm) and of the bundled ones."""

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
    """Call `scene` with an action runner; user scripts run confined."""
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


def test_kind_without_scripts_has_no_actions():
    assert discover({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}) == []


def test_kind_with_path_separators_finds_no_bundled_actions():
    for kind in ("../apps/Deployment", "Deployment/actions/..", "/"):
        assert discover({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}}) == []


def test_bundled_actions_are_discovered_without_settings():
    assert [action.name for action in discover(DEPLOYMENT)] == ["pause", "restart", "resume", "scale"]


def test_discovery_returns_disabled_icon_display_name_and_params():
    script = """return {roll = {disabled = true, iconClass = "fa fa-redo", displayName = "Roll it",
        params = {{name = "percent", default = "10"}, {name = "pause"}}}, plain = {}}"""
    assert discover(DEPLOYMENT, check(script)) == [
        ResourceAction("plain"),
        ResourceAction("roll", True, "fa fa-redo", "Roll it", ("percent", "pause")),
    ]


def test_custom_actions_replace_bundled_ones_by_default():
    assert discover(DEPLOYMENT, check("return {roll = {}}")) == [ResourceAction("roll")]


def test_merge_builtin_keeps_bundled_actions_and_custom_ones_win():
    actions = discover(DEPLOYMENT, check("return {restart = {disabled = true}, roll = {}}", merge_builtin=True))
    assert [action.name for action in actions] == ["pause", "restart", "resume", "roll", "scale"]
    assert actions[1] == ResourceAction("restart", disabled=True)


def test_discovery_script_without_result_yields_no_actions():
    assert discover(DEPLOYMENT, check("local unused = obj")) == []
    assert discover(DEPLOYMENT, check("")) == []


def test_actions_of_a_wildcard_pattern_are_ignored():
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
def test_discovery_error_names_object_and_settings_key(script, part):
    with pytest.raises(UserError) as caught:
        discover(DEPLOYMENT, check(script))
    text = str(caught.value)
    assert text.startswith("apps/Deployment/prod/web: cannot list its actions: ")
    assert part in text
    assert text.endswith("(resource.customizations.actions.apps_Deployment)")


def test_action_field_names_are_case_insensitive():
    assert read_actions({"a": {"Disabled": True, "DISPLAYNAME": "A"}}) == [ResourceAction("a", True, display_name="A")]


def test_merge_actions_prefers_the_first_list_and_sorts_by_name():
    first, second = [ResourceAction("b", disabled=True)], [ResourceAction("b"), ResourceAction("a")]
    assert merge_actions(first, second) == [ResourceAction("a"), ResourceAction("b", disabled=True)]


# -- running -------------------------------------------------------------------------------------------------------


def test_returned_object_becomes_a_patch_of_the_source():
    impacts = run(DEPLOYMENT, "grow", check(grow="obj.spec.replicas = obj.spec.replicas + 1\nreturn obj"))
    assert [impact.operation for impact in impacts] == ["patch"]
    assert build_patch(DEPLOYMENT, impacts[0]) == {"spec": {"replicas": 4}}


def test_unchanged_object_gives_an_empty_patch():
    assert build_patch(DEPLOYMENT, run(DEPLOYMENT, "look", check(look="return obj"))[0]) == {}


def test_action_parameters_reach_the_script_as_strings():
    script = "obj.metadata.labels.size = actionParams.size .. type(actionParams.size)\nreturn obj"
    impact = run(DEPLOYMENT, "size", check(size=script), size="6")[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"size": "6string"}}}


def test_returned_list_keeps_the_order_of_create_and_patch():
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


def test_created_object_may_use_generate_name():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "run-"}, "spec": {"selector": []}}
    assert read_impacts([{"operation": "create", "resource": job}], DEPLOYMENT) == [ActionImpact("create", job)]


def test_patch_is_accepted_for_a_source_object_without_a_name():
    nameless = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}
    assert read_impacts(nameless | {"spec": {"paused": True}}, nameless)[0].manifest["spec"] == {"paused": True}


def test_empty_result_yields_no_impacts():
    assert run(DEPLOYMENT, "idle", check(idle="return {}")) == []


def test_action_has_only_os_time_and_no_open_libraries():
    script = 'obj.metadata.labels.libs = tostring(string) .. tostring(os) .. type(require("os").time())\nreturn obj'
    impact = run(DEPLOYMENT, "libs", check(libs=script))[0]
    assert impact.manifest["metadata"]["labels"]["libs"] == "nilnilnumber"


def test_custom_action_overrides_bundled_action_of_the_same_name():
    impact = run(DEPLOYMENT, "restart", check(restart="obj.metadata.labels.mine = 'yes'\nreturn obj"))[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"mine": "yes"}}}


def test_bundled_action_runs_when_custom_discovery_names_it():
    assert run(DEPLOYMENT, "pause", check("return {pause = {}}"))[0].manifest["spec"]["paused"] is True


def test_unknown_action_error_lists_available_actions():
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
def test_action_error_names_object_action_and_settings_key(script, part):
    text = refusal(DEPLOYMENT, "odd", check(odd=script))
    assert text.startswith("apps/Deployment/prod/web: action 'odd' failed: ")
    assert part in text
    assert text.endswith("(resource.customizations.actions.apps_Deployment)")


def test_bundled_action_rejects_invalid_parameter_value():
    message = refusal(DEPLOYMENT, "scale", replicas="lots")
    assert 'replicas must be a whole number from 0 to 2147483647, not "lots"' in message
    assert message.endswith("(bundled apps/Deployment/actions/scale/action.lua)")


# -- what Lua cannot represent -------------------------------------------------------------------------------------


def test_empty_objects_are_restored_from_empty_lists_at_any_depth():
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


def test_script_can_remove_the_last_entry_of_a_map():
    impact = run(DEPLOYMENT, "bare", check(bare="obj.metadata.labels.app = nil\nreturn obj"))[0]
    assert build_patch(DEPLOYMENT, impact) == {"metadata": {"labels": {"app": None}}}


def test_annotations_that_a_script_adds_empty_are_a_map():
    source = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    (impact,) = read_impacts(run_script("obj.metadata.annotations = {}\nreturn obj", source), source)
    assert impact.manifest["metadata"]["annotations"] == {}


def test_nulls_and_large_integers_survive_the_lua_round_trip():
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
def test_returning_the_object_unchanged_gives_an_empty_patch(spec):
    source = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
    (impact,) = read_impacts(run_script("return obj", source), source)
    assert build_patch(source, impact) == {}


@settings(max_examples=examples())
@given(spec=PARTS)
def test_patch_contains_only_fields_changed_by_the_script(spec):
    source = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"deep": spec}}
    (impact,) = read_impacts(run_script("obj.spec.marked = true\nreturn obj", source), source)
    assert build_patch(source, impact) == {"spec": {"marked": True}}


def test_action_does_not_mutate_the_source_manifest():
    before = repr(DEPLOYMENT)
    run(DEPLOYMENT, "restart")
    assert repr(DEPLOYMENT) == before


# -- patches -------------------------------------------------------------------------------------------------------


def test_patch_omits_server_managed_metadata_and_status():
    source = {**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "uid": "u", "generation": 3, "managedFields": []}}
    anew = {**source, "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web", "tier": "1"}}}
    assert build_patch(source, ActionImpact("patch", anew)) == {
        "metadata": {"labels": {"tier": "1"}, "annotations": None}
    }


def test_split_status_separates_status_from_the_rest():
    assert split_status({"spec": {"a": 1}, "status": {"b": 2}}) == ({"spec": {"a": 1}}, {"status": {"b": 2}})
    assert split_status({"spec": {}}) == ({"spec": {}}, {})


def test_bundled_restart_patches_only_the_restarted_at_annotation():
    patch = build_patch(DEPLOYMENT, run(DEPLOYMENT, "restart")[0])
    annotations = patch["spec"]["template"]["metadata"].pop("annotations")
    assert list(annotations) == ["kubectl.kubernetes.io/restartedAt"]
    assert patch == {"spec": {"template": {"metadata": {}}}}


def test_bundled_discovery_scripts_match_bundled_action_scripts():
    assert len(load_bundled_actions()) >= 11
    for of, scripts in load_bundled_actions().items():
        text = scripts.discoveries[0].text
        assert scripts.definitions, of
        assert all(f'actions["{name}"]' in text for name in scripts.definitions), of
        assert text.count('actions["') == len(scripts.definitions), of
