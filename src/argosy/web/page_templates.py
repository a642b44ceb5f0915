"""Templates and values become HTML.

In: a template of this package, values, and the frame around every page. Out: escaped HTML: a page, or one part of it.
Never: escapes by hand, reads a template from elsewhere, or shows a value that nobody gave (a typo is an error).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from minijinja import Environment, safe

from argosy.web import template_filters
from argosy.web.flash_messages import sentence
from argosy.web.static_files import address, files
from argosy.web.status_styles import look, page_state, worst_tone

TEMPLATES = Path(__file__).parent / "templates"
FEATURES = Path(__file__).parents[1] / "features"
PART = "part:"
USUAL = {"title": "argosy", "state": "", "section": "", "crumbs": (), "is_live": False, "is_partial": False,
         "reload_after": 0, "code": 0}  # fmt: skip
SEMI_STRICT: Any = "semi_strict"  # what is not there may be asked about, and is never shown


@dataclass(frozen=True)
class Frame:
    """What every page shows around its own content; made once per request, by the doors."""

    path: str = "/"
    query: tuple[tuple[str, str], ...] = ()
    csrf: str = ""
    caller: str = ""  # nothing: not signed in
    theme: str = ""  # "light", "dark"; nothing follows the system
    has_keys: bool = True
    is_simulated: bool = False
    title: str = "argosy"
    version: str = ""
    where: str = ""  # the cluster or context that is looked at
    favourites: frozenset[str] = frozenset()
    mark: str = ""  # which changes of the cluster were known before the page was made
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def here(self) -> str:
        """This page, with everything that was asked of it."""
        return self.path + ("?" + urlencode(self.query) if self.query else "")

    @property
    def live(self) -> str:
        """Where its changes come from, where it has live parts."""
        return self.live_anew + (f"&since={self.mark}" if self.mark else "")

    @property
    def live_anew(self) -> str:
        """The same for a page that knows itself to lack something: all of its parts come once more."""
        return "/live?at=" + quote(self.here, safe="/")

    @property
    def said(self) -> tuple[str, str] | None:
        """What happened to the form that led here."""
        return sentence(dict(self.query).get("said"))


def render(template: str, values: Mapping[str, Any]) -> str:
    """A whole page; its `frame` is among the values."""
    return plain(_environment().render_template(template, **USUAL | dict(values)))


def part(file: str, macro: str, *values: Any, **named: Any) -> str:
    """One macro of a template, as a page shows it and as its live update does."""
    return plain(_environment().render_template(f"{PART}{file}:{macro}", values=values, named=named))


def plain(html: str) -> str:
    """The engine writes a slash of a value as six letters; an ampersand of a value is escaped, so they are all its."""
    return html.replace("&#x2f;", "/")


def changed(frame: Frame, **changes: Any) -> str:
    """This page's address with other values: None leaves a key out, a list repeats it. A filter begins at page one."""
    gone = {*changes, "said", "page"}
    kept = [(key, value) for key, value in frame.query if key not in gone]
    for key, value in changes.items():
        many = value if isinstance(value, list | tuple) else [value]
        kept += [(key, str(each)) for each in many if each is not None]
    return frame.path + ("?" + urlencode(kept) if kept else "")


def toggled(frame: Frame, key: str, value: str) -> str:
    """This page's address with one value of a filter more, or less where it is already chosen."""
    chosen = [each for name, each in frame.query if name == key]
    others = [each for each in chosen if each != value]
    return changed(frame, **{key: others if value in chosen else [*chosen, value]})


@lru_cache(4096)
def icon(name: str, word: str = "") -> str:
    """A drawing of the sprite; decoration where the word stands beside it, else it says the word itself."""
    if name not in _drawings():
        raise KeyError(f"no drawing {name!r} in sprite.svg")
    said = f'role="img" aria-label="{escape(word)}"' if word else 'aria-hidden="true"'
    return _markup(f'<svg class="i" {said}><use href="{address("sprite.svg")}#{name}"/></svg>')


@cache
def _drawings() -> frozenset[str]:
    text = files()["sprite.svg"].data.decode()
    return frozenset(piece.partition('"')[0] for piece in text.split('<symbol id="')[1:])


@cache
def _environment() -> Environment:
    return environment(lambda: datetime.now(UTC))


def environment(now: Callable[[], datetime]) -> Environment:
    """The engine of all templates; a test may give it another clock."""
    times = template_filters.Times(now)
    return Environment(
        loader=_source,
        undefined_behavior=SEMI_STRICT,
        auto_escape_callback=lambda name: "html",
        debug=False,  # else an error would tell the values of the page
        trim_blocks=True,
        lstrip_blocks=True,
        filters={
            "ago": times.ago,
            "amount": template_filters.amount,
            "clock": times.clock,
            "href": template_filters.href,
            "lasting": template_filters.lasting,
            "local": template_filters.local,
            "picture": template_filters.picture,
            "plural": template_filters.plural,
            "short": template_filters.short,
        },
        globals={
            "changed": changed,
            "icon": icon,
            "look": look,
            "page_state": page_state,
            "worst_tone": worst_tone,
            "static": address,
            "toggled": toggled,
        },
    )


def _source(name: str) -> str | None:
    if name.startswith(PART):
        file, _, macro = name.removeprefix(PART).partition(":")
        return f'{{% from "{file}" import {macro} %}}{{{{ {macro}(*values, **named) }}}}'
    feature, _, file = name.partition("/")
    path, folder = TEMPLATES / name, TEMPLATES
    if file and feature != "parts":
        folder = FEATURES / feature / "templates"
        path = folder / file
    path = path.resolve()
    return path.read_text() if path.is_relative_to(folder) and path.is_file() else None


def _markup(text: str) -> str:
    made: str = safe(text)
    return made


def render_page_state(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the element that sets the title and the icon of an open page."""
    return {"page-state": part("parts/page.html", "page_mark", values["state"], values["title"])}
