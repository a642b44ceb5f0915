"""Reads the submodules that a commit names. In: the text of .gitmodules. Out: paths and URLs. Never: fetches them."""

from __future__ import annotations

import re
from typing import NamedTuple

from argosy.errors import SourceRefused

GITMODULES_FILE = ".gitmodules"
_SECTION = re.compile(r'\[submodule "((?:[^"\\\n]|\\.)*)"\]')
_FIELD = re.compile(r'(path|url|update)[ \t]*=[ \t]*("?)([^"\r\n]*?)\2[ \t]*$')


class Submodule(NamedTuple):
    """A folder of a repository whose files are in another repository, at the commit that the folder's entry names."""

    path: str
    url: str


def read_gitmodules(text: str) -> list[Submodule]:
    """Return the submodules that git would check out, in order; `update = none` keeps one out."""
    sections: list[dict[str, str]] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            sections.append({} if _SECTION.fullmatch(line) else {"update": "none"})
        elif sections and (field := _FIELD.match(line)):
            sections[-1][field[1]] = field[3]
    return [
        Submodule(fields["path"].strip("/"), fields["url"])
        for fields in sections
        if fields.get("path") and fields.get("url") and fields.get("update") != "none"
    ]


def resolve_submodule_url(url: str, parent_url: str) -> str:
    """Return the address of a submodule. As in git, `./` and `../` are relative to the address of the repository."""
    if not url.startswith(("./", "../")):
        return url
    base = parent_url.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            cut = max(base.rfind("/"), base.rfind(":"))
            if cut <= 0 or base[:cut].endswith(("/", ":")):
                raise SourceRefused("the address of a submodule leads above the host of the repository", where=url)
            base = base[: cut + (base[cut] == ":")].rstrip("/")
        url = url.removeprefix("../") if url.startswith("../") else url.removeprefix("./")
    return f"{base}{'' if base.endswith(':') else '/'}{url}"
