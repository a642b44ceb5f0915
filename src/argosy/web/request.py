"""One request that has passed the doors.

In: what the doors found out. Out: its parts, read within limits. Never: more of a body than the route takes.
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
TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")  # argo: what its gateway takes for a yes
FALSE: Final = ("0", "f", "F", "false", "FALSE", "False", "")


def quoted(text: str, longest: int = 40) -> str:
    """Return what was sent in quotes, or nothing of it: where it is cut, a part of a guess would be shown."""
    return repr(text) if len(text) <= longest else "what was sent"


class Refused(Exception):
    """Forbidden, or not there: who asks cannot tell which."""


class Absent(Exception):
    """Not there, and who asks may know that."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Query(Mapping[str, str]):
    """Words after the question mark, or of a form. A name may come more than once: `[name]` is its first."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._of: dict[str, list[str]] = {}
        for name, value in pairs:
            self._of.setdefault(name, []).append(value)

    @classmethod
    def read(cls, text: str) -> Query:
        try:
            return cls(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
        except ValueError as error:
            raise UserError("the address or form cannot be read; write it as UTF-8, percent-encoded") from error

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
            raise UserError(f"{quoted(given)} is neither true nor false; write true or false", where=name)
        return given in TRUE

    def number(self, name: str, usual: int, *, least: int = 0, most: int = 1 << 53) -> int:
        given = self.get(name)
        if not given:
            return usual
        if not (given.lstrip("-").isascii() and given.lstrip("-").isdigit() and len(given) < 20):
            raise UserError(f"{quoted(given)} is no number; write one from {least} to {most}", where=name)
        if not least <= int(given) <= most:
            raise UserError(f"{given} is out of range; write a number from {least} to {most}", where=name)
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
    subject: Any = None  # what the resolver of the permission found
    thing: str = ""  # its name for the policy
    peer: str = ""
    read: Callable[[], Awaitable[bytes]] | None = field(default=None, repr=False)
    entry: Any = field(default=None, repr=False)  # the table, and what is counted
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what was read of the body

    def may(self, resource: str, action: str, thing: str) -> bool:
        return self.site.identities.may(self.caller, resource, action, thing)

    @property
    def deciding(self) -> Callable[[str, str, str], bool]:
        """The same as `may`, for those who ask it of thousands at once."""
        return self.site.identities.permissions(self.caller).may

    def noted(self, thing: str, code: int = 0) -> None:
        """One line of the audit, also where a route only reads; 0: the code that is answered."""
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
        """The JSON that was sent; an empty body is None."""
        if "document" not in self.kept:
            text = await self.raw()
            self.kept["document"] = load_json(text, where="body").value if text.strip() else None
        return self.kept["document"]

    async def mapping(self) -> dict[str, Any]:
        """The JSON object that was sent; an empty body is an empty one."""
        found = await self.document()
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise UserError("is no JSON object; send one in braces", where="body")
        return found

    async def form(self) -> Query:
        if "form" not in self.kept:
            try:
                self.kept["form"] = Query.read((await self.raw()).decode())
            except UnicodeDecodeError as error:
                raise UserError("is not UTF-8; send it so", where="form") from error
        found: Query = self.kept["form"]
        return found

    @property
    def csrf(self) -> str:
        return csrf_token(self.site, self.caller)


def csrf_token(site: Site, caller: Caller) -> str:
    """Of this session alone, and worth nothing elsewhere."""
    if caller.is_nobody:
        return ""
    return hmac.new(site.identities.key, b"csrf\0" + caller.id.encode(), hashlib.sha256).hexdigest()
