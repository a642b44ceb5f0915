"""ASGI application: runs each request through the middleware and redacts its response.

In: ASGI HTTP requests. Out: responses. Never: an unredacted response; a route without its permission check. The only
module that depends on the web framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from argosy.fair_share import Tenant, on_behalf_of
from argosy.gitops.application import Application
from argosy.gitops.redaction.redaction import Mask, MaskedLogs, mask_of
from argosy.gitops.redaction.substring_index import list_words
from argosy.kube.names import ResourceKey
from argosy.web.auth import cookies
from argosy.web.auth.caller import NOBODY, BadCredential, Caller, Shown
from argosy.web.middleware import (
    audit,
    authorization,
    client_address,
    compression,
    csrf_check,
    error_responses,
    host_check,
    masked_write_guard,
    request_limits,
    response_headers,
    streaming,
)
from argosy.web.middleware.application_masks import build_masks
from argosy.web.middleware.echoed_input import NO_ECHO, Echo, ShownFields, conceal, conceal_fields, restore_written
from argosy.web.middleware.page_context import frame_values
from argosy.web.middleware.request_metrics import Tally
from argosy.web.middleware.secret_masking import masked_json, sensitive, without_secrets
from argosy.web.page_templates import render
from argosy.web.request import Asked, Query, Refused
from argosy.web.responses import Answer, Bytes, Headers, Json, Page, Redirect, Stream, Text
from argosy.web.route import READING, Match, Public, Route, Tree, is_api
from argosy.web.site import Site

log = logging.getLogger(__name__)
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
MUCH: Final = 256 << 10  # bytes; larger responses are redacted and compressed in a thread
MANY: Final = 50  # list items; longer lists are serialized in a thread


class Entry:
    """The ASGI application. `close` ends open streams, so that the server can stop at once."""

    def __init__(self, site: Site, routes: Sequence[Route]) -> None:
        self.site, self.routes = site, tuple(routes)
        self.tree = Tree(routes)
        self.turnstile = request_limits.Turnstile()
        self.write_rate = request_limits.WriteRate()
        self.tally = Tally()
        self.mask: Mask = mask_of(site.lookout, site.desk.control)
        self.masks = build_masks(site, self.mask)
        self.mask.find_line_scope = self.masks.line_scope
        self._closing = asyncio.Event()

    @property
    def log_filter(self) -> MaskedLogs:
        return MaskedLogs(self.mask)

    def close(self) -> None:
        self._closing.set()

    async def conceal(self, route: Route, asked: Asked) -> Asked:
        """Replace Secret values in a request by placeholders; the response restores the text that was sent."""
        concealed, echo = conceal(asked, self.masks.for_request(asked).find)
        if not echo and not echo.is_decoy:
            return asked
        asked.kept["echo"] = echo
        if echo.is_decoy:  # a correct guess costs this check, so a wrong one must, too
            await authorization.permitted(route, replace(asked, subject=None, thing="", kept=dict(asked.kept)))
            return asked
        return await authorization.permitted(route, replace(concealed, subject=None, thing=""))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        visit = _Visit(self, scope, receive)
        response = await visit.response()
        await response(scope, receive, send)


class _Visit:
    """One request on its way through the middleware."""

    def __init__(self, entry: Entry, scope: MutableMapping[str, Any], receive: Receive) -> None:
        self.entry, self.site, self.scope = entry, entry.site, scope
        self.request = Request(scope, receive)
        self.method: str = scope["method"]
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        self.raw_path = raw.partition(b"?")[0].decode("latin-1")
        self.path: str = scope["path"]
        self.headers: dict[str, str] = {}
        self.route: Route | None = None
        self.asked: Asked | None = None
        self.quotes_sent = False  # the response is an error about the body of a change
        self.is_answered = False  # False: only the request itself was read, so nothing is redacted

    async def response(self) -> Response:
        try:
            answer = await self._answer()
            made = await self._response(answer)
            self._renew(made)
        except ClientDisconnect:
            made = Response(status_code=499)
        except Exception as error:
            self.quotes_sent = error_responses.quotes_sent(error)
            made = await self._response(self._told(error))
        if self.route and (self.route.changes or (self.asked and "noted" in self.asked.kept)):
            audit.note(self.asked or self._stranger(), made.status_code)
        self.entry.tally.count(self.route, self.method, made.status_code)
        return made

    def _renew(self, made: Response) -> None:
        """Renew the session cookie of an active browser."""
        caller = self.asked.caller if self.asked else NOBODY
        if caller.how != "cookie" or any(name == b"set-cookie" for name, _ in made.raw_headers):
            return
        if token := self.site.identities.renewed(caller):
            name, value = cookies.session(self.site.identities.cookie, token, is_tls=self.site.options.is_tls)
            made.raw_headers.append((name.encode(), value.encode()))

    # -- request -------------------------------------------------------------------------------------------------

    async def _answer(self) -> Answer:
        request_limits.check_head(self.raw_path.encode("latin-1"), self.scope["query_string"], self.scope["headers"])
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.scope["headers"]}
        options, named = self.site.options, self.request.headers.getlist("host")
        ours = host_check.is_ours(named, options.hosts, is_loopback=options.is_loopback)
        if not ours and self.raw_path not in host_check.ANYWHERE:
            raise csrf_check.Foreign(
                "unknown Host header; use the configured hostname, or start the server with --hostname", 421
            )
        match = None
        with suppress(UnicodeDecodeError):
            match = self.entry.tree.find(self.method, self.raw_path)
        route = self.route = match.route if match else None
        if match is None or route is None:
            await self._recognise()
            if match is None:
                raise _NoRoute if is_api(self.path) else Refused
            return self._not_allowed(match)
        with self._inside(route):
            async with asyncio.timeout(request_limits.SECONDS):
                return await self._permitted(route, match)

    def _inside(self, route: Route) -> AbstractContextManager[None]:
        if isinstance(route.needs, Public) and route.changes:
            return self.entry.turnstile.strangers(self._peer)
        return self.entry.turnstile.inside(is_change=route.changes)

    @property
    def _peer(self) -> str:
        direct = self.scope["client"][0] if self.scope.get("client") else ""
        settings = self.site.lookout.cache.get(ResourceKey("", "ConfigMap", self.site.desk.control, "argosy-cm"))
        proxies = str(((settings or {}).get("data") or {}).get(client_address.SETTING) or "")
        return client_address.peer_of(direct, ",".join(self.request.headers.getlist("x-forwarded-for")), proxies)

    async def _recognise(self) -> None:
        """Identify the caller for pages that do not exist, so that they show the signed-in layout."""
        if not is_api(self.path):
            with suppress(BadCredential):
                if caller := await self.site.identities.identify(self._shown()):
                    self.asked = self._asked(caller, {}, Query([]))

    async def _permitted(self, route: Route, match: Match) -> Answer:
        request_limits.check_length(self.headers.get("content-length", ""), route.most)
        caller = await self._caller(route)
        asked = self.asked = self._asked(caller, match.values)
        if caller.is_nobody and not isinstance(route.needs, Public):
            raise authorization.Unknown
        csrf_check.check_origin(self.site, route, self.headers, caller)
        await csrf_check.check_form(route, asked)
        asked = self.asked = await authorization.permitted(route, asked)
        if masked_write_guard.writes(route):
            await masked_write_guard.check(asked, is_form=not route.is_api)
        if masked_write_guard.writes_text(route) or masked_write_guard.reads_other_revision(route, asked):
            self.entry.write_rate.check(caller.name, asked.thing.partition("/")[0])
        self.is_answered = True
        with on_behalf_of(_tenant(asked)):
            if not route.changes:
                asked = self.asked = await self.entry.conceal(route, asked)
            return await route.answer(asked)

    @property
    def _echo(self) -> Echo:
        """Placeholders in the request, and for live updates those in the address of the page."""
        kept = self.asked.kept if self.asked else {}
        inner = kept["page"].kept if "page" in kept else {}
        echo: Echo = inner.get("echo", NO_ECHO) + kept.get("echo", NO_ECHO)
        return echo

    def _shown(self) -> Shown:
        given = self.headers.get("authorization", "")
        scheme, _, token = given.partition(" ")
        # an empty header or another scheme is an invalid credential, not a missing one
        bearer = (token.strip() if scheme.lower() == "bearer" else "") or given
        return Shown(bearer=bearer, cookies=self.request.cookies, peer=self._peer)

    async def _caller(self, route: Route) -> Caller:
        try:
            return await self.site.identities.identify(self._shown()) or NOBODY
        except BadCredential:
            if isinstance(route.needs, Public):
                return NOBODY
            raise

    def _stranger(self) -> Asked:
        """Return the context of a request that failed early; its query may be malformed."""
        return self._asked(NOBODY, {}, Query([]))

    def _asked(self, caller: Caller, values: Any, query: Query | None = None) -> Asked:
        return Asked(
            method=self.method,
            path=self.path,
            values=values,
            query=Query.read(self.scope["query_string"].decode("latin-1")) if query is None else query,
            headers=self.headers,
            caller=caller,
            site=self.site,
            peer=self._peer,
            read=partial(request_limits.read_body, self.request.stream(), *self._body_limits()),
            entry=self.entry,
            kept=self._kept(),
        )

    def _kept(self) -> dict[str, Any]:
        needs = {"needs": self.route.needs} if self.route else {}
        return needs if self.site.hub is None else {**needs, "mark": self.site.hub.mark}  # before anything is read

    def _body_limits(self) -> tuple[int, float]:
        route = self.route
        is_public = route is not None and isinstance(route.needs, Public)
        return route.most if route else 0, request_limits.STRANGERS_SECONDS if is_public else request_limits.SECONDS

    def _not_allowed(self, match: Match) -> Answer:
        allow = (("allow", ", ".join(match.allowed)),)
        told = error_responses.Told(405, "method not allowed", headers=allow)
        return error_responses.as_answer(told, is_api=is_api(self.path), is_reading=False, path=self.path)

    def _told(self, error: Exception) -> Answer:
        told = error_responses.NO_ROUTE if isinstance(error, _NoRoute) else error_responses.told_of(error)
        if self.asked is None or self.asked.caller.is_nobody:
            told = error_responses.to_stranger(told)
        query = self.scope["query_string"].decode("latin-1")
        where = f"{self.raw_path}?{query}" if query else self.raw_path
        return error_responses.as_answer(told, is_api=is_api(self.path), is_reading=self.method in READING, path=where)

    # -- response ------------------------------------------------------------------------------------------------

    async def _response(self, answer: Answer) -> Response:
        is_fixed = isinstance(answer, Bytes) and answer.is_fixed
        own = response_headers.all_headers(
            self._hidden(answer.headers), is_tls=self.site.options.is_tls, is_fixed=is_fixed
        )
        if isinstance(answer, Stream):
            return self._stream(answer, own)
        if isinstance(answer, Redirect):
            own += self._hidden((("location", response_headers.safe_location(answer)),), is_outside=answer.is_outside)
        data, media = await self._serialised(answer)
        out = partial(self._out, data, media, is_fixed=is_fixed or answer.is_callers_own)
        data, is_packed = await asyncio.to_thread(out) if len(data) > MUCH else out()
        if is_packed:
            own.append(("content-encoding", "gzip"))
        own.append(("vary", "accept-encoding, cookie"))
        made = Response(data, status_code=answer.code, media_type=None)
        if media:
            own.append(("content-type", media))
        _put(made, own)
        return made

    def _hidden(self, given: Headers, *, is_outside: bool = False) -> Headers:
        """Redact headers. Cookies are for their receiver; strangers and other sites get back what they sent."""
        if is_outside or self.asked is None or self.asked.caller.is_nobody:
            return given
        return tuple((name, value if name == "set-cookie" else self._hidden_text(value)) for name, value in given)

    def _hidden_text(self, text: str) -> str:
        if not self.is_answered:
            return text
        mask = self._mask_with(quotes_sent=True)
        return self._echo.restore(mask.hide_text(text).encode("utf-8", "surrogatepass")).decode()

    @property
    def _mask(self) -> Mask:
        """Redactor for the response. Only errors and redirects quote the body of a change."""
        return self._mask_with(quotes_sent=self.quotes_sent)

    def _mask_with(self, *, quotes_sent: bool) -> Mask:
        assert self.asked and self.route
        return self.entry.masks.for_request(self.asked, quotes_sent=self.route.changes and quotes_sent)

    def _out(self, data: bytes, media: str, *, is_fixed: bool) -> tuple[bytes, bool]:
        if self.is_answered and not is_fixed:  # static files contain no secrets
            fields = ShownFields()
            if media == HTML and self.asked and "form" in self.asked.kept:
                data, fields = conceal_fields(data, self.asked.kept["form"])
            words = list_words(data)
            masked = self._mask.hide_as(data, media, words)
            if self.route and self.asked and masked_write_guard.stores_document(self.route) and media == JSON:
                masked = restore_written(masked, data, self.asked.kept.get("document"))
            data = fields.restore(self._echo.restore(masked, words if masked is data else None))
        return compression.packed(data, media, self.headers.get("accept-encoding", ""))

    async def _serialised(self, answer: Answer) -> tuple[bytes, str]:
        """Serialize a response; long lists in a thread, so that other requests are served meanwhile."""
        if isinstance(answer, Json):
            write = partial(masked_json, answer.document, sensitive(self.site))
            return (await asyncio.to_thread(write) if _is_long(answer.document) else write()), JSON
        return self._body(answer)

    def _body(self, answer: Answer) -> tuple[bytes, str]:
        match answer:
            case Page():
                return self._page(answer).encode(), HTML
            case Text():
                return answer.text.encode(), answer.media
            case Bytes():
                return answer.data, answer.media
            case Redirect():
                return b"", ""
            case _:
                raise TypeError(type(answer))

    def _page(self, page: Page) -> str:
        asked = self.asked or self._stranger()
        values = without_secrets(dict(page.values), sensitive(self.site))
        if self.route and self.route.changes and self.is_answered and not page.is_callers_own:
            # the layout quotes the URL, which the caller sent; the rest of the page was read
            asked, asked.kept["echo"] = conceal(asked, self.entry.masks.for_request(asked).find)
        return render(page.template, {**frame_values(asked), **values})

    def _stream(self, answer: Stream, own: list[tuple[str, str]]) -> Response:
        asked, route = self.asked, self.route
        assert asked and route
        self.entry.turnstile.check_stream(asked.caller.name)
        may = partial(authorization.still_permitted, route, asked)
        is_past = partial(self.site.identities.is_past, asked.caller)
        entry, echo = self.entry, self._echo
        find_mask = partial(self._mask_with, quotes_sent=self.quotes_sent)

        async def chunks() -> Any:
            with entry.turnstile.streaming(asked.caller.name):
                async for chunk in streaming.guarded(answer, may, is_past, find_mask, entry._closing):
                    yield echo.restore(chunk)

        if self.method == "HEAD":
            made: Response = Response(b"")
        else:
            made = StreamingResponse(chunks(), status_code=answer.code)
        _put(made, [*own, ("content-type", answer.media), ("x-accel-buffering", "no")])
        return made


class _NoRoute(Exception):
    """Unknown API path. Everyone may know that: all paths are in the OpenAPI document."""


def _is_long(document: Any) -> bool:
    items = document.get("items") if isinstance(document, dict) else document
    return isinstance(items, list | tuple) and len(items) > MANY


def _tenant(asked: Asked) -> Tenant:
    """Return the tenant: renders and scripts of a request count towards the project of its Application."""
    app = asked.subject
    return asked.site.lookout.rules.tenant(app.project) if isinstance(app, Application) else Tenant()


def _put(response: Response, own: Sequence[tuple[str, str]]) -> None:
    kept = [(name, value) for name, value in response.raw_headers if name == b"content-length"]
    response.raw_headers = kept + [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own]
