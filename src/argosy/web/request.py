"""Request context: one HTTP request that passed the middleware.

In: values that the middleware determined. Out: query, form and body, read within limits. Never: reads more of a body
than the route accepts.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from argosy.errors import UserError
from argosy.kube.objects import read_json
from argosy.web.auth.caller import Caller
from argosy.web.site_services import Site

MAX_QUERY_FIELDS: Final = 1000
TRUE_WORDS: Final = ("1", "t", "T", "true", "TRUE", "True")  # argo: values that its gateway parses as true
FALSE_WORDS: Final = ("0", "f", "F", "false", "FALSE", "False", "")


def quote_input(text: str, max_characters: int = 40) -> str:
    """Quote input for a message, or describe it if it is long: a truncated quote could show part of a secret."""
    return repr(text) if len(text) <= max_characters else "what was sent"


class NotFoundOrForbidden(Exception):
    """Forbidden or not found; the caller cannot tell which."""


class ObjectNotFound(Exception):
    """Not found, and the caller may know that."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


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


@dataclass(frozen=True)
class RequestContext:
    method: str
    path: str
    path_parameters: Mapping[str, str]
    query: QueryParameters
    headers: Mapping[str, str]  # names in lower case
    caller: Caller
    site: Site
    subject: Any = None  # object found by the resolver of the route's permission
    rbac_object: str = ""  # its RBAC object name
    peer: str = ""
    read_body: Callable[[], Awaitable[bytes]] | None = field(default=None, repr=False)
    application: Any = field(default=None, repr=False)  # the application, with its route table and metrics
    state: dict[str, Any] = field(default_factory=dict, repr=False)  # per-request cache: parsed body, audit entries

    def is_allowed(self, resource: str, action: str, rbac_object: str) -> bool:
        return self.site.authenticator.is_allowed(self.caller, resource, action, rbac_object)

    @property
    def permission_check(self) -> Callable[[str, str, str], bool]:
        """`is_allowed` with permissions resolved once, for checks of thousands of objects."""
        return self.site.authenticator.permissions(self.caller).may

    def add_audit_entry(self, rbac_object: str, code: int = 0) -> None:
        """Add an audit log entry, also for a route that only reads; code 0 means the code of the response."""
        self.state.setdefault("noted", []).append((rbac_object, code))

    def require_permission(self, resource: str, action: str, rbac_object: str) -> None:
        if not self.is_allowed(resource, action, rbac_object):
            raise NotFoundOrForbidden

    async def read_raw_body(self) -> bytes:
        if "raw" not in self.state:
            self.state["raw"] = await self.read_body() if self.read_body else b""
        body: bytes = self.state["raw"]
        return body

    async def read_json(self) -> Any:
        """Return the JSON body; None if it is empty."""
        if "document" not in self.state:
            text = await self.read_raw_body()
            self.state["document"] = read_json(text, where="body").value if text.strip() else None
        return self.state["document"]

    async def read_json_object(self) -> dict[str, Any]:
        """Return the JSON object in the body; {} if the body is empty."""
        document = await self.read_json()
        if document is None:
            return {}
        if not isinstance(document, dict):
            raise UserError("is not a JSON object; send {...}", where="body")
        return document

    async def read_form(self) -> QueryParameters:
        if "form" not in self.state:
            try:
                self.state["form"] = QueryParameters.parse((await self.read_raw_body()).decode())
            except UnicodeDecodeError as error:
                raise UserError("is not valid UTF-8", where="form") from error
        form: QueryParameters = self.state["form"]
        return form

    @property
    def csrf_token(self) -> str:
        return build_csrf_token(self.site, self.caller)


def build_csrf_token(site: Site, caller: Caller) -> str:
    """Return the CSRF token of this session; it is not valid for another one."""
    if caller.is_nobody:
        return ""
    return hmac.new(site.authenticator.signing_key, b"csrf\0" + caller.id.encode(), hashlib.sha256).hexdigest()
