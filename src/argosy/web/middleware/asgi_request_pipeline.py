"""ASGI application: runs each request through the middleware and redacts its response.

In: ASGI HTTP requests. Out: responses. Never: an unredacted response; a route without its permission check. The only
module that depends on the web framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from argosy.fair_share import Tenant, charge_work_to
from argosy.gitops.application import Application
from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.per_application_secret_masks import build_masks
from argosy.gitops.redaction.secret_object_redaction import list_sensitive_annotations, redact_secrets
from argosy.observability.redaction.four_byte_word_filter import list_words
from argosy.observability.redaction.secret_mask import LogMaskFilter, SecretMask
from argosy.web import authorization, error_details, request_limits
from argosy.web.auth import login_set_cookie_headers
from argosy.web.auth.authenticator import ARGOCD_COOKIE
from argosy.web.auth.caller import NOBODY, BadCredential, Caller, RequestCredentials
from argosy.web.event_cache import EventCache
from argosy.web.middleware import (
    audit,
    compression,
    csrf_check,
    error_responses,
    masked_write_guard,
    request_head,
    response_headers,
    stream_redaction_and_reauthorization,
)
from argosy.web.middleware.grpc_gateway import GrpcGateway, find_call_parameters, is_grpc_call
from argosy.web.middleware.page_context import build_frame_values
from argosy.web.middleware.response_serialization import HTML, JSON, serialize_response
from argosy.web.page_templates import render_page
from argosy.web.request import NotFoundOrForbidden, QueryParameters, RequestContext
from argosy.web.request_input_echo import FormFieldTokens, conceal_form_fields, conceal_request, restore_sent_fields
from argosy.web.response_placeholder_restoration import NO_ECHO, InputEcho
from argosy.web.responses import BytesResponse, Headers, PageResponse, RedirectResponse, StreamResponse, WebResponse
from argosy.web.route import READ_METHODS, Public, Route, RouteMatch, RouteTree, is_api_path
from argosy.web.secret_mask_by_request_scope import conceal_secrets, find_request_mask
from argosy.web.site_services import Site

log = logging.getLogger(__name__)
THREAD_THRESHOLD_BYTES: Final = 256 << 10  # bytes; larger responses are redacted and compressed in a thread


class WebApplication:
    """The ASGI application. `close` ends open streams, so that the server can stop at once."""

    def __init__(self, site: Site, routes: Sequence[Route]) -> None:
        self.site, self.routes = site, tuple(routes)
        self.tree = RouteTree(routes)
        self.write_rate = request_limits.WriteRateLimiter()
        control_namespace = site.service.control_namespace
        self.mask: SecretMask = build_mask(site.cluster_view, control_namespace)
        masks = build_masks(site.cluster_view, control_namespace, self.mask)
        self.mask.find_line_scope = masks.find_log_scope
        self.build_request = partial(
            RequestContext,
            service=site.service,
            cluster_view=site.cluster_view,
            authenticator=site.authenticator,
            options=site.options,
            live_updates=site.live_updates,
            masks=masks,
            events=EventCache(site.service.cluster),
            drift_texts=site.state.drift_texts,
        )
        self.closing = asyncio.Event()
        limits, build_handler = site.state.concurrency_limits, partial(_RequestHandler, self)
        self.grpc_gateway = GrpcGateway(
            self._handle, build_handler, self.tree, limits, self.closing, is_tls=site.options.is_tls
        )

    @property
    def log_filter(self) -> LogMaskFilter:
        return LogMaskFilter(self.mask)

    def close(self) -> None:
        self.closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        await (self.grpc_gateway if is_grpc_call(scope) else self._handle)(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await _RequestHandler(self, scope, receive).handle()
        await response(scope, receive, send)


class _RequestHandler:
    """One request on its way through the middleware."""

    def __init__(self, entry: WebApplication, scope: MutableMapping[str, Any], receive: Receive) -> None:
        self.application, self.site, self.scope = entry, entry.site, scope
        self.limits = entry.site.state.concurrency_limits
        self.request = Request(scope, receive)
        self.method: str = scope["method"]
        self.raw_path = request_head.get_raw_path(scope)
        self.path: str = scope["path"]
        self.headers: dict[str, str] = {}
        self.route: Route | None = None
        self.context: RequestContext | None = None
        self.credential_error: BadCredential | None = None
        self.quotes_request = False  # the response is an error about the body of a change
        self.is_authorized = False  # False: only the request itself was read, so nothing is redacted

    async def handle(self) -> Response:
        code = 500
        try:
            response = await self._respond()
            code = response.status_code
        except asyncio.CancelledError:
            code = 499 if request_head.is_client_gone(self.scope) else 504
            raise
        finally:
            self._record_result(code)
        return response

    async def _respond(self) -> Response:
        try:
            answer = await self._route_request()
            response = await self._build_response(answer)
            self._renew_session_cookie(response)
        except ClientDisconnect:
            response = Response(status_code=499)
        except Exception as error:
            self.quotes_request = error_details.quotes_request(error)
            response = await self._build_response(self._build_error_response(error))
        return response

    def _record_result(self, code: int) -> None:
        state = self.site.state
        if self.route and (self.route.is_mutating or (self.context and self.context.memory.audit_entries)):
            request = self.context or self._build_anonymous_context()
            audit.write_audit_lines(request, code, state.audit_trail)
        state.request_counter.count_request(self.route.path if self.route else "", self.method, code)

    def record_refusal(self, route: Route | None, code: int) -> None:
        self.route, self.method = route, route.method if route else self.method
        self._record_result(code)

    def _renew_session_cookie(self, response: Response) -> None:
        """Renew the session cookie of an active browser."""
        caller = self.context.caller if self.context else NOBODY
        if caller.credential_kind != "cookie" or any(name == b"set-cookie" for name, _ in response.raw_headers):
            return
        if token := self.site.authenticator.renew_token(caller):
            name, value = login_set_cookie_headers.build_session_cookie(
                self.site.authenticator.cookie, token, is_tls=self.site.options.is_tls
            )
            response.raw_headers.append((name.encode(), value.encode()))

    # -- request -------------------------------------------------------------------------------------------------

    async def identify_caller(self) -> Caller:
        self.headers = request_head.read_headers(self.scope, self.site.options)
        caller = None
        try:
            caller = await self.site.authenticator.identify(self._read_credentials())
        except BadCredential as error:
            self.credential_error = error
        self.context = self._build_context(caller or NOBODY, {}, QueryParameters([]))
        return self.context.caller

    async def _route_request(self) -> WebResponse:
        self.headers = request_head.read_headers(self.scope, self.site.options)
        match = None
        with suppress(UnicodeDecodeError):
            is_call = find_call_parameters(self.scope) is not None
            match = self.application.tree.find(self.method, self.raw_path, accepts_any_name=is_call)
        route = self.route = match.route if match else None
        if match is None or route is None:
            await self._identify_for_missing_page()
            if match is None:
                raise error_details.RouteNotFound if is_api_path(self.path) else NotFoundOrForbidden
            return error_responses.build_method_not_allowed(match.allowed_methods, self.path)
        with self._limit_concurrency(route):
            async with asyncio.timeout(request_limits.REQUEST_TIMEOUT_SECONDS):
                return await self._authorize_and_run(route, match)

    def _limit_concurrency(self, route: Route) -> AbstractContextManager[None]:
        if isinstance(route.access, Public) and route.is_mutating:
            return self.limits.limit_anonymous(self.client_address)
        return self.limits.limit_request(is_change=route.is_mutating)

    @property
    def client_address(self) -> str:
        return request_head.find_peer(self.site, self.scope)

    async def _identify_for_missing_page(self) -> None:
        """Identify the caller for pages that do not exist, so that they show the signed-in layout."""
        if not is_api_path(self.path):
            with suppress(BadCredential):
                if caller := await self.site.authenticator.identify(self._read_credentials()):
                    self.context = self._build_context(caller, {}, QueryParameters([]))

    async def _authorize_and_run(self, route: Route, match: RouteMatch) -> WebResponse:
        request_limits.check_content_length(self.headers.get("content-length", ""), route.max_body_bytes)
        caller = await self._authenticate(route)
        request = self.context = self._build_context(caller, match.values)
        if caller.is_nobody and not isinstance(route.access, Public):
            raise authorization.NotAuthenticated
        csrf_check.check_origin(self.site.options, route, self.headers, caller)
        await csrf_check.check_csrf_token(route, request)
        request = self.context = await authorization.authorize(route, request)
        if masked_write_guard.writes_object(route):
            await masked_write_guard.check_placeholders(request, is_form=not route.is_api)
        if masked_write_guard.is_limited(route, request):
            self.application.write_rate.count_write(caller.name, request.rbac_object.partition("/")[0])
        self.is_authorized = True
        with charge_work_to(_find_tenant(request)):
            if not route.is_mutating:
                request = self.context = await conceal_secrets(route, request)
            return await route.handler(request)

    @property
    def _echo(self) -> InputEcho:
        """Placeholders in the request, and for live updates those in the address of the page."""
        if self.context is None:
            return NO_ECHO
        memory = self.context.memory
        return (memory.page.memory.echo if memory.page else NO_ECHO) + memory.echo

    def _read_credentials(self) -> RequestCredentials:
        header = self.headers.get("authorization", "")
        scheme, _, token = header.partition(" ")
        # an empty header or another scheme is an invalid credential, not a missing one
        bearer = (token.strip() if scheme.lower() == "bearer" else "") or header
        if not bearer and is_api_path(self.path) and not csrf_check.is_sent_by_browser(self.headers):
            bearer = self.request.cookies.get(ARGOCD_COOKIE, "")  # argo: programs send their token in this cookie, too
        return RequestCredentials(bearer=bearer, cookies=self.request.cookies, peer=self.client_address)

    async def _authenticate(self, route: Route) -> Caller:
        try:
            return await self.site.authenticator.identify(self._read_credentials()) or NOBODY
        except BadCredential:
            if isinstance(route.access, Public):
                return NOBODY
            raise

    def _build_anonymous_context(self) -> RequestContext:
        """Return the context of a request that failed early; its query may be malformed."""
        return self._build_context(NOBODY, {}, QueryParameters([]))

    def _build_context(self, caller: Caller, values: Any, query: QueryParameters | None = None) -> RequestContext:
        live_updates = self.site.live_updates
        body = request_limits.RequestBody(self.request.stream(), *self._get_body_limits())
        return self.application.build_request(
            method=self.method,
            path=self.path,
            path_parameters=values,
            query=self._read_query() if query is None else query,
            headers=self.headers,
            caller=caller,
            rbac_resource=self.route.rbac_resource if self.route else "",
            peer=self.client_address,
            live_position=live_updates.position if live_updates else "",  # before anything is read
            read_body=body.read,
            read_body_line=body.read_line,
        )

    def _read_query(self) -> QueryParameters:
        parameters = find_call_parameters(self.scope)
        return QueryParameters.parse(self.scope["query_string"].decode("latin-1")) if parameters is None else parameters

    def _get_body_limits(self) -> tuple[int, float]:
        route = self.route
        is_public = route is not None and isinstance(route.access, Public)
        return (
            route.max_body_bytes if route else 0,
            request_limits.ANONYMOUS_BODY_TIMEOUT_SECONDS if is_public else request_limits.REQUEST_TIMEOUT_SECONDS,
        )

    def _build_error_response(self, error: Exception) -> WebResponse:
        details = error_details.describe_error(error)
        if self.context is None or self.context.caller.is_nobody:
            details = error_details.drop_quoted_input(details)
        query = self.scope["query_string"].decode("latin-1")
        url = f"{self.raw_path}?{query}" if query else self.raw_path
        return error_responses.build_error_response(
            details, is_api=is_api_path(self.path), is_reading=self.method in READ_METHODS, path=url
        )

    # -- response ------------------------------------------------------------------------------------------------

    async def _build_response(self, answer: WebResponse) -> Response:
        is_fixed = isinstance(answer, BytesResponse) and answer.is_immutable
        headers = response_headers.build_headers(
            self._mask_headers(answer.headers), is_tls=self.site.options.is_tls, is_immutable=is_fixed
        )
        if isinstance(answer, StreamResponse):
            return self._build_stream_response(answer, headers)
        if isinstance(answer, RedirectResponse):
            headers += self._mask_headers(
                (("location", response_headers.get_safe_location(answer)),), is_outside=answer.is_external
            )
        data, media = await serialize_response(answer, self._list_sensitive_annotations, self._render_page)
        finish = partial(self._mask_and_compress, data, media, is_fixed=is_fixed or answer.is_from_request_only)
        data, is_compressed = await asyncio.to_thread(finish) if len(data) > THREAD_THRESHOLD_BYTES else finish()
        if is_compressed:
            headers.append(("content-encoding", "gzip"))
        headers.append(("vary", "accept-encoding, cookie"))
        response = Response(data, status_code=answer.code, media_type=None)
        if media:
            headers.append(("content-type", media))
        _set_headers(response, headers)
        return response

    def _mask_headers(self, headers: Headers, *, is_outside: bool = False) -> Headers:
        """Redact headers. Cookies are for their receiver; strangers and other sites get back what they sent."""
        if is_outside or self.context is None or self.context.caller.is_nobody:
            return headers
        return tuple((name, value if name == "set-cookie" else self._mask_header(value)) for name, value in headers)

    def _mask_header(self, text: str) -> str:
        if not self.is_authorized:
            return text
        mask = self._build_mask(quotes_request=True)
        return self._echo.restore(mask.mask_text(text).encode("utf-8", "surrogatepass")).decode()

    def _build_mask(self, *, quotes_request: bool) -> SecretMask:
        assert self.context and self.route
        return find_request_mask(self.context, quotes_request=self.route.is_mutating and quotes_request)

    def _list_sensitive_annotations(self) -> tuple[str, ...]:
        return list_sensitive_annotations(self.site.cluster_view.cache, self.site.service.control_namespace)

    def _mask_and_compress(self, data: bytes, media: str, *, is_fixed: bool) -> tuple[bytes, bool]:
        if self.is_authorized and not is_fixed:  # static files contain no secrets
            fields = FormFieldTokens()
            if media == HTML and self.context and self.context.memory.form is not None:
                data, fields = conceal_form_fields(data, self.context.memory.form)
            words = list_words(data)
            mask = self._build_mask(quotes_request=self.quotes_request)  # only errors and redirects quote a change
            masked = mask.mask_media(data, media, words)
            if self.route and self.context and masked_write_guard.stores_document(self.route) and media == JSON:
                masked = restore_sent_fields(masked, data, self.context.memory.document)
            data = fields.restore(self._echo.restore(masked, words if masked is data else None))
        return compression.compress(data, media, self.headers.get("accept-encoding", ""))

    def _render_page(self, page: PageResponse) -> str:
        request = self.context or self._build_anonymous_context()
        values = redact_secrets(dict(page.values), self._list_sensitive_annotations())
        if self.route and self.route.is_mutating and self.is_authorized and not page.is_from_request_only:
            # the layout quotes the URL, which the caller sent; the rest of the page was read
            request, request.memory.echo = conceal_request(request, find_request_mask(request).find_values)
        return render_page(page.template, {**build_frame_values(request), **values})

    def _build_stream_response(self, answer: StreamResponse, headers: list[tuple[str, str]]) -> Response:
        request, route = self.context, self.route
        assert request and route
        self.limits.check_stream_limit(request.caller.name)
        find_revocation = partial(authorization.find_revocation, route, request)
        is_past = partial(self.site.authenticator.is_expired, request.caller)
        limits, closing, echo = self.limits, self.application.closing, self._echo
        find_mask = partial(self._build_mask, quotes_request=self.quotes_request)

        async def chunks() -> Any:
            with limits.limit_stream(request.caller.name):
                async for chunk in stream_redaction_and_reauthorization.guard_stream(
                    answer, find_revocation, is_past, find_mask, closing
                ):
                    yield echo.restore(chunk)

        if self.method == "HEAD":
            response: Response = Response(b"")
        else:
            response = StreamingResponse(chunks(), status_code=answer.code)
        _set_headers(response, [*headers, ("content-type", answer.media_type), ("x-accel-buffering", "no")])
        return response


def _find_tenant(request: RequestContext) -> Tenant:
    """Renders and scripts of a request count towards the project of its Application."""
    app = request.subject
    return request.cluster_view.rules.build_tenant(app.project) if isinstance(app, Application) else Tenant()


def _set_headers(response: Response, headers: Sequence[tuple[str, str]]) -> None:
    length_headers = [(name, value) for name, value in response.raw_headers if name == b"content-length"]
    response.raw_headers = length_headers + [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers
    ]
