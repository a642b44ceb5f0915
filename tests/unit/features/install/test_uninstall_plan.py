"""`argosy uninstall`: what it deletes, what it keeps, and when it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import RESOURCES_FINALIZER as FINALIZER
from argosy.errors import UserError
from argosy.features.install.live_state import LEADER_LEASE_NAME, load_install_state, load_uninstall_state
from argosy.features.install.manifests import CRD_NAMES, build_manifests
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import InstallPlan, build_install_plan
from argosy.features.install.plan_execution import execute_plan
from argosy.features.install.uninstall_plan import build_uninstall_plan
from argosy.gitops.application.finalizer_names import HOOK_FINALIZERS, RESOURCE_FINALIZERS
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.coexistence.argocd_detection import detect_engines
from argosy.gitops.status.projects_over_worker_budget_configmap import BUDGETS_LABELS
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import WaitTimeout
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CRD
from support.deadlines import wait_until_async

pytestmark = pytest.mark.anyio
OPTIONS = InstallOptions()
LEASE = ResourceKey("coordination.k8s.io", "Lease", "argosy", LEADER_LEASE_NAME)


@pytest.fixture
async def there(cluster: Cluster) -> Cluster:
    """An installation with a running engine."""
    await execute_plan(
        cluster, build_install_plan(OPTIONS, await load_install_state(cluster, OPTIONS)), lambda step: None, 0.0
    )
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
    metadata = {"name": LEADER_LEASE_NAME, "namespace": "argosy"}
    await cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    return cluster


async def application(cluster: Cluster, name: str, namespace: str = "argosy", **metadata: Any) -> Manifest:
    source = {"repoURL": "https://example.com/a.git", "path": "a"}
    return await cluster.create({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"project": "default", "source": source, "destination": {"namespace": "a"}},
    })  # fmt: skip


async def argocd(cluster: Cluster, replicas: int = 1, looks_at: str = "argosy") -> None:
    """Create an Argo CD in its own namespace; `looks_at`: the other namespaces whose Applications it watches."""
    labels = {"app.kubernetes.io/name": "argocd-application-controller"}
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    container = {"name": "a", "image": "a", "args": ["--application-namespaces", looks_at]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "serviceName": "a", "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "argocd-application-controller", "namespace": "argocd", "labels": labels}
    await cluster.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})


async def removal(cluster: Cluster, *, applications: bool = False, forced: bool = False) -> InstallPlan:
    remains = await load_uninstall_state(cluster, OPTIONS, await detect_engines(cluster, "argosy"))
    return build_uninstall_plan(OPTIONS, remains, with_applications=applications, is_forced=forced)


async def remove(cluster: Cluster, plan: InstallPlan, seconds: float = 0.2) -> list[str]:
    done: list[str] = []
    await execute_plan(cluster, plan, lambda step: done.append(f"{step.key.kind} {step.key.name}"), seconds)
    return done


async def definitions_are_gone(cluster: Cluster) -> bool:
    """A deleted CRD remains briefly, until the server has checked for its objects."""
    return not [name for name in CRD_NAMES if await cluster.get(ResourceKey(*CRD, "", name))]


async def test_budgets_configmap_is_deleted_only_if_argosy_owns_it(there: Cluster) -> None:
    key = ResourceKey("", "ConfigMap", "argosy", BUDGETS_CONFIG_MAP)
    metadata = {"name": key.name, "namespace": key.namespace}
    await there.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert key not in [step.key for step in (await removal(there)).steps]
    await there.patch(key, {"metadata": {"labels": BUDGETS_LABELS}})
    await remove(there, await removal(there))
    assert await there.get(key) is None


async def test_uninstall_keeps_applications_crds_and_namespace(there: Cluster) -> None:
    await application(there, "web")
    plan = await removal(there)
    done = await remove(there, plan)
    remaining_kinds = {"Namespace", "CustomResourceDefinition"}
    expected = {
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for manifest in build_manifests(OPTIONS)
        if manifest["kind"] not in remaining_kinds
    }
    assert set(done) == expected | {f"Lease {LEADER_LEASE_NAME}"}
    assert done.index("Deployment argosy-controller") < done.index("ClusterRole argosy-controller")
    assert "Applications that stay, with their resources: 1" in plan.notes
    for name in CRD_NAMES:
        assert await there.get(ResourceKey(*CRD, "", name))
    assert await there.get(ResourceKey("argoproj.io", "Application", "argosy", "web"))
    assert await there.get(ResourceKey("", "Namespace", "", "argosy"))
    assert (await removal(there)).to_write == []


async def test_uninstall_of_another_namespace_is_refused_and_keeps_rbac(there: Cluster) -> None:
    other = InstallOptions("other")
    remains = await load_uninstall_state(there, other, await detect_engines(there, "other"))
    for is_forced in (False, True):
        plan = build_uninstall_plan(other, remains, with_applications=True, is_forced=is_forced)
        problem = "argosy is installed in namespace argosy; uninstall it there: argosy uninstall --namespace argosy"
        assert plan.problems[0] == problem
        with pytest.raises(UserError, match="installed in namespace argosy"):
            await remove(there, plan)
    assert await there.get(ResourceKey("rbac.authorization.k8s.io", "ClusterRole", "", "argosy-controller"))


async def test_uninstall_is_refused_while_finalizers_would_remain_unserved(there: Cluster) -> None:
    names = sorted(RESOURCE_FINALIZERS | HOOK_FINALIZERS)
    assert {FINALIZER, f"{FINALIZER}/background", "pre-delete-finalizer.argocd.argoproj.io/cleanup"} < set(names)
    app = await application(there, "web", finalizers=["example.com/somebody-elses"])
    assert (await removal(there)).problems == ()
    for name in names:
        await there.patch(key_of(app), {"metadata": {"finalizers": [name]}})
        (problem,) = (await removal(there)).problems
        assert problem.startswith("argosy/web could not be deleted any more"), name
    forced = await removal(there, forced=True)
    assert forced.problems == () and forced.notes[-1].startswith("argosy/web could not be deleted any more")
    await argocd(there)  # Argo CD processes the finalizer
    assert (await removal(there)).problems == ()


async def test_uninstall_is_refused_while_adopted_applications_lose_their_engine(there: Cluster) -> None:
    """The skip-reconcile annotation is for Argo CD and remains after argosy is uninstalled."""
    await argocd(there)
    paused = {"argocd.argoproj.io/skip-reconcile": "true"}
    await application(there, "theirs")
    await application(there, "paused", annotations=paused)  # before argosy was installed
    await application(there, "shared", annotations={"argosy.dev/engine": "argosy"})  # Argo CD delivers it, too
    assert (await removal(there)).problems == ()
    await application(there, "ours", annotations={"argosy.dev/engine": "argosy", **paused})
    (problem,) = (await removal(there)).problems
    assert problem.startswith("argosy/ours would not be delivered any more") and "argosy app hand-back" in problem
    forced = await removal(there, forced=True)
    assert forced.problems == () and forced.notes[-1].startswith("argosy/ours would not be delivered any more")
    assert (await removal(there, applications=True)).problems == ()


async def test_scaled_down_argocd_does_not_serve_finalizers(there: Cluster) -> None:
    await application(there, "web", finalizers=[FINALIZER])
    await argocd(there, replicas=0)
    assert (await removal(there)).problems


async def test_uninstall_waits_for_applications_before_deleting_the_engine(there: Cluster) -> None:
    """No engine processes finalizers here, so nothing else may be deleted at the timeout."""
    await application(there, "web")
    plan = await removal(there, applications=True)
    with pytest.raises(WaitTimeout, match="the engine still runs"):
        await remove(there, plan)
    live = await there.get(ResourceKey("argoproj.io", "Application", "argosy", "web"))
    assert live and live["metadata"]["finalizers"] == [FINALIZER] and live["metadata"]["deletionTimestamp"]
    assert await there.get(ResourceKey("apps", "Deployment", "argosy", "argosy-controller"))
    key = ResourceKey("argoproj.io", "Application", "argosy", "web")
    await there.patch(key, {"metadata": {"finalizers": None}})  # as an engine does after it has deleted all resources
    done = await remove(there, await removal(there, applications=True))
    assert done[-1] == "Namespace argosy" and "CustomResourceDefinition applications.argoproj.io" in done
    await wait_until_async(lambda: definitions_are_gone(there), "the definitions are gone")


async def test_deleting_applications_without_a_running_engine_is_refused(there: Cluster) -> None:
    await application(there, "web")
    await there.delete(LEASE)
    (problem,) = (await removal(there, applications=True)).problems
    assert problem.startswith("no argosy controller runs that could delete the resources of argosy/web")
    ways = "start one (argosy controller --namespace argosy), or delete them and keep their resources: argosy app "
    assert problem.endswith(f"; {ways}delete web --cascade=false, then run this again")


async def test_refusal_advice_does_not_suggest_a_refused_option(there: Cluster) -> None:
    """Neither while the engine is stopped, nor when only the Applications are left."""
    await application(there, "web", finalizers=[FINALIZER])
    await there.delete(LEASE)
    refused = [*(await removal(there)).problems, *(await removal(there, applications=True)).problems]
    assert len(refused) == 2
    for problem in refused:
        advice = problem.partition("; ")[2]
        assert "--applications" not in advice and "argosy app delete web --cascade=false" in advice
    await remove(there, await removal(there, forced=True))
    again = await removal(there)
    assert (again.to_write, again.problems) == ([], ())
    assert again.notes[-1].startswith("argosy/web could not be deleted any more") and "--cascade" in again.notes[-1]


async def test_uninstall_beside_argocd_keeps_its_applications_and_crds(there: Cluster) -> None:
    await argocd(there)
    await application(there, "theirs", finalizers=[FINALIZER])
    await application(there, "ours", annotations={"argosy.dev/engine": "argosy"})
    plan = await removal(there, applications=True)
    kinds = {(step.key.kind, step.key.name) for step in plan.steps}
    assert ("Application", "ours") in kinds and ("Application", "theirs") not in kinds
    assert not [kind for kind, _ in kinds if kind in ("CustomResourceDefinition", "Namespace")]
    assert "CustomResourceDefinition applications.argoproj.io stays: an Argo CD needs it" in plan.notes
    assert "Namespace argosy stays: it contains Applications" in plan.notes


PAUSED = {"argocd.argoproj.io/skip-reconcile": "true"}


async def test_crd_is_kept_while_its_objects_remain(there: Cluster) -> None:
    await there.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await application(there, "web", "team", annotations=PAUSED)
    plan = await removal(there, applications=True, forced=True)
    assert "CustomResourceDefinition applications.argoproj.io stays: team/web would be deleted with it" in plan.notes
    assert ("CustomResourceDefinition", "appprojects.argoproj.io") in {
        (step.key.kind, step.key.name) for step in plan.steps
    }


async def test_uninstall_deletes_argosy_applications_in_all_namespaces(there: Cluster) -> None:
    await there.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await application(there, "web", "team", finalizers=[FINALIZER])
    plan = await removal(there, applications=True)
    assert plan.problems == ()
    assert ("team", "web") in {(step.key.namespace, step.key.name) for step in plan.steps}
    await there.delete(LEASE)
    (problem,) = (await removal(there, applications=True)).problems
    assert "argosy app delete team/web --cascade=false" in problem


@pytest.mark.parametrize("annotations", [PAUSED, {"argosy.dev/engine": "argocd"}])
async def test_undelivered_application_is_reported_and_not_deleted(there: Cluster, annotations: dict[str, str]) -> None:
    """The engine would never process its finalizer, and other Applications would be deleted by then."""
    app = await application(there, "web", annotations=annotations)
    await application(there, "api")
    assert (await removal(there)).problems == ()
    plan = await removal(there, applications=True)
    assert key_of(app) not in {step.key for step in plan.steps}
    (problem,) = plan.problems
    assert problem.startswith("argosy/web would stay: argosy does not deliver them")
    advice = problem.partition("; ")[2]
    assert advice.startswith("remove argocd.argoproj.io/skip-reconcile and argosy.dev/engine from them first")
    assert "argosy app delete web --cascade=false" in advice and "--applications" not in advice
    await there.patch(key_of(app), {"metadata": {"finalizers": [FINALIZER]}})
    assert (await removal(there)).problems == (problem,)
    assert (await removal(there, applications=True, forced=True)).problems == ()


async def test_crd_not_created_by_install_is_kept(there: Cluster) -> None:
    key = ResourceKey(*CRD, "", "applications.argoproj.io")
    await there.patch(key, {"metadata": {"labels": {"app.kubernetes.io/part-of": "argocd"}}})
    plan = await removal(there, applications=True)
    assert "CustomResourceDefinition applications.argoproj.io stays: argosy install did not create it" in plan.notes
    assert key not in {step.key for step in plan.steps}


async def test_existing_namespace_loses_only_the_control_label(cluster: Cluster) -> None:
    namespace = ResourceKey("", "Namespace", "", "argosy")
    await cluster.create({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argosy", "labels": {"team": "ml"}}
    })  # fmt: skip
    await execute_plan(
        cluster, build_install_plan(OPTIONS, await load_install_state(cluster, OPTIONS)), lambda step: None, 0.0
    )
    assert namespace not in {step.key for step in (await removal(cluster)).steps}, "settings stay, and are found"
    plan = await removal(cluster, applications=True)
    (step,) = [step for step in plan.steps if step.key == namespace]
    assert step.differences == ("metadata.labels.argosy.dev/control: true is removed",)
    await remove(cluster, plan)
    live = await cluster.get(namespace)
    assert live and live["metadata"]["labels"]["team"] == "ml"
    assert "argosy.dev/control" not in live["metadata"]["labels"]
    await wait_until_async(lambda: definitions_are_gone(cluster), "the definitions are gone")
    assert (await removal(cluster, applications=True)).to_write == []


async def test_secret_deleted_with_the_namespace_is_not_reported_as_kept(there: Cluster) -> None:
    key = ResourceKey("", "Secret", "argosy", "argocd-secret")
    if await there.get(key):
        await there.delete(key)
    metadata = {"name": "argocd-secret", "namespace": "argosy"}
    await there.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    notes = "\n".join((await removal(there, applications=True)).notes)
    assert "Secret argocd-secret is deleted with namespace argosy, although argosy install did not create it" in notes
    assert "namespace argosy is deleted with everything in it" in notes and "argosy admin export --secrets" in notes
    assert "argocd-secret stays" not in notes
    assert "Secret argocd-secret stays" in "\n".join((await removal(there)).notes)
    await there.patch(ResourceKey("", "Namespace", "", "argosy"), {"metadata": {"labels": None}})
    plan_notes = "\n".join((await removal(there, applications=True)).notes)
    assert "Secret argocd-secret stays: argosy install did not create it" in plan_notes
    assert "is deleted with" not in plan_notes


async def test_argocd_that_does_not_watch_the_namespace_does_not_own_applications(there: Cluster) -> None:
    await argocd(there, looks_at="")
    await application(there, "web", finalizers=[FINALIZER])
    (problem,) = (await removal(there)).problems
    assert problem.startswith("argosy/web could not be deleted any more")
    plan = await removal(there, applications=True)
    assert ("Application", "web") in {(step.key.kind, step.key.name) for step in plan.steps}
    assert any(note.endswith("stays: an Argo CD needs it") for note in plan.notes)
