"""Request context: one HTTP request that passed the middleware, and the services that its handler may use.

In: values that the middleware determined. Out: query, form and body, read within limits. Never: reads more of a body
than the route accepts; gives access to the routes or the state of the server.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl

from argosy.errors import UserError
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import read_json
from argosy.observability.redaction.secret_origin_and_scope import SecretScope
from argosy.web.auth.caller import Caller
from argosy.web.response_placeholder_restoration import NO_ECHO, InputEcho
from argosy.web.serve_options import ServeOptions

if TYPE_CHECKING:
    from argosy.gitops.application_client.app_state_reader import ApplicationReader
    from argosy.gitops.application_client.drift_attribution import DriftTextCache
    from argosy.gitops.cluster_view.cluster_view import ClusterView
    from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks
    from argosy.web.auth.authenticator import Authenticator
    from argosy.web.event_cache import EventCache

MAX_QUERY_FIELDS: Final = 1000
TRUE_WORDS: Final = ("1", "t", "T", "true", "TRUE", "True")  # argo: values that its gateway parses as true
FALSE_WORDS: Final = ("0", "f", "F", "false", "FALSE", "False", "")


def quote_input(text: str, max_characters: int = 40) -> str:
    """Quote input for a message, or describe it if it is long: a truncated quote could show part of a secret."""
    return repr(text) if len(text) <= max_characters else "what was sent"


class NotFoundOrForbidden(Exception):
    """Forbidden or not found; the caller cannot tell which."""


class PermissionMissing(NotFoundOrForbidden):
    """Forbidden. The message names the permission, because it repeats the request or the caller may see the object."""

    def __init__(self, resource: str, action: str, rbac_object: str, name: str) -> None:
        # argo: its words
        self.message = f"permission denied: {resource}, {action}, {rbac_object}" + (f", sub: {name}" if name else "")
        super().__init__(self.message)


class ObjectNotFound(Exception):
    """Not found, and the caller may know that."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RequestRejected(Exception):
    """The request itself is not acceptable, whoever sends it."""

    def __init__(self, message: str, code: int = 403) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class QueryParameters(Mapping[str, str]):
    """Query parameters or form fields. A name may occur more than once; `[name]` is its first value."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values_by_name: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values_by_name.setdefault(name, []).append(value)

    @classmethod
    def parse(cls, text: str) -> QueryParameters:
        try:
            return cls(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS, errors="strict"))
        except ValueError as error:
            raise UserError("cannot parse the query or form; send percent-encoded UTF-8") from error

    def __getitem__(self, name: str) -> str:
        return self._values_by_name[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values_by_name)

    def __len__(self) -> int:
        return len(self._values_by_name)

    def get_all(self, name: str) -> tuple[str, ...]:
        return tuple(self._values_by_name.get(name, ()))

    def get_text(self, name: str) -> str:
        return self.get(name, "")

    def get_bool(self, name: str, default: bool = False) -> bool:
        text = self.get(name)
        if text is None:
            return default
        if text not in TRUE_WORDS + FALSE_WORDS:
            raise UserError(f"{quote_input(text)} is not a boolean; use true or false", where=name)
        return text in TRUE_WORDS

    def get_int(self, name: str, default: int, *, minimum: int = 0, maximum: int = 1 << 53) -> int:
        text = self.get(name)
        if not text:
            return default
        if not (text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 20):
            raise UserError(f"{quote_input(text)} is not an integer; use {minimum} to {maximum}", where=name)
        if not minimum <= int(text) <= maximum:
            raise UserError(f"{text} is out of range; use {minimum} to {maximum}", where=name)
        return int(text)


class LiveUpdates(Protocol):
    """Streams of changed page fragments; implemented by `web.live_updates.hub.LivePageHub`."""

    @property
    def position(self) -> str: ...

    def stream(self, request: RequestContext, /) -> AsyncGenerator[bytes, None]: ...


@dataclass
class RequestMemory:
    """What one request has read or computed, so that it is done once."""

    raw_body: bytes | None = None
    document: Any = None  # the JSON body, once it was read
    form: QueryParameters | None = None
    audit_entries: tuple[tuple[str, int], ...] = ()  # RBAC object names with a code, or 0
    echo: InputEcho = NO_ECHO
    page: RequestContext | None = None  # of a stream of live updates: the request for the page
    find_scope: Callable[[], SecretScope] | None = None
    application_counts: Counter[str] | None = None  # visible Applications by server
    remote_reader: tuple[float, ApplicationReader] | None = None  # with the time until which it is used

    def forget_body(self) -> None:
        self.raw_body = self.document = self.form = None


@dataclass(frozen=True)
class RequestContext:
    method: str
    path: str
    path_parameters: Mapping[str, str]
    query: QueryParameters
    headers: Mapping[str, str]  # names in lower case
    caller: Caller
    subject: Any = None  # object found by the resolver of the route's permission
    rbac_object: str = ""  # its RBAC object name
    rbac_resource: str = ""  # resource of the route's permission, such as applications
    peer: str = ""
    live_position: str = ""  # in the change feed, before anything was read
    read_body: Callable[[], Awaitable[bytes]] | None = field(default=None, repr=False)
    read_body_line: Callable[[int], Awaitable[bytes]] | None = field(default=None, repr=False)
    memory: RequestMemory = field(default_factory=RequestMemory, repr=False)

    # Services of the installation, the same for all requests.
    service: ApplicationService = field(kw_only=True, repr=False)
    cluster_view: ClusterView = field(kw_only=True, repr=False)
    authenticator: Authenticator = field(kw_only=True, repr=False)
    options: ServeOptions = field(kw_only=True, repr=False)
    live_updates: LiveUpdates | None = field(kw_only=True, repr=False)  # None: no live updates
    masks: ApplicationMasks = field(kw_only=True, repr=False)
    events: EventCache = field(kw_only=True, repr=False)
    drift_texts: DriftTextCache = field(kw_only=True, repr=False)

    def is_allowed(self, resource: str, action: str, rbac_object: str) -> bool:
        return self.authenticator.is_allowed(self.caller, resource, action, rbac_object)

    @property
    def permission_check(self) -> Callable[[str, str, str], bool]:
        """`is_allowed` with permissions resolved once, for checks of thousands of objects."""
        return self.authenticator.permissions(self.caller).may

    def add_audit_entry(self, rbac_object: str, code: int = 0) -> None:
        """Add an audit log entry, also for a route that only reads; code 0 means the code of the response."""
        self.memory.audit_entries += ((rbac_object, code),)

    def require_permission(self, resource: str, action: str, rbac_object: str) -> None:
        if not self.is_allowed(resource, action, rbac_object):
            raise NotFoundOrForbidden

    async def read_raw_body(self) -> bytes:
        if self.memory.raw_body is None:
            self.memory.raw_body = await self.read_body() if self.read_body else b""
        return self.memory.raw_body

    async def read_first_line(self, max_bytes: int) -> bytes:
        """Return the first line of the body, before the rest of it is read."""
        if self.memory.raw_body is not None:
            return self.memory.raw_body.partition(b"\n")[0]
        return await self.read_body_line(max_bytes) if self.read_body_line else b""

    async def read_json(self) -> Any:
        """Return the JSON body; None if it is empty."""
        if self.memory.document is None:
            text = await self.read_raw_body()
            self.memory.document = read_json(text, where="body").value if text.strip() else None
        return self.memory.document

    async def read_json_object(self) -> dict[str, Any]:
        """Return the JSON object in the body; {} if the body is empty."""
        document = await self.read_json()
        if document is None:
            return {}
        if not isinstance(document, dict):
            raise UserError("is not a JSON object; send {...}", where="body")
        return document

    async def read_form(self) -> QueryParameters:
        if self.memory.form is None:
            try:
                self.memory.form = QueryParameters.parse((await self.read_raw_body()).decode())
            except UnicodeDecodeError as error:
                raise UserError("is not valid UTF-8", where="form") from error
        return self.memory.form

    @property
    def csrf_token(self) -> str:
        """The CSRF token of this session; it is not valid for another one."""
        if self.caller.is_nobody:
            return ""
        return hmac.new(self.authenticator.signing_key, b"csrf\0" + self.caller.id.encode(), hashlib.sha256).hexdigest()
