"""JSON schemas of API requests and responses, for the OpenAPI document.

In: –. Out: schemas. Never: a field that could carry a credential.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer"}
ANY: Final[Schema] = {"type": "object"}


def fields(*required: str, **properties: Schema) -> Schema:
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def many(of: Schema) -> Schema:
    return {"type": "array", "items": of}


METADATA: Final = fields(
    name=TEXT, namespace=TEXT, labels={"type": "object", "additionalProperties": TEXT},
    annotations={"type": "object", "additionalProperties": TEXT}, finalizers=many(TEXT),
)  # fmt: skip
SOURCE: Final = fields(
    repoURL=TEXT, path=TEXT, targetRevision=TEXT, chart=TEXT, ref=TEXT, name=TEXT, helm=ANY, kustomize=ANY,
    directory=ANY, plugin=ANY,
)  # fmt: skip
SPEC: Final = fields(
    project=TEXT, source=SOURCE, sources=many(SOURCE), destination=fields(server=TEXT, name=TEXT, namespace=TEXT),
    syncPolicy=ANY, ignoreDifferences=many(ANY), info=many(ANY), revisionHistoryLimit=COUNT,
)  # fmt: skip
APPLICATION: Final = fields(metadata=METADATA, spec=ANY, status=ANY, operation=ANY)
TO_WRITE: Final = fields("metadata", "spec", metadata=METADATA, spec=SPEC, operation=ANY)
APPLICATIONS: Final = fields(metadata=ANY, items=many(APPLICATION))
REFERENCE: Final = fields(group=TEXT, version=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT)
SYNC: Final = fields(
    name=TEXT, appNamespace=TEXT, project=TEXT, revision=TEXT, revisions=many(TEXT), sourcePositions=many(COUNT),
    dryRun=FLAG, prune=FLAG, strategy=fields(apply=fields(force=FLAG), hook=fields(force=FLAG)),
    resources=many(fields(group=TEXT, kind=TEXT, name=TEXT, namespace=TEXT, exclude=FLAG)), manifests=many(TEXT),
    infos=many(fields(name=TEXT, value=TEXT)), syncOptions=fields(items=many(TEXT)),
    retryStrategy=fields(
        limit=COUNT, refresh=FLAG, backoff=fields(duration=TEXT, maxDuration=TEXT, factor=COUNT)
    ),
)  # fmt: skip
ROLLBACK: Final = fields(id=COUNT, dryRun=FLAG, prune=FLAG, name=TEXT, appNamespace=TEXT, project=TEXT)
PATCH: Final = fields("patch", name=TEXT, patch=TEXT, patchType=TEXT, appNamespace=TEXT, project=TEXT)
RESOURCE: Final = fields("manifest", manifest=TEXT)
NODE: Final = fields(
    "kind", "name", group=TEXT, version=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT, createdAt=TEXT,
    resourceVersion=TEXT, images=many(TEXT), parentRefs=many(REFERENCE), info=many(fields(name=TEXT, value=TEXT)),
    health=fields(status=TEXT, message=TEXT), networkingInfo=ANY,
)  # fmt: skip
TREE: Final = fields("nodes", nodes=many(NODE), orphanedNodes=many(NODE), hosts=many(ANY))
DIFF: Final = fields(
    "kind", "name", group=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, targetState=TEXT, liveState=TEXT,
    normalizedLiveState=TEXT, predictedLiveState=TEXT, resourceVersion=TEXT, modified=FLAG, hook=FLAG,
)  # fmt: skip
DIFFS: Final = fields("items", items=many(DIFF))
MANIFESTS: Final = fields(
    "manifests", manifests=many(TEXT), namespace=TEXT, server=TEXT, revision=TEXT, sourceType=TEXT
)  # fmt: skip
WINDOW: Final = fields(kind=TEXT, schedule=TEXT, duration=TEXT, manualSync=FLAG)
WINDOWS: Final = fields("canSync", activeWindows=many(WINDOW), assignedWindows=many(WINDOW), canSync=FLAG)
COMMIT: Final = fields(author=TEXT, date=TEXT, message=TEXT, tags=many(TEXT), signatureInfo=TEXT)
ACTIONS: Final = fields("actions", actions=many(fields("name", name=TEXT, disabled=FLAG, params=many(ANY))))
ACTION: Final = fields(
    "action", action=TEXT, name=TEXT, appNamespace=TEXT, project=TEXT, namespace=TEXT, resourceName=TEXT, version=TEXT,
    group=TEXT, kind=TEXT, resourceActionParameters=many(fields(name=TEXT, value=TEXT)),
)  # fmt: skip
LINKS: Final = fields(
    "items", items=many(fields("url", "title", url=TEXT, title=TEXT, description=TEXT, iconClass=TEXT))
)
EVENTS: Final = fields("items", metadata=ANY, items=many(ANY))
NOTHING: Final = fields()
