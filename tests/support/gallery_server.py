"""Serves the component gallery, the static files, and live events that a test sends.

In: patches from a test. Out: pages with argosy's own Content-Security-Policy. Never: part of argosy.
"""

from __future__ import annotations

import json
import queue
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from argosy.web.static_files import load_files
from support import component_gallery

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Gallery:
    """The server: `patch` sends to every open page, `drop` closes their streams."""

    def __init__(self) -> None:
        self.streams: list[queue.Queue[bytes | None]] = []
        self.posted: list[dict[str, list[str]]] = []
        self.found: list[dict[str, str]] = []
        self.is_refusing = False
        owner = self

        class Answer(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                owner.answer(self)

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                owner.posted.append(parse_qs(text))
                owner.send(self, component_gallery.page().encode())

            def log_message(self, *words: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.drop()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        parameters = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        if parts.path == "/live":
            self.stream(request)
        elif parts.path.startswith("/static/"):
            file = load_files()[parts.path.rpartition("/")[2]]
            self.send(request, file.data, file.media_type)
        elif parts.path == "/api/argosy/v1/palette":
            matching = [item for item in self.found if parameters.get("q", "") in item["text"]]
            self.send(request, json.dumps({"items": matching}).encode(), "application/json")
        else:
            framed = {key: parameters[key] for key in ("theme",) if key in parameters}
            text = component_gallery.page(
                **framed, is_live="live" in parameters, has_keys=parameters.get("keys") != "off"
            )
            self.send(request, text.encode())

    def send(self, request: BaseHTTPRequestHandler, data: bytes, media: str = "text/html; charset=utf-8") -> None:
        request.send_response(200)
        request.send_header("Content-Type", media)
        request.send_header("Content-Security-Policy", POLICY)
        request.end_headers()
        request.wfile.write(data)

    def stream(self, request: BaseHTTPRequestHandler) -> None:
        if self.is_refusing:
            request.send_error(503)
            return
        messages: queue.Queue[bytes | None] = queue.Queue()
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b": hello\n\n")
        self.streams.append(messages)
        while (data := messages.get()) is not None:
            request.wfile.write(data)
            request.wfile.flush()

    def patch(self, parts: dict[str, str | None], at: str = "2026-11-15T12:04:00Z", say: str = "") -> None:
        self.event("patch", {"at": at, "parts": parts, "say": say})

    def event(self, name: str, document: dict[str, Any]) -> None:
        for stream in self.streams:
            stream.put(f"event: {name}\ndata: {json.dumps(document)}\n\n".encode())

    def drop(self) -> None:
        for stream in self.streams:
            stream.put(None)
        self.streams.clear()
