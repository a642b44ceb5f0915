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
from argosy.kube.objects import load_json
from argosy.web.auth.caller import Caller
from argosy.web.site import Site

MOST_FIELDS: Final = 1000
TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")  # argo: values that its gateway parses as true
FALSE: Final = ("0", "f", "F", "false", "FALSE", "False", "")


def quoted(text: str, longest: int = 40) -> str:
    """Quote input for a message, or describe it if it is long: a truncated quote could show part of a secret."""
    return repr(text) if len(text) <= longest else "what was sent"


class Refused(Exception):
    """Forbidden or not found; the caller cannot tell which."""


class Absent(Exception):
    """Not found, and the caller may know that."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Query(Mapping[str, str]):
    """Query parameters or form fields. A name may occur more than once; `[name]` is its first value."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._of: dict[str, list[str]] = {}
        for name, value in pairs:
            self._of.setdefault(name, []).append(value)

    @classmethod
    def read(cls, text: str) -> Query:
        try:
            return cls(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
        except ValueError as error:
            raise UserError("cannot parse the query or form; send percent-encoded UTF-8") from error

    def __getitem__(self, name: str) -> str:
        return self._of[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self._of.get(name, ()))

    def text(self, name: str) -> str:
        return self.get(name, "")

    def flag(self, name: str, usual: bool = False) -> bool:
        given = self.get(name)
        if given is None:
            return usual
        if given not in TRUE + FALSE:
            raise UserError(f"{quoted(given)} is not a boolean; use true or false", where=name)
        return given in TRUE

    def number(self, name: str, usual: int, *, least: int = 0, most: int = 1 << 53) -> int:
        given = self.get(name)
        if not given:
            return usual
        if not (given.lstrip("-").isascii() and given.lstrip("-").isdigit() and len(given) < 20):
            raise UserError(f"{quoted(given)} is not an integer; use {least} to {most}", where=name)
        if not least <= int(given) <= most:
            raise UserError(f"{given} is out of range; use {least} to {most}", where=name)
        return int(given)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    values: Mapping[str, str]
    query: Query
    headers: Mapping[str, str]  # names in lower case
    caller: Caller
    site: Site
    subject: Any = None  # object found by the resolver of the route's permission
    thing: str = ""  # its RBAC object name
    peer: str = ""
    read: Callable[[], Awaitable[bytes]] | None = field(default=None, repr=False)
    entry: Any = field(default=None, repr=False)  # the application, with its route table and metrics
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # per-request cache: parsed body, audit entries

    def may(self, resource: str, action: str, thing: str) -> bool:
        return self.site.identities.may(self.caller, resource, action, thing)

    @property
    def deciding(self) -> Callable[[str, str, str], bool]:
        """`is_allowed` with permissions resolved once, for checks of thousands of objects."""
        return self.site.identities.permissions(self.caller).may

    def noted(self, thing: str, code: int = 0) -> None:
        """Add an audit log entry, also for a route that only reads; code 0 means the code of the response."""
        self.kept.setdefault("noted", []).append((thing, code))

    def require(self, resource: str, action: str, thing: str) -> None:
        if not self.may(resource, action, thing):
            raise Refused

    async def raw(self) -> bytes:
        if "raw" not in self.kept:
            self.kept["raw"] = await self.read() if self.read else b""
        found: bytes = self.kept["raw"]
        return found

    async def document(self) -> Any:
        """Return the JSON body; None if it is empty."""
        if "document" not in self.kept:
            text = await self.raw()
            self.kept["document"] = load_json(text, where="body").value if text.strip() else None
        return self.kept["document"]

    async def mapping(self) -> dict[str, Any]:
        """Return the JSON object in the body; {} if the body is empty."""
        found = await self.document()
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise UserError("is not a JSON object; send {...}", where="body")
        return found

    async def form(self) -> Query:
        if "form" not in self.kept:
            try:
                self.kept["form"] = Query.read((await self.raw()).decode())
            except UnicodeDecodeError as error:
                raise UserError("is not valid UTF-8", where="form") from error
        found: Query = self.kept["form"]
        return found

    @property
    def csrf(self) -> str:
        return csrf_token(self.site, self.caller)


def csrf_token(site: Site, caller: Caller) -> str:
    """Return the CSRF token of this session; it is not valid for another one."""
    if caller.is_nobody:
        return ""
    return hmac.new(site.identities.key, b"csrf\0" + caller.id.encode(), hashlib.sha256).hexdigest()
