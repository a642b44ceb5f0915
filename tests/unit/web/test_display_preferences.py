"""Display preferences are stored only in cookies of the browser."""

from __future__ import annotations

import pytest

from argosy.web.display_preference_form import save_preferences
from argosy.web.middleware.page_context import build_frame_values
from argosy.web.request import QueryParameters, RequestContext, RequestMemory
from argosy.web.responses import RedirectResponse
from support.page_site import a_request, a_site

pytestmark = pytest.mark.anyio


def build_request(cookie: str = "", form: dict[str, str] | None = None) -> RequestContext:
    memory = RequestMemory(form=QueryParameters(list((form or {}).items())))
    return a_request(a_site(), "POST", "/preferences", headers={"cookie": cookie}, memory=memory)


def list_cookies(answer: RedirectResponse) -> list[str]:
    return [value.partition(";")[0] for name, value in answer.headers if name == "set-cookie"]


async def test_theme_is_saved_and_applied() -> None:
    answer = await save_preferences(build_request(form={"theme": "dark", "back": "/apps?q=x"}))
    assert (answer.location, list_cookies(answer)) == ("/apps?q=x", ["argosy-theme=dark"])
    assert build_frame_values(build_request("a=b; argosy-theme=dark"))["frame"].theme == "dark"


async def test_system_theme_deletes_the_cookie() -> None:
    answer = await save_preferences(build_request(form={"theme": "system"}))
    assert "Max-Age=0" in dict(answer.headers)["set-cookie"]


@pytest.mark.parametrize("back", ["https://evil.example", "//evil.example", "/\\evil", "javascript:x", ""])
async def test_redirect_after_saving_stays_on_this_site(back: str) -> None:
    assert (await save_preferences(build_request(form={"keys": "off", "back": back}))).location == "/apps"


async def test_favourite_is_added_and_removed() -> None:
    answer = await save_preferences(build_request("argosy-favourites=argocd/a", {"favourite": "argocd/b"}))
    assert list_cookies(answer) == ["argosy-favourites=argocd/b~argocd/a"]
    assert build_frame_values(build_request("argosy-favourites=argocd/b~argocd/a"))["frame"].favourites == {
        "argocd/a",
        "argocd/b",
    }
    answer = await save_preferences(build_request("argosy-favourites=argocd/b~argocd/a", {"favourite": "argocd/b"}))
    assert list_cookies(answer) == ["argosy-favourites=argocd/a"]


@pytest.mark.parametrize("name", ["argocd/a; Domain=evil", "a\r\nset-cookie: x", "../../x/y", "A/B", ""])
async def test_invalid_favourite_is_not_saved(name: str) -> None:
    assert list_cookies(await save_preferences(build_request(form={"favourite": name}))) == []


async def test_unknown_theme_is_ignored() -> None:
    assert build_frame_values(build_request('argosy-theme="><script>'))["frame"].theme == ""
