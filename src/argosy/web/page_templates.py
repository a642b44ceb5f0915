"""Renders templates to HTML.

In: a template of this package, values, and the frame around every page. Out: escaped HTML of a page or of one part.
Never: escapes by hand, loads a template from elsewhere, or renders an undefined value (a typo is an error).
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
SEMI_STRICT: Any = "semi_strict"  # undefined values may be tested but not rendered


@dataclass(frozen=True)
class Frame:
    """Values that the layout of every page shows; built once per request by the middleware."""

    path: str = "/"
    query: tuple[tuple[str, str], ...] = ()
    csrf: str = ""
    caller: str = ""  # empty: not signed in
    theme: str = ""  # "light", "dark"; empty: follow the system
    has_keys: bool = True
    is_simulated: bool = False
    title: str = "argosy"
    version: str = ""
    where: str = ""  # name of the cluster or kubeconfig context
    favourites: frozenset[str] = frozenset()
    mark: str = ""  # position in the change feed before the page was rendered
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def here(self) -> str:
        """URL of this page, including its query."""
        return self.path + ("?" + urlencode(self.query) if self.query else "")

    @property
    def live(self) -> str:
        """URL of the live updates of this page, starting after `mark`."""
        return self.live_anew + (f"&since={self.mark}" if self.mark else "")

    @property
    def live_anew(self) -> str:
        """URL of the live updates, with all parts sent again; for a page that is incomplete."""
        return "/live?at=" + quote(self.here, safe="/")

    @property
    def said(self) -> tuple[str, str] | None:
        """Tone and message of the form that redirected here."""
        return sentence(dict(self.query).get("said"))


def render(template: str, values: Mapping[str, Any]) -> str:
    """Render a whole page; `values` contains its `frame`."""
    return plain(_environment().render_template(template, **USUAL | dict(values)))


def part(file: str, macro: str, *values: Any, **named: Any) -> str:
    """Render one macro of a template, for a page or for its live update."""
    return plain(_environment().render_template(f"{PART}{file}:{macro}", values=values, named=named))


def plain(html: str) -> str:
    """Restore slashes, which the engine escapes. Ampersands in values are escaped too, so every match is its own."""
    return html.replace("&#x2f;", "/")


def changed(frame: Frame, **changes: Any) -> str:
    """Return this page's URL with other query values: None drops a key, a list repeats it. Resets `page`."""
    gone = {*changes, "said", "page"}
    kept = [(key, value) for key, value in frame.query if key not in gone]
    for key, value in changes.items():
        many = value if isinstance(value, list | tuple) else [value]
        kept += [(key, str(each)) for each in many if each is not None]
    return frame.path + ("?" + urlencode(kept) if kept else "")


def toggled(frame: Frame, key: str, value: str) -> str:
    """Return this page's URL with a filter value added, or removed if it is set."""
    chosen = [each for name, each in frame.query if name == key]
    others = [each for each in chosen if each != value]
    return changed(frame, **{key: others if value in chosen else [*chosen, value]})


@lru_cache(4096)
def icon(name: str, word: str = "") -> str:
    """Return an icon of the sprite; decorative without `word`, else labelled with it."""
    if name not in _drawings():
        raise KeyError(f"no icon {name!r} in sprite.svg")
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
    """Build the template engine; tests can pass another clock."""
    times = template_filters.Times(now)
    return Environment(
        loader=_source,
        undefined_behavior=SEMI_STRICT,
        auto_escape_callback=lambda name: "html",
        debug=False,  # error messages would contain the values of the page
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
