"""Find the Application that a request with a body refers to; path, query and body must agree.

In: a request. Out: Found. Never: authorizes one Application and lets the request write another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from argosy.errors import UserError
from argosy.web.api.body_fields import Body, same_name
from argosy.web.object_lookup import application
from argosy.web.request import Asked, Query
from argosy.web.route import Found


async def of_body(asked: Asked) -> Found | None:
    """argo: The body may also contain `name`, `appNamespace` and `project`."""
    body = Body(await asked.mapping())
    same_name(asked.values["name"], body.text("name"))
    return await application(_placed(asked, body.text("appNamespace"), body.text("project")))


async def of_manifest(asked: Asked) -> Found | None:
    """Find the Application by the metadata of the manifest in the body."""
    metadata = Body(await asked.mapping()).body("metadata") or Body({})
    same_name(asked.values["name"], metadata.text("name"))
    return await application(_placed(asked, metadata.text("namespace"), ""))


def finer(verb: str) -> Callable[[Asked], Awaitable[Found | None]]:
    """argo: Changing an object of an Application needs the action `update/<group>/<kind>/<namespace>/<name>`."""

    async def resolve(asked: Asked) -> Found | None:
        found = await application(asked)
        query = asked.query
        parts = (query.text("group"), query.text("kind"), query.text("namespace"), query.text("resourceName"))
        return None if found is None else replace(found, action="/".join((verb, *parts)))

    return resolve


def _placed(asked: Asked, namespace: str, project: str) -> Asked:
    query = asked.query
    words = []
    for name, said in (("appNamespace", namespace), ("project", project)):
        typed = query.text(name)
        if typed and said and typed != said:
            raise UserError(f"the query has {typed!r} and the body has {said!r}; send the same value", where=name)
        if typed or said:
            words.append((name, typed or said))
    return replace(asked, query=Query(words))
