"""Simulates the KServe controller: an InferenceService becomes Deployments, Services and a Route or Ingress.

In: the key of an InferenceService. Out: its objects and its status. Never: serves a model: a probe queries one, if
given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.errors import ClusterError, UserError
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import (
    DEPLOYMENT,
    INFERENCE_SERVICE,
    INGRESS,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    ROUTE,
    SECRET,
    SERVICE,
)
from argosy.sandbox.simulators.conditional_writes import (
    NAMESPACE_TERMINATING,
    delete_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.deployment_replica_set_manifests import read_revision
from argosy.sandbox.simulators.event_recorder import EventRecorder
from argosy.sandbox.simulators.kserve import owned_object_manifests
from argosy.sandbox.simulators.kserve.component_and_model_status import PredictorState, build_component_condition
from argosy.sandbox.simulators.kserve.inference_service_events import build_status_events
from argosy.sandbox.simulators.kserve.inference_service_status import ExternalAccess, build_status, build_stopped_status
from argosy.sandbox.simulators.kserve.kinds_and_labels import (
    CLUSTER_SERVING_RUNTIME,
    COMPONENT_LABEL,
    INFERENCE_SERVICE_LABEL,
    SERVING_RUNTIME,
    build_cluster_local_host,
    is_stopped,
    list_components,
    should_keep_runtime,
)
from argosy.sandbox.simulators.kserve.model_probe_interface import ModelProbe, ModelState, ProbeResult
from argosy.sandbox.simulators.kserve.pod_specs import build_pod_template
from argosy.sandbox.simulators.kserve.runtime_selection import RuntimeChoice, choose_runtime
from argosy.sandbox.simulators.kserve.storage_uri_and_volumes import find_storage_problem, uses_claim_or_secret_storage
from argosy.sandbox.simulators.kserve.webhooks import apply_defaults
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import DEFAULT_DOMAIN
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_key,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_counts import is_ready
from argosy.sandbox.simulators.simulation_annotations import (
    InjectedFault,
    read_simulation_annotations,
    read_simulation_settings,
)

FIELD_MANAGER: Final = "kserve-controller-manager"
REQUEUE_WHILE_LOADING: Final = Requeue(1.0)  # poll interval while a model loads
REQUEUE_AFTER_PROBE: Final = Requeue(10.0)  # poll interval of a loaded or failed model


def _enqueue_service_of_pod(manifest: Manifest) -> Iterable[ResourceKey]:
    if name := (manifest["metadata"].get("labels") or {}).get(INFERENCE_SERVICE_LABEL):
        yield build_key(INFERENCE_SERVICE, manifest["metadata"]["namespace"], name)


class InferenceServiceController:
    """The in-memory state only decides which keys to enqueue and saves writes that change nothing."""

    name = "simulated-inferenceservices"

    def __init__(
        self, probe: ModelProbe | None = None, *, domain: str = DEFAULT_DOMAIN, has_routes: bool = True
    ) -> None:
        self._probe, self._domain, self._has_routes = probe, domain, has_routes
        self._events = EventRecorder("v1beta1Controllers")
        self._service_keys: set[ResourceKey] = set()
        self._keys_with_storage: set[ResourceKey] = set()
        self._applied: dict[ResourceKey, tuple[Manifest, object]] = {}
        self.watches = (
            Watch(INFERENCE_SERVICE, enqueue_if_unmarked),
            Watch(DEPLOYMENT, map_to_owner(INFERENCE_SERVICE)),
            Watch(SERVICE, map_to_owner(INFERENCE_SERVICE), metadata_only=True),
            Watch(POD, _enqueue_service_of_pod),
            Watch(ROUTE if has_routes else INGRESS, map_to_owner(INFERENCE_SERVICE)),
            *(Watch(kind, self._enqueue_services_of_runtime) for kind in (SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME)),
            Watch(PERSISTENT_VOLUME_CLAIM, self._enqueue_services_with_storage),
            Watch(SECRET, self._enqueue_services_with_storage, metadata_only=True),
            Watch(REPLICA_SET, lambda _: (), metadata_only=True),
        )

    def _enqueue_services_of_runtime(self, runtime: Manifest) -> Iterable[ResourceKey]:
        namespace = runtime["metadata"].get("namespace")
        return [key for key in self._service_keys if namespace in (None, "", key.namespace)]

    def _enqueue_services_with_storage(self, manifest: Manifest) -> Iterable[ResourceKey]:
        return [key for key in self._keys_with_storage if key.namespace == manifest["metadata"]["namespace"]]

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        service = context.cache.get(key)
        if service is None or is_being_deleted(service) or is_simulated_by_other_addon(service):
            self._service_keys.discard(key)
            self._keys_with_storage.discard(key)
            await self._release_model(key)
            return None
        self._service_keys.add(key)
        with_defaults = apply_defaults(service)
        if with_defaults != service:  # the API server called no admission handlers
            await context.cluster.replace(with_defaults)
            return None
        if uses_claim_or_secret_storage(service):
            self._keys_with_storage.add(key)
        if is_stopped(service):
            await self._release_model(key)
            await self._stop(service, context)
            return None
        return await self._reconcile_serving(service, context)

    async def _stop(self, service: Manifest, context: ControllerContext) -> None:
        """kserve: delete all owned objects and keep only the InferenceService."""
        for owned in context.cache.list_owned(service["metadata"]["uid"]):
            if not is_being_deleted(owned):
                await delete_object(owned, context.cluster)
        await self._update_status(
            service, build_stopped_status(service, format_timestamp(context.clock.now())), context
        )

    async def _update_status(self, service: Manifest, status: Manifest, context: ControllerContext) -> None:
        if await update_status_if_changed(service, status, context.cluster):
            await self._events.record(service, build_status_events(service, status), context)

    async def _reconcile_serving(self, service: Manifest, context: ControllerContext) -> Requeue | None:
        runtime_choice = _choose_runtime(service, context.cache)
        problem = _find_injected_problem(service) or await find_storage_problem(service, context.cache, context.cluster)
        deployments: dict[str, Manifest | None] = {}
        revisions: dict[str, str] = {}
        state = PredictorState(runtime_choice, problem, None, ())
        try:
            for component in () if state.has_no_runtime else list_components(service):
                deployment = await self._apply_component(service, component, state, revisions, context)
                deployments[component] = context.cache.get(key_of(deployment))
        except ClusterError as error:
            if error.code not in (403, 422) or NAMESPACE_TERMINATING in error.message:
                raise
            state = state._replace(rejection=error.message)
        predictor = deployments.pop("predictor", None)
        state = state._replace(deployment=predictor, pods=_list_predictor_pods(service, predictor, context.cache))
        state = state._replace(probe_result=await self._probe_model(service, state))
        access = ExternalAccess("") if state.has_no_runtime else await self._apply_external_access(service, context)
        if self._probe is not None and access.url and (known_url := self._probe.find_url(key_of(service))):
            access = access._replace(url=known_url)
        status = build_status(service, state, deployments, revisions, access, format_timestamp(context.clock.now()))
        await self._update_status(service, status, context)
        return _compute_requeue(state.probe_result)

    async def _probe_model(self, service: Manifest, predictor: PredictorState) -> ProbeResult | None:
        """Query the model; None if it is too early or there is no probe.

        While Pods are replaced, an old one keeps responding.
        """
        if self._probe is None:
            return None
        if build_component_condition(predictor.deployment, "").status == "True":
            return await self._probe.probe(service, predictor.pods)
        if not any(map(is_ready, predictor.pods)):
            await self._probe.release(key_of(service))
        return None

    async def _release_model(self, key: ResourceKey) -> None:
        if self._probe is not None:
            await self._probe.release(key)

    async def _apply_component(
        self,
        service: Manifest,
        component: str,
        predictor: PredictorState,
        revisions: dict[str, str],
        context: ControllerContext,
    ) -> Manifest:
        """Apply the Deployment and the Service of a component; return the desired Deployment."""
        is_predictor = component == "predictor"
        deployments = _list_deployments(service, component, context.cache)
        if is_predictor and deployments and should_keep_runtime(service):
            newest = max(
                deployments,
                key=lambda deployment: str(
                    (deployment["metadata"].get("labels") or {}).get(owned_object_manifests.REVISION_LABEL) or ""
                ),
            )
            if revision := str(
                (newest["metadata"].get("labels") or {}).get(owned_object_manifests.REVISION_LABEL) or ""
            ):
                revisions[component] = revision
            return newest
        template = build_pod_template(service, component, predictor.runtime_choice.runtime if is_predictor else None)
        revision = owned_object_manifests.choose_revision(service, component, template, deployments)
        if revision:
            revisions[component] = revision
        desired = owned_object_manifests.build_deployment(
            service, component, template, predictor.storage_problem if is_predictor else "", revision
        )
        await self._apply_if_changed(desired, context)
        await self._apply_if_changed(
            owned_object_manifests.build_service(service, component, template, revision), context
        )
        await _delete_old_deployments(service, component, desired, context)
        return desired

    async def _apply_if_changed(self, manifest: Manifest, context: ControllerContext) -> None:
        """Apply an object if it differs; changes by others are reverted."""
        key = key_of(manifest)
        live = context.cache.get(key)
        if live is not None and self._applied.get(key) == (manifest, _read_generation_or_version(live)):
            return
        stored = await context.cluster.apply(manifest, manager=FIELD_MANAGER, force=True)
        self._applied[key] = manifest, _read_generation_or_version(stored)

    async def _apply_external_access(self, service: Manifest, context: ControllerContext) -> ExternalAccess:
        if not self._has_routes:
            await self._apply_if_changed(owned_object_manifests.build_ingress(service, self._domain), context)
            return ExternalAccess(f"http://{owned_object_manifests.build_external_host(service, self._domain)}")
        key = build_key(ROUTE, service["metadata"]["namespace"], service["metadata"]["name"])
        route = context.cache.get(key)
        is_ours = route is not None and any(
            reference["uid"] == service["metadata"]["uid"]
            for reference in route["metadata"].get("ownerReferences") or ()
        )
        if not owned_object_manifests.is_exposed(service):
            if route is not None and is_ours and not is_being_deleted(route):
                await delete_object(route, context.cluster)
            return ExternalAccess(
                f"http://{build_cluster_local_host(service, owned_object_manifests.find_entry_component(service))}"
            )
        if route is None or is_ours:
            await self._apply_if_changed(owned_object_manifests.build_route(service), context)
        return _read_route_access(route)


def _compute_requeue(result: ProbeResult | None) -> Requeue | None:
    if result is None or (result.state is ModelState.LOADED and not result.url):
        return None
    return REQUEUE_WHILE_LOADING if result.state in (ModelState.PENDING, ModelState.LOADING) else REQUEUE_AFTER_PROBE


def _read_route_access(route: Manifest | None) -> ExternalAccess:
    for entry in ((route or {}).get("status") or {}).get("ingress") or ():
        for condition in entry.get("conditions") or ():
            if condition["type"] == "Admitted":
                return (
                    ExternalAccess(f"https://{entry['host']}")
                    if condition["status"] == "True"
                    else ExternalAccess("", condition["message"])
                )
    return ExternalAccess("")


def _choose_runtime(service: Manifest, cache: InformerCache) -> RuntimeChoice:
    """Choose the runtime of the predictor; a custom container needs none."""
    model = service["spec"]["predictor"].get("model")
    if not model:
        return RuntimeChoice(None)
    namespace_runtimes = cache.list(SERVING_RUNTIME, namespace=service["metadata"]["namespace"])
    return choose_runtime(model, namespace_runtimes, cache.list(CLUSTER_SERVING_RUNTIME))


def _find_injected_problem(service: Manifest) -> str:
    predictor_metadata = {"metadata": {"annotations": service["spec"]["predictor"].get("annotations")}}
    try:
        settings = read_simulation_settings(
            [read_simulation_annotations(predictor_metadata), read_simulation_annotations(service)]
        )
    except UserError as error:
        return str(error)
    return "Failed to fetch model: requested by annotation" if settings.fault is InjectedFault.STORAGE else ""


def _list_deployments(service: Manifest, component: str, cache: InformerCache) -> list[Manifest]:
    owned = cache.list_owned(service["metadata"]["uid"])
    living = (
        deployment for deployment in owned if deployment["kind"] == "Deployment" and not is_being_deleted(deployment)
    )
    return [
        deployment
        for deployment in living
        if (deployment["metadata"].get("labels") or {}).get(COMPONENT_LABEL) == component
    ]


def _read_generation_or_version(live: Manifest) -> object:
    """k8s: the generation counts spec changes; a Service has none."""
    return live["metadata"].get("generation") or live["metadata"].get("resourceVersion")


async def _delete_old_deployments(
    service: Manifest, component: str, desired: Manifest, context: ControllerContext
) -> None:
    """Delete Deployments of older revisions and of another mode, once the newest is ready."""
    newest = context.cache.get(key_of(desired))
    if newest is None or build_component_condition(newest, "").status != "True":
        return
    for deployment in _list_deployments(service, component, context.cache):
        if key_of(deployment) != key_of(desired):
            await delete_object(deployment, context.cluster)


def _list_predictor_pods(service: Manifest, deployment: Manifest | None, cache: InformerCache) -> list[Manifest]:
    """List the predictor's Pods, newest first."""
    labels: Mapping[str, str] = {INFERENCE_SERVICE_LABEL: service["metadata"]["name"], COMPONENT_LABEL: "predictor"}
    if deployment is None:
        return []
    pods = cache.list(POD, namespace=service["metadata"]["namespace"], labels=labels)
    ranked = [(_read_replica_set_revision(pod, cache), str(pod["metadata"]["creationTimestamp"]), pod) for pod in pods]
    return [pod for *_, pod in sorted(ranked, key=lambda entry: entry[:2], reverse=True) if not is_being_deleted(pod)]


def _read_replica_set_revision(pod: Manifest, cache: InformerCache) -> int:
    """k8s: the ReplicaSets tell which of two Pods has the later template."""
    name = str((find_controller_reference(pod) or {}).get("name") or "")
    replica_set = cache.get(build_key(REPLICA_SET, pod["metadata"]["namespace"], name))
    return read_revision(replica_set) if replica_set is not None else 0
