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
from argosy.sandbox.apiserver.deletion import ObjectDeleter, read_delete_options
from argosy.sandbox.apiserver.http import watch_stream
from argosy.sandbox.apiserver.http.content_negotiation import negotiate_format
from argosy.sandbox.apiserver.http.paths import RequestTarget
from argosy.sandbox.apiserver.http.protobuf_yaml_list_encoder import MAX_LIST_JOB_BYTES, group_entries
from argosy.sandbox.apiserver.http.request_and_response_io import WRITE_CHUNK_BYTES, HttpRequest
from argosy.sandbox.apiserver.http.request_bodies import (
    estimate_work_bytes,
    read_object,
    read_patch,
    read_write_options,
)
from argosy.sandbox.apiserver.http.response_encoding import ResponseEncoder
from argosy.sandbox.apiserver.http.user_memory_and_watch_limits import WatchLimit
from argosy.sandbox.apiserver.listing import (
    Lister,
    ListOptions,
    ListPage,
    parse_int,
    parse_resource_version,
    read_list_options,
)
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.request_body_decoding_and_patches import decode_as_kind
from argosy.sandbox.apiserver.subresources import SubresourceHandler
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall, WriteResult
from argosy.sandbox.store import StoreEntry

OPTIONS_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
READABLE_SUBRESOURCES = ("", "status", "scale", "ephemeralcontainers")
# k8s: these upgrade the connection instead of sending an object
CONNECT_SUBRESOURCES = ("attach", "exec", "portforward", "proxy")
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ResourceEndpoints:
    def __init__(self, registry: Registry, actions: SubresourceHandler, watches: WatchLimit) -> None:
        self._registry = registry
        self._deleter = ObjectDeleter(registry)
        self._lister = Lister(registry.store)
        self._subresources = actions
        self._watch_limit = watches
        self._off_loop_executor = registry.off_loop_executor

    async def serve(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        self._check_verb(request, target)
        if target.served.deprecation_warning:
            request.warnings = (target.served.deprecation_warning,)
        match request.method:
            case "GET" if target.subresource not in READABLE_SUBRESOURCES:
                await self._stream_logs(request, target, user)
            case "GET" if target.name and not target.is_watch:
                await self._get(request, target, user)
            case "GET":
                await self._list_or_watch(request, target, user)
            case "POST" if target.subresource:
                await self._create_subresource(request, target, user)
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

    def _check_verb(self, request: HttpRequest, target: RequestTarget) -> None:
        resource, verb = target.served.resource, VERBS.get(request.method, "")
        if target.subresource:
            subresource = resource.find_subresource(target.subresource)
            if subresource is None:
                if resource.custom:  # k8s: a custom kind reports the object as not found
                    raise status_errors.not_found(resource, target.name)
                raise status_errors.no_such_resource()
            verbs: tuple[str, ...] = subresource.verbs
        else:
            verbs = resource.verbs
            if not target.name and verb in ("get", "delete"):
                verb = {"get": "list", "delete": "deletecollection"}[verb]
            lacks_namespace = verb == "create" and resource.namespaced and not target.namespace
            if lacks_namespace or bool(target.name) == (verb in ("create", "list", "deletecollection")):
                raise status_errors.method_not_allowed()
        if verb not in verbs:
            raise status_errors.method_not_allowed()

    # -- reading -------------------------------------------------------------------------------------------------

    async def _get(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        encoder = self._build_encoder(request, target)
        if version := request.query.get("resourceVersion"):
            await self._lister.wait_for_revision(parse_resource_version(version))
        served = target.served
        entry = self._registry.get(served, target.namespace, target.name, user, subresource=target.subresource)
        if target.subresource == "scale":
            body = encoder.encode_scale(scale.build_scale(served, served.read_entry(entry)))
        else:
            body = await self._encode_entry(encoder, entry, user, is_read=True)
        await request.respond(200, body, media=encoder.media_type)

    async def _encode_entry(
        self, encoder: ResponseEncoder, entry: StoreEntry, user: User, *, is_read: bool = False
    ) -> bytes:
        """Encode an entry; off the loop if it is large and not stored in this format (about 1 MB/s)."""
        size = 0 if encoder.returns_stored_bytes else len(entry.body)
        run = self._off_loop_executor.run_read if is_read else self._off_loop_executor.run
        return await run(user.name, size, encoder.encode_entry, entry)

    async def _list_or_watch(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        options = read_list_options(request.query)
        encoder = self._build_encoder(request, target)
        if target.is_watch or options.watch:
            name_selector = f"metadata.name={target.name}" if target.name else ""
            field_selector = ",".join(selector for selector in (options.field_selector, name_selector) if selector)
            await self._watch(
                request, target, user, encoder, replace(options, watch=True, field_selector=field_selector)
            )
            return
        self._registry.authorize(user, "list", target.served, target.namespace, options.single_name)
        page = await self._lister.list_page(target.served, target.namespace, options)
        await self._respond_with_page(request, encoder, page, user)

    async def _respond_with_page(
        self, request: HttpRequest, encoder: ResponseEncoder, page: ListPage, user: User
    ) -> None:
        """Send a large list in chunks, or encode it off the loop if its format does not allow chunks."""
        size = sum(len(entry.body) for entry in page.entries)
        if size <= WRITE_CHUNK_BYTES:
            await request.respond(200, encoder.encode_page(page), media=encoder.media_type)
            return
        with request.count_held_bytes(page.copied_bytes):
            if encoder.can_send_in_chunks:
                await request.respond_in_chunks(200, encoder.encode_page_in_chunks(page), media=encoder.media_type)
            else:
                body = await self._encode_page(encoder, page, user)
                await request.respond(200, body, media=encoder.media_type)

    async def _encode_page(self, encoder: ResponseEncoder, page: ListPage, user: User) -> bytes:
        """Encode a list in several jobs, so that large writes can run in between."""
        groups = []
        for entries in group_entries(page.entries, MAX_LIST_JOB_BYTES):
            size = sum(len(entry.body) for entry in entries)
            groups.append(await self._off_loop_executor.run_read(user.name, size, encoder.encode_page_items, entries))
        return await self._off_loop_executor.run_read(user.name, sum(map(len, groups)), encoder.join_page, page, groups)

    async def _watch(
        self, request: HttpRequest, target: RequestTarget, user: User, encoder: ResponseEncoder, options: ListOptions
    ) -> None:
        name = target.name or options.single_name
        self._registry.authorize(user, "watch", target.served, target.namespace, name)
        media = encoder.watch_media_type
        with self._watch_limit.count(user):
            await self._send_watch(request, target, encoder, options, media)

    async def _send_watch(
        self, request: HttpRequest, target: RequestTarget, encoder: ResponseEncoder, options: ListOptions, media: str
    ) -> None:
        if options.send_initial_events and options.version:
            await self._lister.wait_for_revision(parse_resource_version(options.version))
        lines = await watch_stream.open_watch_stream(self._registry.store, encoder, target.namespace, options)
        await request.start_response(200, media)
        await request.write(b"")
        sending = asyncio.ensure_future(_write_lines(request, lines))
        disconnect = asyncio.ensure_future(request.wait_for_disconnect())
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            sending.cancel()
            await asyncio.wait({sending})
        if not sending.cancelled():
            sending.result()  # raises the error that ended the stream
            await request.write(b"", has_more=False)

    async def _stream_logs(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        """k8s: logs are a stream of plain text, not an object."""
        if target.subresource != "log":
            raise self._build_connect_error(target, user)
        query = request.query
        tail = query.get("tailLines", "")
        lines = self._subresources.stream_logs(
            target.served,
            target.namespace,
            target.name,
            user,
            container=query.get("container", ""),
            follow=query.get("follow", "") in ("1", "true"),
            tail=parse_int(tail) if tail else None,
            previous=query.get("previous", "") in ("1", "true"),
        )
        await request.start_response(200, "text/plain")
        async for line in lines:
            await request.write(line.encode() + b"\n")
        await request.write(b"", has_more=False)

    def _build_encoder(self, request: HttpRequest, target: RequestTarget) -> ResponseEncoder:
        response_format = negotiate_format(request.header(b"accept"))
        return ResponseEncoder(target.served, response_format, request.query, self._registry.clock)

    # -- writing -------------------------------------------------------------------------------------------------

    def _read_write_options(self, request: HttpRequest, user: User) -> RegistryCall:
        return read_write_options(request.query, user, request.header(b"user-agent"), OPTIONS_KINDS[request.method])

    async def _read_body(self, request: HttpRequest, kind: str, call: RegistryCall) -> tuple[Any, RegistryCall]:
        strict = call.validation != "Ignore"
        body, media = await request.read_body(), request.header(b"content-type")
        read_body = partial(read_object, body, media, kind, strict=strict)
        decoded = await self._off_loop_executor.run(call.user.name, len(body), read_body)
        return decoded.value, replace(
            call, duplicates=decoded.duplicates, body_bytes=estimate_work_bytes(body, media, decoded.value)
        )

    async def _create(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        call = self._read_write_options(request, user)
        encoder = self._build_encoder(request, target)
        body, call = await self._read_body(request, target.served.resource.kind, call)
        if self._subresources.is_review_kind(target.served):
            review = await self._subresources.create_review(target.served, target.namespace, body, call)
            await request.respond(201, encoder.encode_manifest(review), media=encoder.media_type)
            return
        result = await self._registry.create(target.served, target.namespace, body, call)
        await self._respond_with_result(request, encoder, result, user)

    async def _update(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        call = self._read_write_options(request, user)
        encoder = self._build_encoder(request, target)
        body, call = await self._read_body(request, target.served.resource.kind, call)
        if target.subresource == "scale":
            result = await self._subresources.update_scale(target.served, target.namespace, target.name, body, call)
            await self._respond_with_scale(request, encoder, result)
            return
        if target.subresource == "finalize":
            result = await self._subresources.finalize(target.served, target.namespace, target.name, body, call)
        else:
            result = await self._registry.update(
                target.served, target.namespace, target.name, body, call, subresource=target.subresource
            )
        await self._respond_with_result(request, encoder, result, user)

    async def _patch(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        call = self._read_write_options(request, user)
        encoder = self._build_encoder(request, target)
        served = target.served
        body, media = await request.read_body(), request.header(b"content-type")
        kind, patch = await self._off_loop_executor.run(user.name, len(body), read_patch, body, media, served)
        call = replace(call, body_bytes=estimate_work_bytes(body, media, patch))
        object_target = (served, target.namespace, target.name)
        if kind is None and not request.query.get("fieldManager"):
            invalid_field = field_error.required("fieldManager", "is required for apply patch")
            raise status_errors.invalid_options("PatchOptions", invalid_field)
        if kind is not None and "force" in request.query:
            invalid_field = field_error.forbidden("force", "may not be specified for non-apply patch")
            raise status_errors.invalid_options("PatchOptions", invalid_field)
        if target.subresource == "scale":
            result = await self._subresources.patch_scale(*object_target, patch, kind, call)
            await self._respond_with_scale(request, encoder, result)
        elif kind is None:
            result = await self._registry.apply(*object_target, patch, call, subresource=target.subresource)
            await self._respond_with_result(request, encoder, result, user)
        else:
            result = await self._registry.patch(*object_target, patch, kind, call, subresource=target.subresource)
            await self._respond_with_result(request, encoder, result, user)

    async def _respond_with_scale(self, request: HttpRequest, encoder: ResponseEncoder, result: WriteResult) -> None:
        scale_manifest = scale.build_scale(result.served, result.manifest)
        await request.respond(200, encoder.encode_manifest(scale_manifest), media=encoder.media_type)

    async def _create_subresource(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        if target.subresource in CONNECT_SUBRESOURCES:
            raise self._build_connect_error(target, user)
        call = self._read_write_options(request, user)
        encoder = self._build_encoder(request, target)
        body, call = await self._read_body(request, target.served.resource.kind, call)
        served, object_target = target.served, (target.namespace, target.name, target.subresource)
        manifest = await self._subresources.create_subresource(served, *object_target, body, call)
        await request.respond(201, encoder.encode_manifest(manifest), media=encoder.media_type)

    def _build_connect_error(self, target: RequestTarget, user: User) -> ClusterError:
        return self._subresources.build_connect_error(
            target.served, target.namespace, target.name, target.subresource, user
        )

    async def _respond_with_result(
        self, request: HttpRequest, encoder: ResponseEncoder, result: WriteResult, user: User
    ) -> None:
        code = 201 if result.is_created else 200
        body = await self._encode_entry(encoder, result.entry, user)
        await request.respond(code, body, media=encoder.media_type, warnings=result.warnings)

    # -- deleting ------------------------------------------------------------------------------------------------

    async def _delete(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        encoder = self._build_encoder(request, target)
        options = read_delete_options(await self._read_delete_body(request, user), request.query)
        call = RegistryCall(user, dry_run=options.dry_run)
        result = await self._deleter.delete(target.served, target.namespace, target.name, options, call)
        if isinstance(result, WriteResult):
            await self._respond_with_result(request, encoder, result, user)
        else:
            await request.respond(200, orjson.dumps(result))

    async def _delete_collection(self, request: HttpRequest, target: RequestTarget, user: User) -> None:
        encoder = self._build_encoder(request, target)
        options = read_delete_options(await self._read_delete_body(request, user), request.query)
        list_options = read_list_options(request.query)
        name = list_options.single_name
        self._registry.authorize(user, "deletecollection", target.served, target.namespace, name)
        page = await self._lister.list_page(target.served, target.namespace, list_options)
        deleted_entries = await self._deleter.delete_entries(target.served, page.entries, options)
        deleted_page = page._replace(entries=deleted_entries, revision=self._registry.store.revision)
        await self._respond_with_page(request, encoder, deleted_page, user)

    async def _read_delete_body(self, request: HttpRequest, user: User) -> Manifest:
        body, media = await request.read_body(), request.header(b"content-type")

        def decode_options() -> Manifest:
            return decode_as_kind("v1", "DeleteOptions", read_object(body, media, "DeleteOptions", strict=False).value)

        return await self._off_loop_executor.run(user.name, len(body), decode_options) if body else {}


async def _write_lines(request: HttpRequest, lines: AsyncIterator[bytes]) -> None:
    async for line in lines:
        with request.count_held_bytes(len(line)):
            await request.write(line)
