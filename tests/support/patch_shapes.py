"""Small merge schemas for patch tests: a Pod, a Service, a ConfigMap and a custom Widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from argosy.kube.patch.merge_schema_protocol import ListType, Shape, ShapeKind


@dataclass(frozen=True)
class Spelled:
    kind: ShapeKind
    fields: Mapping[str, Spelled] = field(default_factory=dict)
    element: Spelled | None = None
    atomic: bool = False
    list_type: ListType = "atomic"
    map_keys: Sequence[str] = ()
    merge_key: str = ""
    strategies: Sequence[str] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)

    def field(self, name: str) -> Spelled | None:
        return self.element if self.kind == "map" else self.fields.get(name)

    def items(self) -> Spelled:
        assert self.element is not None
        return self.element

    def key_default(self, name: str) -> object:
        return self.defaults.get(name)


SCALAR = Spelled("scalar")
ANYTHING = Spelled("untyped")
TEXTS = Spelled("map", element=SCALAR)


def struct(*, atomic: bool = False, strategies: Sequence[str] = (), **fields: Spelled) -> Spelled:
    return Spelled("struct", fields, atomic=atomic, strategies=strategies)


def listing(element: Spelled, *keys: str, merge_key: str = "", **defaults: object) -> Spelled:
    """Return a list of type `map` with these keys, or an atomic list if there are no keys."""
    return Spelled(
        "list",
        element=element,
        list_type="map" if keys else "atomic",
        map_keys=keys,
        merge_key=merge_key,
        strategies=("merge",) if merge_key else (),
        defaults=defaults,
    )


TEXT_SET = Spelled("list", element=SCALAR, list_type="set", strategies=("merge",))
META = struct(
    name=SCALAR,
    namespace=SCALAR,
    uid=SCALAR,
    resourceVersion=SCALAR,
    generation=SCALAR,
    creationTimestamp=SCALAR,
    labels=TEXTS,
    annotations=TEXTS,
    finalizers=TEXT_SET,
    ownerReferences=listing(struct(uid=SCALAR, name=SCALAR, kind=SCALAR), "uid", merge_key="uid"),
    managedFields=listing(ANYTHING),
)


def kind_of(**fields: Spelled) -> Spelled:
    return struct(apiVersion=SCALAR, kind=SCALAR, metadata=META, **fields)


PORTS = listing(
    struct(name=SCALAR, containerPort=SCALAR, protocol=SCALAR, hostPort=SCALAR),
    "containerPort",
    "protocol",
    merge_key="containerPort",
    protocol="TCP",
)
CONTAINER = struct(
    name=SCALAR,
    image=SCALAR,
    command=listing(SCALAR),
    env=listing(struct(name=SCALAR, value=SCALAR), "name", merge_key="name"),
    ports=PORTS,
    resources=struct(limits=TEXTS, requests=TEXTS),
)
VOLUME = struct(name=SCALAR, emptyDir=struct(medium=SCALAR), configMap=struct(name=SCALAR))
POD = kind_of(
    spec=struct(
        containers=listing(CONTAINER, "name", merge_key="name"),
        volumes=Spelled(
            "list",
            element=VOLUME,
            list_type="map",
            map_keys=("name",),
            merge_key="name",
            strategies=("merge", "retainKeys"),
        ),
        nodeName=SCALAR,
        nodeSelector=Spelled("map", element=SCALAR, atomic=True),
        tolerations=listing(struct(key=SCALAR, effect=SCALAR)),
        strategy=struct(type=SCALAR, rollingUpdate=struct(maxSurge=SCALAR), strategies=("retainKeys",)),
        template=struct(name=SCALAR, strategies=("replace",)),
    ),
    status=struct(phase=SCALAR, conditions=listing(struct(type=SCALAR, status=SCALAR), "type", merge_key="type")),
)
SERVICE = kind_of(
    spec=struct(
        ports=listing(
            struct(name=SCALAR, port=SCALAR, protocol=SCALAR, targetPort=SCALAR),
            "port",
            "protocol",
            merge_key="port",
            protocol="TCP",
        ),
        selector=Spelled("map", element=SCALAR, atomic=True),
        type=SCALAR,
    )
)
CONFIG_MAP = kind_of(data=TEXTS, binaryData=TEXTS, immutable=SCALAR)
WIDGET = kind_of(
    spec=struct(
        size=SCALAR,
        items=listing(struct(name=SCALAR, value=SCALAR), "name"),
        tags=TEXT_SET,
        free=ANYTHING,
        nested=Spelled("map", element=struct(x=SCALAR, y=SCALAR)),
    ),
    status=struct(phase=SCALAR),
)

SHAPES: Mapping[str, Shape] = {"Pod": POD, "Service": SERVICE, "ConfigMap": CONFIG_MAP, "Widget": WIDGET}
