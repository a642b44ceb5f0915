"""Signing in and out in a real browser, with and without JavaScript, also from a link on another site."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.oidc_provider import identity_provider
from support.signed_in_site import PASSWORD, SignedInWorld, signed_in_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedInWorld]:
    with signed_in_world(tmp_path_factory.mktemp("signed-in")) as opened_world:
        opened_world.run(opened_world.account("ann"))
        yield opened_world


def signed_in(page: Any, world: SignedInWorld, password: str = PASSWORD, path: str = "/login") -> None:
    page.goto(world.url + path)
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("has_script", [True, pytest.param(False, marks=pytest.mark.tier("all"))])
def test_password_login_opens_the_requested_page_and_sign_out_ends_the_session(
    world: SignedInWorld, open_page: Callable[..., Any], has_script: bool
) -> None:
    page = open_page(java_script_enabled=has_script)
    page.goto(f"{world.url}/settings")
    assert page.url == f"{world.url}/login?next=%2Fsettings"
    signed_in(page, world, "wrong", "/login?next=%2Fsettings")
    page.get_by_text("Invalid username or password").wait_for()
    signed_in(page, world, path="/login?next=%2Fsettings")
    page.wait_for_url(f"{world.url}/settings")
    (cookie,) = [candidate for candidate in page.context.cookies() if candidate["name"].startswith("argosy-")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.locator("button[popovertarget=me]").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("You are signed out.").wait_for()
    assert page.context.cookies() == []
    page.goto(f"{world.url}/settings")
    assert "/login" in page.url


@pytest.mark.tier("all")
def test_login_page_with_an_error_is_accessible(world: SignedInWorld, tab: Any, axe: Callable[..., None]) -> None:
    tab.goto(f"{world.url}/login?error=refused")
    axe(tab)


def test_login_code_works_from_a_link_on_another_site(world: SignedInWorld, open_page: Callable[..., Any]) -> None:
    page = open_page()
    with elsewhere(f"{world.url}/enter?code={world.codes.create_code()}") as address:
        page.goto(address)
        page.get_by_role("link", name="open").click()
        page.wait_for_url(f"{world.url}/apps")
    assert page.get_by_role("heading", level=1).inner_text()
    page.goto(f"{world.url}/settings/accounts")
    page.locator("main").get_by_text("admin").first.wait_for()


@pytest.mark.tier("all")
def test_sso_login_opens_the_requested_page(
    world: SignedInWorld, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(ignore_https_errors=True)  # the provider has its own certificate authority
    with identity_provider(tmp_path) as provider:
        world.run(world.provided(provider))
        page.goto(f"{world.url}/settings/appearance")
        page.get_by_role("link", name="Sign in with Sea Passes").click()
        page.wait_for_url(f"{world.url}/settings/appearance")
        assert "/token" in provider.seen
        page.get_by_role("button", name="ann@x").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out.").wait_for()


class elsewhere:
    """Another site with a link, under another host name of this machine."""

    def __init__(self, link: str) -> None:
        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = f'<!doctype html><link rel="icon" href="data:,"><a href="{link}">open</a>'.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://localhost:{self.server.server_port}/"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
