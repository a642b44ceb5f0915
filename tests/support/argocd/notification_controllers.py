"""Both notification controllers, each with a receiver that records the messages it gets.

In: a pair. Out: the requests of each side. Never: answers a message with an error unless it is told to.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

from support.argocd.comparison import normalize_text
from support.argocd.pair import CONTROL, POLL_SECONDS, QUIET_SECONDS, Pair, Side, run_argosy
from support.deadlines import wait_until

SETTINGS: Final = "argocd-notifications-cm"
# In a message about the end of a sync, which Argo CD may send before or after the comparison that follows.
_SAMPLED_STATUS: Final = re.compile(
    r'(?<="Sync Status", "value": ")\w+|(?<="value": ")\w+(?=", "title": "Sync Status")'
)
# Of requests; all others depend on the HTTP client.
COMPARED_HEADERS: Final = ("Authorization", "Content-Type", "X-Team")


@dataclass
class Receiver:
    """An HTTP server that records each request, and answers as Slack does."""

    server: ThreadingHTTPServer
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server.server_port}"

    def list_messages(self, application: str) -> list[str]:
        """Return the requests that name the Application, each once, in an order of their own."""
        texts = [
            _SAMPLED_STATUS.sub("<sampled>", normalize_text(json.dumps(request, sort_keys=True)))
            for request in list(self.requests)
        ]
        return sorted(text for text in texts if application in text.lower())


@contextlib.contextmanager
def run_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            receiver.requests.append(
                read_slack_call(self.path, body)
                if self.path.startswith("/slack")
                else {
                    "method": self.command,
                    "path": self.path,
                    "body": _read_json(body),
                    "headers": {name: self.headers[name] for name in COMPARED_HEADERS if name in self.headers},
                }
            )
            answer = b"1" if self.path.startswith("/teams") else b'{"ok": true, "channel": "C1", "ts": "1.2"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    receiver = Receiver(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = threading.Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


def read_slack_call(path: str, body: str) -> dict[str, Any]:
    """Return a call of Slack's API, which takes forms (as Argo CD's client sends) and JSON alike."""
    fields = json.loads(body) if body.startswith("{") else dict(urllib.parse.parse_qsl(body))
    read = {name: _read_json(value) if isinstance(value, str) else value for name, value in fields.items()}
    read.pop("token", None)  # argosy sends it in a header
    for attachment in read.get("attachments", ()):
        attachment.pop("blocks", None)  # Go's null
    return {"path": path, "body": read}


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass
class NotificationControllers:
    pair: Pair
    receivers: tuple[Receiver, Receiver]

    def wait_until_quiet(self, application: str, last_message: str) -> None:
        """Wait until Argo CD sent the last message, and both sides sent the same or stop sending.

        Without an end, the comparison that follows shows what differs.
        """
        argocd = self.receivers[0]
        wait_until(lambda: last_message in "".join(argocd.list_messages(application)), f"Argo CD sends {last_message}")
        before: Any = None
        changed_at = time.monotonic()
        while True:
            current = self.list_messages(application)
            if current != before:
                before, changed_at = current, time.monotonic()
            if time.monotonic() - changed_at >= (2 * POLL_SECONDS if current[0] == current[1] else QUIET_SECONDS):
                return
            time.sleep(POLL_SECONDS)

    def list_messages(self, application: str) -> tuple[list[str], list[str]]:
        argocd, argosy = (receiver.list_messages(application) for receiver in self.receivers)
        return argocd, argosy


@contextlib.contextmanager
def run_notification_controllers(
    pair: Pair, folder: Path, settings: Mapping[str, Any], secrets: Mapping[str, str]
) -> Iterator[NotificationControllers]:
    """Start both with Argo CD's catalogue and these settings, where {url} is the address of the side's receiver."""
    catalogue = pair.programs.installation.source / "notifications_catalog/install.yaml"
    data = {**yaml.safe_load(catalogue.read_text())["data"], **settings}
    with run_receiver() as one, run_receiver() as other:
        for side, receiver in zip(pair.sides, (one, other), strict=True):
            _apply_settings(side, {name: text.replace("{url}", receiver.url) for name, text in data.items()}, secrets)
        pair.programs.start_with_metrics("notifications")
        flags = ("--no-engine", "--addons", "notifications")
        try:
            with run_argosy(pair.argosy.server, folder / "notifications", pair.programs.installation, *flags):
                yield NotificationControllers(pair, (one, other))
        finally:
            pair.programs.stop_component("notifications")


def _apply_settings(side: Side, data: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    names = {"namespace": CONTROL}
    side.apply(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS, **names}, "data": data},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-notifications-secret", **names},
             "stringData": secrets},
        ]
    )  # fmt: skip
