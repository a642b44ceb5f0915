"""HTTP endpoints of resources: reads the request, calls the registry, encodes the response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from argosy.errors import ClusterError
from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.sandbox.apiserver import scale, status_errors
from argosy.sandbox.apiserver.deletion import Deletion, read_options
from argosy.sandbox.apiserver.http import watch_stream
from argosy.sandbox.apiserver.http.content_negotiation import form_for
from argosy.sandbox.apiserver.http.list_encoding import LIST_JOB_BYTES, entry_groups
from argosy.sandbox.apiserver.http.paths import Target
from argosy.sandbox.apiserver.http.request import PIECE_BYTES, Request
from argosy.sandbox.apiserver.http.request_bodies import read_call, read_object, read_patch, size_of
from argosy.sandbox.apiserver.http.response_encoding import Rendering
from argosy.sandbox.apiserver.http.write_budget import WatchLimit
from argosy.sandbox.apiserver.listing import Lister, Page, Query, parse_version, read_query, whole_number
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import Call, Written
from argosy.sandbox.apiserver.request_decoding import decoded_as
from argosy.sandbox.apiserver.subresources import Actions
from argosy.sandbox.store import Entry

OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
READABLE = ("", "status", "scale", "ephemeralcontainers")
STREAMS = ("attach", "exec", "portforward", "proxy")  # k8s: these upgrade the connection instead of sending an object
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Resources:
    def __init__(self, registry: Registry, actions: Actions, watches: WatchLimit) -> None:
        self._registry = registry
        self._deletion = Deletion(registry)
        self._lister = Lister(registry.store)
        self._actions = actions
        self._watches = watches
        self._work = registry.large_work

    async def serve(self, request: Request, target: Target, user: User) -> None:
        self._check_verb(request, target)
        if target.served.deprecation:
            request.notes = (target.served.deprecation,)
        match request.method:
            case "GET" if target.subresource not in READABLE:
                await self._part(request, target, user)
            case "GET" if target.name and not target.watch:
                await self._get(request, target, user)
            case "GET":
                await self._collection(request, target, user)
            case "POST" if target.subresource:
                await self._act(request, target, user)
            case "POST":
                await self._create(request, target, user)
            case "PUT":
                await self._update(request, target, user)
            case "PATCH":
                await self._patch(request, target, user)
            case "DELETE" if target.name:
                await self._delete(request, target, user)
            case _:
                await self._delete_collection(request, target, user)

    def _check_verb(self, request: Request, target: Target) -> None:
        resource, verb = target.served.resource, VERBS.get(request.method, "")
        if target.subresource:
            part = resource.subresource(target.subresource)
            if part is None:
                if resource.custom:  # k8s: a custom kind reports the object as not found
                    raise status_errors.not_found(resource, target.name)
                raise status_errors.no_such_resource()
            verbs: tuple[str, ...] = part.verbs
        else:
            verbs = resource.verbs
            if not target.name and verb in ("get", "delete"):
                verb = {"get": "list", "delete": "deletecollection"}[verb]
            nowhere = verb == "create" and resource.namespaced and not target.namespace
            if nowhere or bool(target.name) == (verb in ("create", "list", "deletecollection")):
                raise status_errors.method_not_allowed()
        if verb not in verbs:
            raise status_errors.method_not_allowed()

    # -- reading -------------------------------------------------------------------------------------------------

    async def _get(self, request: Request, target: Target, user: User) -> None:
        rendering = self._rendering(request, target)
        if version := request.query.get("resourceVersion"):
            await self._lister.wait_for(parse_version(version))
        served = target.served
        entry = self._registry.get(served, target.namespace, target.name, user, subresource=target.subresource)
        if target.subresource == "scale":
            body = rendering.scale(scale.read_scale(served, served.read(entry)))
        else:
            body = await self._rendered(rendering, entry, user, is_read=True)
        await request.respond(200, body, media=rendering.media)

    async def _rendered(self, rendering: Rendering, entry: Entry, user: User, *, is_read: bool = False) -> bytes:
        """Encode an entry; off the loop if it is large and not stored in this format (about 1 MB/s)."""
        size = 0 if rendering.is_as_stored else len(entry.body)
        run = self._work.run_read if is_read else self._work.run
        return await run(user.name, size, rendering.entry, entry)

    async def _collection(self, request: Request, target: Target, user: User) -> None:
        query = read_query(request.query)
        rendering = self._rendering(request, target)
        if target.watch or query.watch:
            named = f"metadata.name={target.name}" if target.name else ""
            fields = ",".join(part for part in (query.fields, named) if part)
            await self._watch(request, target, user, rendering, replace(query, watch=True, fields=fields))
            return
        self._registry.authorize(user, "list", target.served, target.namespace, query.single_name)
        page = await self._lister.page(target.served, target.namespace, query)
        await self._answer_page(request, rendering, page, user)

    async def _answer_page(self, request: Request, rendering: Rendering, page: Page, user: User) -> None:
        """Send a large list in chunks, or encode it off the loop if its format does not allow chunks."""
        size = sum(len(entry.body) for entry in page.entries)
        if size <= PIECE_BYTES:
            await request.respond(200, rendering.page(page), media=rendering.media)
            return
        with request.held(page.copied_bytes):
            if rendering.can_be_sent_in_pieces:
                await request.respond_in_pieces(200, rendering.pieces(page), media=rendering.media)
            else:
                body = await self._rendered_page(rendering, page, user)
                await request.respond(200, body, media=rendering.media)

    async def _rendered_page(self, rendering: Rendering, page: Page, user: User) -> bytes:
        """Encode a list in several jobs, so that large writes can run in between."""
        groups = []
        for entries in entry_groups(page.entries, LIST_JOB_BYTES):
            size = sum(len(entry.body) for entry in entries)
            groups.append(await self._work.run_read(user.name, size, rendering.items, entries))
        return await self._work.run_read(user.name, sum(map(len, groups)), rendering.joined_page, page, groups)

    async def _watch(self, request: Request, target: Target, user: User, rendering: Rendering, query: Query) -> None:
        name = target.name or query.single_name
        self._registry.authorize(user, "watch", target.served, target.namespace, name)
        media = rendering.stream_media
        with self._watches.count(user):
            await self._send_watch(request, target, rendering, query, media)

    async def _send_watch(
        self, request: Request, target: Target, rendering: Rendering, query: Query, media: str
    ) -> None:
        if query.initial_events and query.version:
            await self._lister.wait_for(parse_version(query.version))
        lines = await watch_stream.stream(self._registry.store, rendering, target.namespace, query)
        await request.start(200, media)
        await request.write(b"")
        sending = asyncio.ensure_future(_pump(request, lines))
        leaving = asyncio.ensure_future(request.gone())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.wait({sending})
        if not sending.cancelled():
            sending.result()  # raises the error that ended the stream
            await request.write(b"", more=False)

    async def _part(self, request: Request, target: Target, user: User) -> None:
        """k8s: logs are a stream of plain text, not an object."""
        if target.subresource != "log":
            raise self._no_way_in(target, user)
        query = request.query
        tail = query.get("tailLines", "")
        lines = self._actions.logs(
            target.served,
            target.namespace,
            target.name,
            user,
            container=query.get("container", ""),
            follow=query.get("follow", "") in ("1", "true"),
            tail=whole_number(tail) if tail else None,
            previous=query.get("previous", "") in ("1", "true"),
        )
        await request.start(200, "text/plain")
        async for line in lines:
            await request.write(line.encode() + b"\n")
        await request.write(b"", more=False)

    def _rendering(self, request: Request, target: Target) -> Rendering:
        form = form_for(request.header(b"accept"))
        return Rendering(target.served, form, request.query, self._registry.clock)

    # -- writing -------------------------------------------------------------------------------------------------

    def _call(self, request: Request, user: User) -> Call:
        return read_call(request.query, user, request.header(b"user-agent"), OPTIONS[request.method])

    async def _sent(self, request: Request, kind: str, call: Call) -> tuple[Any, Call]:
        strict = call.validation != "Ignore"
        body, media = await request.body(), request.header(b"content-type")
        read = partial(read_object, body, media, kind, strict=strict)
        sent = await self._work.run(call.user.name, len(body), read)
        return sent.value, replace(call, duplicates=sent.duplicates, size=size_of(body, media, sent.value))

    async def _create(self, request: Request, target: Target, user: User) -> None:
        call = self._call(request, user)
        rendering = self._rendering(request, target)
        value, call = await self._sent(request, target.served.resource.kind, call)
        if self._actions.answers(target.served):
            answer = await self._actions.review(target.served, target.namespace, value, call)
            await request.respond(201, rendering.encoded(answer), media=rendering.media)
            return
        written = await self._registry.create(target.served, target.namespace, value, call)
        await self._answer(request, rendering, written, user)

    async def _update(self, request: Request, target: Target, user: User) -> None:
        call = self._call(request, user)
        rendering = self._rendering(request, target)
        value, call = await self._sent(request, target.served.resource.kind, call)
        if target.subresource == "scale":
            written = await self._actions.scale(target.served, target.namespace, target.name, value, call)
            await self._answer_scale(request, rendering, written)
            return
        if target.subresource == "finalize":
            written = await self._actions.finalize(target.served, target.namespace, target.name, value, call)
        else:
            written = await self._registry.update(
                target.served, target.namespace, target.name, value, call, subresource=target.subresource
            )
        await self._answer(request, rendering, written, user)

    async def _patch(self, request: Request, target: Target, user: User) -> None:
        call = self._call(request, user)
        rendering = self._rendering(request, target)
        served = target.served
        body, media = await request.body(), request.header(b"content-type")
        kind, patch = await self._work.run(user.name, len(body), read_patch, body, media, served)
        call = replace(call, size=size_of(body, media, patch))
        where = (served, target.namespace, target.name)
        if kind is None and not request.query.get("fieldManager"):
            detail = field_error.required("fieldManager", "is required for apply patch")
            raise status_errors.invalid_options("PatchOptions", detail)
        if kind is not None and "force" in request.query:
            detail = field_error.forbidden("force", "may not be specified for non-apply patch")
            raise status_errors.invalid_options("PatchOptions", detail)
        if target.subresource == "scale":
            written = await self._actions.patch_scale(*where, patch, kind, call)
            await self._answer_scale(request, rendering, written)
        elif kind is None:
            written = await self._registry.apply(*where, patch, call, subresource=target.subresource)
            await self._answer(request, rendering, written, user)
        else:
            written = await self._registry.patch(*where, patch, kind, call, subresource=target.subresource)
            await self._answer(request, rendering, written, user)

    async def _answer_scale(self, request: Request, rendering: Rendering, written: Written) -> None:
        answer = scale.read_scale(written.served, written.manifest)
        await request.respond(200, rendering.encoded(answer), media=rendering.media)

    async def _act(self, request: Request, target: Target, user: User) -> None:
        if target.subresource in STREAMS:
            raise self._no_way_in(target, user)
        call = self._call(request, user)
        rendering = self._rendering(request, target)
        value, call = await self._sent(request, target.served.resource.kind, call)
        served, where = target.served, (target.namespace, target.name, target.subresource)
        answer = await self._actions.act(served, *where, value, call)
        await request.respond(201, rendering.encoded(answer), media=rendering.media)

    def _no_way_in(self, target: Target, user: User) -> ClusterError:
        return self._actions.no_way_in(target.served, target.namespace, target.name, target.subresource, user)

    async def _answer(self, request: Request, rendering: Rendering, written: Written, user: User) -> None:
        code = 201 if written.created else 200
        body = await self._rendered(rendering, written.entry, user)
        await request.respond(code, body, media=rendering.media, warnings=written.warnings)

    # -- deleting ------------------------------------------------------------------------------------------------

    async def _delete(self, request: Request, target: Target, user: User) -> None:
        rendering = self._rendering(request, target)
        options = read_options(await self._delete_body(request, user), request.query)
        call = Call(user, dry_run=options.dry_run)
        answer = await self._deletion.delete(target.served, target.namespace, target.name, options, call)
        if isinstance(answer, Written):
            await self._answer(request, rendering, answer, user)
        else:
            await request.respond(200, orjson.dumps(answer))

    async def _delete_collection(self, request: Request, target: Target, user: User) -> None:
        rendering = self._rendering(request, target)
        options = read_options(await self._delete_body(request, user), request.query)
        query = read_query(request.query)
        name = query.single_name
        self._registry.authorize(user, "deletecollection", target.served, target.namespace, name)
        page = await self._lister.page(target.served, target.namespace, query)
        deleted = await self._deletion.delete_all(target.served, page.entries, options)
        shown = page._replace(entries=deleted, revision=self._registry.store.revision)
        await self._answer_page(request, rendering, shown, user)

    async def _delete_body(self, request: Request, user: User) -> Manifest:
        body, media = await request.body(), request.header(b"content-type")

        def read() -> Manifest:
            return decoded_as("v1", "DeleteOptions", read_object(body, media, "DeleteOptions", strict=False).value)

        return await self._work.run(user.name, len(body), read) if body else {}


async def _pump(request: Request, lines: AsyncIterator[bytes]) -> None:
    async for line in lines:
        with request.held(len(line)):
            await request.write(line)
