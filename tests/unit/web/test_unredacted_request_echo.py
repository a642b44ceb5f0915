"""Form fields that a page shows again stay escaped as the page escaped them, even if they are values of Secrets."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from markupsafe import escape

from argosy.features.health_checks import page as settings_health
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.request_input_echo import conceal_form_fields
from argosy.web.responses import PageResponse
from argosy.web.route import Route, SignedIn
from support.page_site import CONTROL, a_site
from support.tenants import ask

HOSTILE = {
    "a quote": '"><script>alert(1)</script>',
    "a tag": "<script>alert(1)</script>",
    "an ampersand": "&quot;&gt;&lt;b&gt; & more",
    "an apostrophe": "' onfocus='alert(1)' autofocus='",
    "the end of an area": "</textarea><script>alert(1)</script>",
    "several lines": "one <b>\n\"two\" 'three' & four\n",
    "other letters": 'größer "€" \U0001f600 als je',
    "a backslash": '\\"\\u003cscript>\\g<0> \\1',
}


class Tags(HTMLParser):
    """Parses a page into its tags and the values of its inputs and text areas."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fields: dict[str, str] = {}
        self._area = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = {name: value or "" for name, value in attrs}
        if tag == "input":
            self.fields[values.get("name", "")] = values.get("value", "")
        self._area = values["name"] if tag == "textarea" else ""

    def handle_endtag(self, tag: str) -> None:
        self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] = self.fields.get(self._area, "") + data


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_page_is_unchanged_after_concealing_and_restoring_its_fields(text: str) -> None:
    html = escape(text)
    page = f'<p>{html}</p><input name="q" value="{html}"><textarea name="script">{html}</textarea><b></b>'.encode()
    concealed, fields = conceal_form_fields(page, QueryParameters([("q", text), ("script", text)]))
    assert concealed.count(str(html).encode()) == 1, "only the paragraph still has it"
    assert fields.restore(concealed) == page


def test_equal_fields_are_each_restored_in_their_own_escaping() -> None:
    page = b'<input name="a" value="it&#39;s &lt;here&gt;"><input name="b" value="it&#x27;s &#60;here&#62;">' * 20
    text = "it's <here>"
    concealed, fields = conceal_form_fields(page, QueryParameters([("a", text), ("b", text)]))
    assert b"here" not in concealed
    assert fields.restore(concealed) == page


def test_page_without_a_matching_form_field_is_unchanged() -> None:
    page = b'<input name="q" value="some text">'
    for form in (None, QueryParameters([]), QueryParameters([("other", "some text")])):
        concealed, fields = conceal_form_fields(page, form)
        assert concealed == page == fields.restore(page)


def secret(value: str) -> dict[str, object]:
    data = {"v": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": CONTROL}, "data": data}


@pytest.mark.anyio
@pytest.mark.parametrize("is_secret", [False, True], ids=["no secret", "a secret"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_form_returned_with_an_error_shows_its_fields_escaped(text: str, is_secret: bool) -> None:
    async def answer(request: RequestContext) -> PageResponse:
        form = await request.read_form()
        if "url" in form:
            values = {"title": "x", "section": "settings", "crumbs": [], "rows": [], "fault": "x", "commands": []}
            return PageResponse("repositories/repositories.html", {**values, "typed": form.get_text("url")}, code=400)
        values = settings_health.build_page_values(request, fault="invalid")
        return PageResponse("health_checks/health_checks.html", {**values, "script": form.get_text("script")}, code=400)

    entry = WebApplication(
        a_site([secret(text.strip())] if is_secret else []), [Route("POST", "/settings/x", SignedIn(), answer, "x")]
    )
    headers = {"Authorization": "Bearer ann", "Content-Type": "application/x-www-form-urlencoded"}
    for name in ("url", "script"):
        pages = []
        for sent in (text, "an ordinary text"):
            got = await ask(entry, "POST", "/settings/x", headers, urlencode({name: sent}).encode())
            assert got.code == 400, got.body
            pages.append(Tags(got.body.decode()))
            assert pages[-1].fields[name] == sent
        assert pages[0].tags == pages[1].tags
