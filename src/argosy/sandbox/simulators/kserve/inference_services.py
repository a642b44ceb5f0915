"""Simulates the KServe controller: an InferenceService becomes Deployments, Services and a Route or Ingress.

In: the key of an InferenceService. Out: its objects and its status. Never: serves a model: a probe queries one, if
given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.errors import ClusterError, UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.constants import (
    CLAIM,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    is_dying,
    is_played_by_others,
    own_key,
    owner_of,
    unmarked,
)
from argosy.sandbox.simulators.events import Recorder
from argosy.sandbox.simulators.fault_injection import Fault, asked, read_wishes
from argosy.sandbox.simulators.kserve import parts
from argosy.sandbox.simulators.kserve.component_states import Found, component_ready
from argosy.sandbox.simulators.kserve.constants import (
    CLUSTER_SERVING_RUNTIME,
    COMPONENT,
    INFERENCE_SERVICE,
    INGRESS,
    OF_SERVICE,
    SECRET,
    SERVICE,
    SERVING_RUNTIME,
    components_of,
    inner_host,
    is_stopped,
    keeps_runtime,
)
from argosy.sandbox.simulators.kserve.defaulting import defaulted
from argosy.sandbox.simulators.kserve.events import happened
from argosy.sandbox.simulators.kserve.inference_service_status import Door, status_of, stopped
from argosy.sandbox.simulators.kserve.model_probe import Answer, ModelState, Probe
from argosy.sandbox.simulators.kserve.pod_specs import template_of
from argosy.sandbox.simulators.kserve.runtimes import Chosen, choose
from argosy.sandbox.simulators.kserve.storage import is_waiting_for_storage, problem_of
from argosy.sandbox.simulators.openshift.constants import DOMAIN, ROUTE
from argosy.sandbox.simulators.pod_counts import is_ready
from argosy.sandbox.simulators.pod_templates import revision_of
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import ENDING, keep_status, patient, remove

MANAGER: Final = "kserve-controller-manager"
AGAIN: Final = Requeue(1.0)  # poll interval while a model loads
LATER: Final = Requeue(10.0)  # poll interval of a loaded or failed model


def _of_label(manifest: Manifest) -> Iterable[ResourceKey]:
    if name := (manifest["metadata"].get("labels") or {}).get(OF_SERVICE):
        yield own_key(INFERENCE_SERVICE, manifest["metadata"]["namespace"], name)


class InferenceServices:
    """The in-memory state only decides which keys to enqueue and saves writes that change nothing."""

    name = "simulated-inferenceservices"

    def __init__(self, probe: Probe | None = None, *, domain: str = DOMAIN, has_routes: bool = True) -> None:
        self._probe, self._domain, self._has_routes = probe, domain, has_routes
        self._events = Recorder("v1beta1Controllers")
        self._known: set[ResourceKey] = set()
        self._stored: set[ResourceKey] = set()
        self._kept: dict[ResourceKey, tuple[Manifest, object]] = {}
        self.watches = (
            Watch(INFERENCE_SERVICE, unmarked),
            Watch(DEPLOYMENT, owner(INFERENCE_SERVICE)),
            Watch(SERVICE, owner(INFERENCE_SERVICE), metadata_only=True),
            Watch(POD, _of_label),
            Watch(ROUTE if has_routes else INGRESS, owner(INFERENCE_SERVICE)),
            *(Watch(kind, self._served_by) for kind in (SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME)),
            Watch(CLAIM, self._waiting),
            Watch(SECRET, self._waiting, metadata_only=True),
            Watch(REPLICA_SET, lambda _: (), metadata_only=True),
        )

    def _served_by(self, runtime: Manifest) -> Iterable[ResourceKey]:
        namespace = runtime["metadata"].get("namespace")
        return [key for key in self._known if namespace in (None, "", key.namespace)]

    def _waiting(self, manifest: Manifest) -> Iterable[ResourceKey]:
        return [key for key in self._stored if key.namespace == manifest["metadata"]["namespace"]]

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._known.discard(key)
            self._stored.discard(key)
            await self._let_go(key)
            return None
        self._known.add(key)
        wanted = defaulted(live)
        if wanted != live:  # the API server called no admission handlers
            await context.cluster.replace(wanted)
            return None
        if is_waiting_for_storage(live):
            self._stored.add(key)
        if is_stopped(live):
            await self._let_go(key)
            await self._stop(live, context)
            return None
        return await self._serve(live, context)

    async def _stop(self, live: Manifest, context: Context) -> None:
        """kserve: delete all owned objects and keep only the InferenceService."""
        for part in context.cache.owned(live["metadata"]["uid"]):
            if not is_dying(part):
                await remove(part, context.cluster)
        await self._tell(live, stopped(live, stamp(context.clock.now())), context)

    async def _tell(self, live: Manifest, status: Manifest, context: Context) -> None:
        if await keep_status(live, status, context.cluster):
            await self._events.tell(live, happened(live, status), context)

    async def _serve(self, live: Manifest, context: Context) -> Requeue | None:
        chosen = _chosen(live, context.cache)
        problem = _wished_problem(live) or await problem_of(live, context.cache, context.cluster)
        deployments: dict[str, Manifest | None] = {}
        revisions: dict[str, str] = {}
        found = Found(chosen, problem, None, ())
        try:
            for component in () if found.is_unserved else components_of(live):
                made = await self._keep_component(live, component, found, revisions, context)
                deployments[component] = context.cache.get(key_of(made))
        except ClusterError as error:
            if error.code not in (403, 422) or ENDING in error.message:
                raise
            found = found._replace(refusal=error.message)
        predictor = deployments.pop("predictor", None)
        found = found._replace(deployment=predictor, pods=_pods(live, predictor, context.cache))
        found = found._replace(answer=await self._asked(live, found))
        door = Door("") if found.is_unserved else await self._door(live, context)
        if self._probe is not None and door.url and (known := self._probe.where(key_of(live))):
            door = door._replace(url=known)
        status = status_of(live, found, deployments, revisions, door, stamp(context.clock.now()))
        await self._tell(live, status, context)
        return _again(found.answer)

    async def _asked(self, live: Manifest, found: Found) -> Answer | None:
        """Query the model; None if it is too early or there is no probe.

        While Pods are replaced, an old one keeps responding.
        """
        if self._probe is None:
            return None
        if component_ready(found.deployment, "").status == "True":
            return await self._probe.ask(live, found.pods)
        if not any(map(is_ready, found.pods)):
            await self._probe.let_go(key_of(live))
        return None

    async def _let_go(self, key: ResourceKey) -> None:
        if self._probe is not None:
            await self._probe.let_go(key)

    async def _keep_component(
        self, live: Manifest, component: str, found: Found, revisions: dict[str, str], context: Context
    ) -> Manifest:
        """Apply the Deployment and the Service of a component; return the wanted Deployment."""
        is_predictor = component == "predictor"
        known = _deployments(live, component, context.cache)
        if is_predictor and known and keeps_runtime(live):
            kept = max(known, key=lambda each: str((each["metadata"].get("labels") or {}).get(parts.REVISION) or ""))
            if revision := str((kept["metadata"].get("labels") or {}).get(parts.REVISION) or ""):
                revisions[component] = revision
            return kept
        template = template_of(live, component, found.chosen.runtime if is_predictor else None)
        revision = parts.revision_of(live, component, template, known)
        if revision:
            revisions[component] = revision
        made = parts.deployment(live, component, template, found.problem if is_predictor else "", revision)
        await self._keep(made, context)
        await self._keep(parts.inner_service(live, component, template, revision), context)
        await _let_go(live, component, made, context)
        return made

    async def _keep(self, made: Manifest, context: Context) -> None:
        """Apply an object if it differs; changes by others are reverted."""
        key = key_of(made)
        live = context.cache.get(key)
        if live is not None and self._kept.get(key) == (made, _state(live)):
            return
        written = await context.cluster.apply(made, manager=MANAGER, force=True)
        self._kept[key] = made, _state(written)

    async def _door(self, live: Manifest, context: Context) -> Door:
        if not self._has_routes:
            await self._keep(parts.ingress(live, self._domain), context)
            return Door(f"http://{parts.host_of(live, self._domain)}")
        key = own_key(ROUTE, live["metadata"]["namespace"], live["metadata"]["name"])
        found = context.cache.get(key)
        is_ours = found is not None and any(
            each["uid"] == live["metadata"]["uid"] for each in found["metadata"].get("ownerReferences") or ()
        )
        if not parts.is_exposed(live):
            if found is not None and is_ours and not is_dying(found):
                await remove(found, context.cluster)
            return Door(f"http://{inner_host(live, parts.outermost(live))}")
        if found is None or is_ours:
            await self._keep(parts.route(live), context)
        return _through(found)


def _again(answer: Answer | None) -> Requeue | None:
    if answer is None or (answer.state is ModelState.LOADED and not answer.url):
        return None
    return AGAIN if answer.state in (ModelState.PENDING, ModelState.LOADING) else LATER


def _through(route: Manifest | None) -> Door:
    for entry in ((route or {}).get("status") or {}).get("ingress") or ():
        for each in entry.get("conditions") or ():
            if each["type"] == "Admitted":
                return Door(f"https://{entry['host']}") if each["status"] == "True" else Door("", each["message"])
    return Door("")


def _chosen(live: Manifest, cache: Cache) -> Chosen:
    """Choose the runtime of the predictor; a custom container needs none."""
    model = live["spec"]["predictor"].get("model")
    if not model:
        return Chosen(None)
    own = cache.list(SERVING_RUNTIME, namespace=live["metadata"]["namespace"])
    return choose(model, own, cache.list(CLUSTER_SERVING_RUNTIME))


def _wished_problem(live: Manifest) -> str:
    nearer = {"metadata": {"annotations": live["spec"]["predictor"].get("annotations")}}
    try:
        wishes = read_wishes([asked(nearer), asked(live)])
    except UserError as error:
        return str(error)
    return "Failed to fetch model: requested by annotation" if wishes.fail is Fault.STORAGE else ""


def _deployments(live: Manifest, component: str, cache: Cache) -> list[Manifest]:
    owned = cache.owned(live["metadata"]["uid"])
    mine = (each for each in owned if each["kind"] == "Deployment" and not is_dying(each))
    return [each for each in mine if (each["metadata"].get("labels") or {}).get(COMPONENT) == component]


def _state(live: Manifest) -> object:
    """k8s: the generation counts spec changes; a Service has none."""
    return live["metadata"].get("generation") or live["metadata"].get("resourceVersion")


async def _let_go(live: Manifest, component: str, made: Manifest, context: Context) -> None:
    """Delete Deployments of older revisions and of another mode, once the newest is ready."""
    newest = context.cache.get(key_of(made))
    if newest is None or component_ready(newest, "").status != "True":
        return
    for each in _deployments(live, component, context.cache):
        if key_of(each) != key_of(made):
            await remove(each, context.cluster)


def _pods(live: Manifest, deployment: Manifest | None, cache: Cache) -> list[Manifest]:
    """List the predictor's Pods, newest first."""
    labels: Mapping[str, str] = {OF_SERVICE: live["metadata"]["name"], COMPONENT: "predictor"}
    if deployment is None:
        return []
    found = cache.list(POD, namespace=live["metadata"]["namespace"], labels=labels)
    living = [(_revision(each, cache), str(each["metadata"]["creationTimestamp"]), each) for each in found]
    return [each for *_, each in sorted(living, key=lambda it: it[:2], reverse=True) if not is_dying(each)]


def _revision(pod: Manifest, cache: Cache) -> int:
    """k8s: the ReplicaSets tell which of two Pods has the later template."""
    name = str((owner_of(pod) or {}).get("name") or "")
    above = cache.get(own_key(REPLICA_SET, pod["metadata"]["namespace"], name))
    return revision_of(above) if above is not None else 0
