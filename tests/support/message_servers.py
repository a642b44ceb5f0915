"""HTTP and SMTP servers on loopback that record messages. In: responses. Out: messages. Never: uses the network."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Letter:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        return json.loads(self.body)


Answer = tuple[int, bytes]


@dataclass
class Inbox:
    url: str
    letters: list[Letter] = field(default_factory=list)
    answer: Callable[[Letter], Answer] = lambda letter: (200, b"")


@contextmanager
def http_inbox(answer: Callable[[Letter], Answer] | None = None) -> Iterator[Inbox]:
    class Taker(BaseHTTPRequestHandler):
        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            letter = Letter(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            inbox.letters.append(letter)
            code, reply = inbox.answer(letter)
            if not code:  # close the connection without a response
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(code)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_PUT = do_PATCH = take

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    inbox = Inbox(f"http://127.0.0.1:{server.server_port}")
    if answer:
        inbox.answer = answer
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield inbox
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Mailbox:
    port: int
    lines: list[str] = field(default_factory=list)
    mails: list[str] = field(default_factory=list)


@contextmanager
def smtp_inbox(refuses: str = "") -> Iterator[Mailbox]:
    """Run a minimal SMTP server that rejects recipients containing the text `refuses`."""
    listening = socket.create_server(("127.0.0.1", 0))
    box = Mailbox(listening.getsockname()[1])

    def converse(line: socket.socket) -> None:
        stream = line.makefile("rwb")

        def say(text: str) -> None:
            stream.write(f"{text}\r\n".encode())
            stream.flush()

        say("220 here")
        while text := stream.readline().decode().rstrip("\r\n"):
            box.lines.append(text)
            verb = text.split()[0].upper()
            if verb == "EHLO":
                say("250-here\r\n250 AUTH PLAIN")
            elif verb == "DATA":
                say("354 go on")
                mail = b""
                while not mail.endswith(b"\r\n.\r\n"):
                    mail += stream.readline()
                box.mails.append(mail.decode())
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            elif verb == "RCPT" and refuses and refuses in text:
                say("550 nobody here")
            else:
                say("235 ok" if verb == "AUTH" else "250 ok")

    def serve() -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            with line:
                try:
                    converse(line)
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield box
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
