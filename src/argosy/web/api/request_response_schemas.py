"""JSON schemas of API requests and responses, for the OpenAPI document.

In: –. Out: schemas. Never: a field that could carry a credential.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
STRING_SCHEMA: Final[Schema] = {"type": "string"}
BOOLEAN_SCHEMA: Final[Schema] = {"type": "boolean"}
INTEGER_SCHEMA: Final[Schema] = {"type": "integer"}
OBJECT_SCHEMA: Final[Schema] = {"type": "object"}


def build_object_schema(*required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def build_array_schema(item_schema: Schema) -> Schema:
    return {"type": "array", "items": item_schema}


METADATA: Final = build_object_schema(
    name=STRING_SCHEMA, namespace=STRING_SCHEMA, labels={"type": "object", "additionalProperties": STRING_SCHEMA},
    annotations={"type": "object", "additionalProperties": STRING_SCHEMA}, finalizers=build_array_schema(STRING_SCHEMA),
)  # fmt: skip
SOURCE: Final = build_object_schema(
    repoURL=STRING_SCHEMA,
    path=STRING_SCHEMA,
    targetRevision=STRING_SCHEMA,
    chart=STRING_SCHEMA,
    ref=STRING_SCHEMA,
    name=STRING_SCHEMA,
    helm=OBJECT_SCHEMA,
    kustomize=OBJECT_SCHEMA,
    directory=OBJECT_SCHEMA,
    plugin=OBJECT_SCHEMA,
)
SPEC: Final = build_object_schema(
    project=STRING_SCHEMA,
    source=SOURCE,
    sources=build_array_schema(SOURCE),
    destination=build_object_schema(server=STRING_SCHEMA, name=STRING_SCHEMA, namespace=STRING_SCHEMA),
    syncPolicy=OBJECT_SCHEMA,
    ignoreDifferences=build_array_schema(OBJECT_SCHEMA),
    info=build_array_schema(OBJECT_SCHEMA),
    revisionHistoryLimit=INTEGER_SCHEMA,
)
APPLICATION: Final = build_object_schema(
    metadata=METADATA, spec=OBJECT_SCHEMA, status=OBJECT_SCHEMA, operation=OBJECT_SCHEMA
)
APPLICATION_INPUT: Final = build_object_schema(
    "metadata", "spec", metadata=METADATA, spec=SPEC, operation=OBJECT_SCHEMA
)
APPLICATIONS: Final = build_object_schema(metadata=OBJECT_SCHEMA, items=build_array_schema(APPLICATION))
REFERENCE: Final = build_object_schema(
    group=STRING_SCHEMA,
    version=STRING_SCHEMA,
    kind=STRING_SCHEMA,
    namespace=STRING_SCHEMA,
    name=STRING_SCHEMA,
    uid=STRING_SCHEMA,
)
SYNC: Final = build_object_schema(
    name=STRING_SCHEMA,
    appNamespace=STRING_SCHEMA,
    project=STRING_SCHEMA,
    revision=STRING_SCHEMA,
    revisions=build_array_schema(STRING_SCHEMA),
    sourcePositions=build_array_schema(INTEGER_SCHEMA),
    dryRun=BOOLEAN_SCHEMA,
    prune=BOOLEAN_SCHEMA,
    strategy=build_object_schema(
        apply=build_object_schema(force=BOOLEAN_SCHEMA), hook=build_object_schema(force=BOOLEAN_SCHEMA)
    ),
    resources=build_array_schema(
        build_object_schema(
            group=STRING_SCHEMA, kind=STRING_SCHEMA, name=STRING_SCHEMA, namespace=STRING_SCHEMA, exclude=BOOLEAN_SCHEMA
        )
    ),
    manifests=build_array_schema(STRING_SCHEMA),
    infos=build_array_schema(build_object_schema(name=STRING_SCHEMA, value=STRING_SCHEMA)),
    syncOptions=build_object_schema(items=build_array_schema(STRING_SCHEMA)),
    retryStrategy=build_object_schema(
        limit=INTEGER_SCHEMA,
        refresh=BOOLEAN_SCHEMA,
        backoff=build_object_schema(duration=STRING_SCHEMA, maxDuration=STRING_SCHEMA, factor=INTEGER_SCHEMA),
    ),
)
ROLLBACK: Final = build_object_schema(
    id=INTEGER_SCHEMA,
    dryRun=BOOLEAN_SCHEMA,
    prune=BOOLEAN_SCHEMA,
    name=STRING_SCHEMA,
    appNamespace=STRING_SCHEMA,
    project=STRING_SCHEMA,
)
PATCH: Final = build_object_schema(
    "patch",
    name=STRING_SCHEMA,
    patch=STRING_SCHEMA,
    patchType=STRING_SCHEMA,
    appNamespace=STRING_SCHEMA,
    project=STRING_SCHEMA,
)
RESOURCE: Final = build_object_schema("manifest", manifest=STRING_SCHEMA)
NODE: Final = build_object_schema(
    "kind",
    "name",
    group=STRING_SCHEMA,
    version=STRING_SCHEMA,
    kind=STRING_SCHEMA,
    namespace=STRING_SCHEMA,
    name=STRING_SCHEMA,
    uid=STRING_SCHEMA,
    createdAt=STRING_SCHEMA,
    resourceVersion=STRING_SCHEMA,
    images=build_array_schema(STRING_SCHEMA),
    parentRefs=build_array_schema(REFERENCE),
    info=build_array_schema(build_object_schema(name=STRING_SCHEMA, value=STRING_SCHEMA)),
    health=build_object_schema(status=STRING_SCHEMA, message=STRING_SCHEMA),
    networkingInfo=OBJECT_SCHEMA,
)
TREE: Final = build_object_schema(
    "nodes",
    nodes=build_array_schema(NODE),
    orphanedNodes=build_array_schema(NODE),
    hosts=build_array_schema(OBJECT_SCHEMA),
)
DIFF: Final = build_object_schema(
    "kind",
    "name",
    group=STRING_SCHEMA,
    kind=STRING_SCHEMA,
    namespace=STRING_SCHEMA,
    name=STRING_SCHEMA,
    targetState=STRING_SCHEMA,
    liveState=STRING_SCHEMA,
    normalizedLiveState=STRING_SCHEMA,
    predictedLiveState=STRING_SCHEMA,
    resourceVersion=STRING_SCHEMA,
    modified=BOOLEAN_SCHEMA,
    hook=BOOLEAN_SCHEMA,
)
DIFFS: Final = build_object_schema("items", items=build_array_schema(DIFF))
MANIFESTS: Final = build_object_schema(
    "manifests",
    manifests=build_array_schema(STRING_SCHEMA),
    namespace=STRING_SCHEMA,
    server=STRING_SCHEMA,
    revision=STRING_SCHEMA,
    sourceType=STRING_SCHEMA,
)
WINDOW: Final = build_object_schema(
    kind=STRING_SCHEMA, schedule=STRING_SCHEMA, duration=STRING_SCHEMA, manualSync=BOOLEAN_SCHEMA
)
WINDOWS: Final = build_object_schema(
    "canSync",
    activeWindows=build_array_schema(WINDOW),
    assignedWindows=build_array_schema(WINDOW),
    canSync=BOOLEAN_SCHEMA,
)
COMMIT: Final = build_object_schema(
    author=STRING_SCHEMA,
    date=STRING_SCHEMA,
    message=STRING_SCHEMA,
    tags=build_array_schema(STRING_SCHEMA),
    signatureInfo=STRING_SCHEMA,
)
ACTIONS: Final = build_object_schema(
    "actions",
    actions=build_array_schema(
        build_object_schema(
            "name", name=STRING_SCHEMA, disabled=BOOLEAN_SCHEMA, params=build_array_schema(OBJECT_SCHEMA)
        )
    ),
)
ACTION: Final = build_object_schema(
    "action",
    action=STRING_SCHEMA,
    name=STRING_SCHEMA,
    appNamespace=STRING_SCHEMA,
    project=STRING_SCHEMA,
    namespace=STRING_SCHEMA,
    resourceName=STRING_SCHEMA,
    version=STRING_SCHEMA,
    group=STRING_SCHEMA,
    kind=STRING_SCHEMA,
    resourceActionParameters=build_array_schema(build_object_schema(name=STRING_SCHEMA, value=STRING_SCHEMA)),
)
LINKS: Final = build_object_schema(
    "items",
    items=build_array_schema(
        build_object_schema(
            "url", "title", url=STRING_SCHEMA, title=STRING_SCHEMA, description=STRING_SCHEMA, iconClass=STRING_SCHEMA
        )
    ),
)
EVENTS: Final = build_object_schema("items", metadata=OBJECT_SCHEMA, items=build_array_schema(OBJECT_SCHEMA))
NOTHING: Final = build_object_schema()
