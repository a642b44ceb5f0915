"""Template filters, status styles, flash messages and URLs of the pages."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from argosy.web import template_filters
from argosy.web.flash_message_codes import MESSAGES_BY_CODE, find_message
from argosy.web.page_templates import Frame, build_url, render_icon, render_macro, render_page, toggle_filter_url
from argosy.web.status_styles import STYLES, find_style, get_page_state

NOW = datetime(2026, 11, 15, 12, 3, 7, tzinfo=UTC)
TIMES = template_filters.TimeFilters(lambda: NOW)


@pytest.mark.parametrize(
    "address", ["/apps", "/apps?x=1#y", "?page=2", "#l4", "http://a.example/b", "HTTPS://a.example"]
)
def test_safe_url_is_kept(address: str) -> None:
    assert template_filters.get_safe_url(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)",
        "vbscript:x", "//evil.example", "/\\evil.example", "\\\\evil.example", "apps", "", None, "http:", "https:///x",
        "data:text/html,x", "file:///etc",
        "/apps\tx", "http://[", "\x00/apps", "ftp://a.example",
    ],
)  # fmt: skip
def test_unsafe_url_is_dropped(address: str | None) -> None:
    assert template_filters.get_safe_url(address) == ""


def test_link_without_a_safe_url_is_rendered_as_text() -> None:
    assert render_macro("parts/link.html", "link", "javascript:alert(1)", "<b>") == "<span>&lt;b&gt;</span>"
    assert render_macro("parts/link.html", "link", "/apps", "Apps") == '<a href="/apps">Apps</a>'


def test_external_link_has_noopener_and_noreferrer() -> None:
    assert 'rel="noopener noreferrer"' in render_macro("parts/link.html", "link", "https://a.example", "a")


def test_form_action_must_be_a_local_path() -> None:
    assert template_filters.get_safe_path("https://a.example") == ""
    assert template_filters.get_safe_path("/apps") == "/apps"


def test_data_url_is_built_only_for_content_of_its_media_type() -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
    assert template_filters.build_data_url(png) == f"data:image/png;base64,{png}"
    assert template_filters.build_data_url(base64.b64encode(b"<svg onload=x>").decode()) == ""
    assert template_filters.build_data_url(png, "image/svg+xml") == ""
    assert template_filters.build_data_url("not base64") == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "just now"), (59, "59 s ago"), (60, "1 min ago"), (7199, "1 h ago"), (200000, "2 d ago"), (-90, "in 1 min")],
)
def test_times_are_shown_relative_to_now(seconds: int, said: str) -> None:
    when = NOW - timedelta(seconds=seconds)
    assert said in TIMES.ago(when.strftime("%Y-%m-%dT%H:%M:%SZ"))


def test_unreadable_time_is_shown_as_never() -> None:
    assert "never" in TIMES.ago("<yesterday>") and "never" in TIMES.ago(None)


def test_clock_shows_the_date_unless_it_is_today() -> None:
    assert ">11:00:00<" in TIMES.clock("2026-11-15T11:00:00Z")
    assert ">2026-11-14 11:00:00<" in TIMES.clock("2026-11-14T11:00:00Z")


def test_sizes_durations_and_counts_are_readable() -> None:
    assert [template_filters.format_bytes(size) for size in (0, 1023, 1536, 5 << 20)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
    ]
    lasted = [template_filters.format_duration(time) for time in (0.2, 12, 184, 7260, None)]
    assert lasted == ["200 ms", "12 s", "3 min 4 s", "2 h 1 min", ""]
    assert [template_filters.format_count(count, "entry", "entries") for count in (1, 2000)] == [
        "1 entry",
        "2,000 entries",
    ]


def test_digest_revisions_are_shortened() -> None:
    assert [template_filters.shorten_revision(text) for text in ("a" * 40, "main")] == ["a" * 7, "main"]
    assert template_filters.shorten_revision("sha256:" + "b" * 64) == "sha256:" + "b" * 12


def test_every_state_has_a_tone_and_an_icon() -> None:
    for kind, looks in STYLES.items():
        for tone, glyph in looks.values():
            assert tone in ("ok", "bad", "busy", "warn", "missing", "paused", "unknown")
            assert kind == "cell" or render_icon(glyph)


def test_unknown_state_gets_the_unknown_style() -> None:
    assert find_style("health", "Sideways") == find_style("health", None) == ("unknown", "question")
    states = [get_page_state(*statuses) for statuses in (("Degraded",), ("Healthy", "OutOfSync"), ("Healthy",))]
    assert states == ["bad", "warn", "ok"]


def test_page_state_is_not_ok_if_the_sync_status_is_unknown() -> None:
    assert get_page_state("Healthy", "Unknown") == "warn"
    assert get_page_state("Healthy", "Unknown", has_error=True) == "bad"


def test_missing_icon_raises_an_error() -> None:
    with pytest.raises(KeyError, match="no icon"):
        render_icon("unicorn")


def test_filter_is_toggled_in_the_url() -> None:
    frame = Frame(path="/apps", query=(("health", "Degraded"), ("page", "3"), ("said", "synced")))
    assert toggle_filter_url(frame, "health", "Missing") == "/apps?health=Degraded&health=Missing"
    assert toggle_filter_url(frame, "health", "Degraded") == "/apps"
    assert build_url(frame, page=4) == "/apps?health=Degraded&page=4"
    assert build_url(frame, q="a&b=c") == "/apps?health=Degraded&q=a%26b%3Dc"


def test_flash_message_comes_only_from_the_fixed_list() -> None:
    assert find_message("synced") == MESSAGES_BY_CODE["synced"]
    assert find_message("<b>hello") is None


def test_page_escapes_its_values_but_not_slashes() -> None:
    text = render_page(
        "error.html", {"frame": Frame(), "title": "</title><script>", "message": "a/b &#x2f;", "code": 404}
    )
    assert "<script>" not in text.partition("<body")[2]
    assert "a/b &amp;#x2f;" in text
