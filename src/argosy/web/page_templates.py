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
from argosy.web.flash_message_codes import find_message
from argosy.web.static_files import get_static_url, load_files
from argosy.web.status_styles import find_style, find_worst_tone, get_page_state

TEMPLATES_FOLDER = Path(__file__).parent / "templates"
FEATURES_FOLDER = Path(__file__).parents[1] / "features"
MACRO_PREFIX = "part:"
DEFAULT_VALUES = {"title": "argosy", "state": "", "section": "", "crumbs": (), "is_live": False, "is_partial": False,
         "reload_after": 0, "code": 0}  # fmt: skip
UNDEFINED_BEHAVIOR: Any = "semi_strict"  # undefined values may be tested but not rendered


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
        return find_message(dict(self.query).get("said"))


def render_page(template: str, values: Mapping[str, Any]) -> str:
    """Render a whole page; `values` contains its `frame`."""
    return unescape_slashes(_environment().render_template(template, **DEFAULT_VALUES | dict(values)))


def render_macro(file: str, macro: str, *values: Any, **named: Any) -> str:
    """Render one macro of a template, for a page or for its live update."""
    return unescape_slashes(_environment().render_template(f"{MACRO_PREFIX}{file}:{macro}", values=values, named=named))


def unescape_slashes(html: str) -> str:
    """Restore slashes, which the engine escapes. Ampersands in values are escaped too, so every match is its own."""
    return html.replace("&#x2f;", "/")


def build_url(frame: Frame, **changes: Any) -> str:
    """Return this page's URL with other query values: None drops a key, a list repeats it. Resets `page`."""
    dropped_keys = {*changes, "said", "page"}
    query = [(key, value) for key, value in frame.query if key not in dropped_keys]
    for key, value in changes.items():
        items = value if isinstance(value, list | tuple) else [value]
        query += [(key, str(item)) for item in items if item is not None]
    return frame.path + ("?" + urlencode(query) if query else "")


def toggle_filter_url(frame: Frame, key: str, value: str) -> str:
    """Return this page's URL with a filter value added, or removed if it is set."""
    selected = [text for name, text in frame.query if name == key]
    others = [text for text in selected if text != value]
    return build_url(frame, **{key: others if value in selected else [*selected, value]})


@lru_cache(4096)
def render_icon(name: str, word: str = "") -> str:
    """Return an icon of the sprite; decorative without `word`, else labelled with it."""
    if name not in _list_icons():
        raise KeyError(f"no icon {name!r} in sprite.svg")
    label = f'role="img" aria-label="{escape(word)}"' if word else 'aria-hidden="true"'
    return _mark_safe(f'<svg class="i" {label}><use href="{get_static_url("sprite.svg")}#{name}"/></svg>')


@cache
def _list_icons() -> frozenset[str]:
    text = load_files()["sprite.svg"].data.decode()
    return frozenset(symbol.partition('"')[0] for symbol in text.split('<symbol id="')[1:])


@cache
def _environment() -> Environment:
    return build_environment(lambda: datetime.now(UTC))


def build_environment(now: Callable[[], datetime]) -> Environment:
    """Build the template engine; tests can pass another clock."""
    times = template_filters.TimeFilters(now)
    return Environment(
        loader=_load_template,
        undefined_behavior=UNDEFINED_BEHAVIOR,
        auto_escape_callback=lambda name: "html",
        debug=False,  # error messages would contain the values of the page
        trim_blocks=True,
        lstrip_blocks=True,
        filters={
            "ago": times.ago,
            "amount": template_filters.format_bytes,
            "clock": times.clock,
            "href": template_filters.get_safe_url,
            "lasting": template_filters.format_duration,
            "local": template_filters.get_safe_path,
            "picture": template_filters.build_data_url,
            "plural": template_filters.format_count,
            "short": template_filters.shorten_revision,
        },
        globals={
            "changed": build_url,
            "icon": render_icon,
            "look": find_style,
            "page_state": get_page_state,
            "worst_tone": find_worst_tone,
            "static": get_static_url,
            "toggled": toggle_filter_url,
        },
    )


def _load_template(name: str) -> str | None:
    if name.startswith(MACRO_PREFIX):
        file, _, macro = name.removeprefix(MACRO_PREFIX).partition(":")
        return f'{{% from "{file}" import {macro} %}}{{{{ {macro}(*values, **named) }}}}'
    feature, _, file = name.partition("/")
    path, folder = TEMPLATES_FOLDER / name, TEMPLATES_FOLDER
    if file and feature != "parts":
        folder = FEATURES_FOLDER / feature / "templates"
        path = folder / file
    path = path.resolve()
    return path.read_text() if path.is_relative_to(folder) and path.is_file() else None


def _mark_safe(text: str) -> str:
    markup: str = safe(text)
    return markup


def render_page_state(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the element that sets the title and the icon of an open page."""
    return {"page-state": render_macro("parts/page.html", "page_mark", values["state"], values["title"])}
