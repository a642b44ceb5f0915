"""A Git server over HTTP, using `git http-backend`.

In: a folder of repositories. Out: an address, and the requests that it received. Never: listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support.deadlines import HANG_SECONDS


class GitHost(ThreadingHTTPServer):
    """Serves the repositories below a folder with `git http-backend`, and records requests."""

    daemon_threads = True

    def __init__(self, root: Path, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.root = root
        self.scheme = "https" if context else "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.wanted = ""  # the required Authorization header
        self.redirect = ""
        self.seen: list[tuple[str, str]] = []
        self.commands: set[bytes] = set()
        self.holds = False  # delay packs until released
        self.released = threading.Event()
        self.asked_for_pack = threading.Event()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: GitHost

    def do_GET(self) -> None:
        host = self.server
        authorization = self.headers.get("Authorization", "")
        host.seen.append((self.path, authorization))
        host.commands |= running_commands()
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if host.redirect:
            self._plain(301, ("Location", host.redirect + self.path))
        elif host.wanted and authorization != host.wanted:
            self._plain(401, ("WWW-Authenticate", 'Basic realm="git"'))
        else:
            if self.command == "POST" and b"command=fetch" in body and host.holds:
                host.asked_for_pack.set()
                host.released.wait(2 * HANG_SECONDS)  # longer than any client waits
            self._from_git(body)

    do_POST = do_GET

    def _plain(self, code: int, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", "0")):
            self.send_header(name, value)
        self.end_headers()

    def _from_git(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.server.root), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        try:
            self.send_response(status)
            for name, value in headers:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except BrokenPipeError:
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


def running_commands() -> set[bytes]:
    """The arguments of all processes, which every user of a machine can see."""
    commands = set()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.add(process.read_bytes())
        except OSError:
            continue
    return commands


@contextlib.contextmanager
def git_host(root: Path, context: ssl.SSLContext | None = None) -> Iterator[GitHost]:
    """Start a server, with TLS if a context is given, and stop it afterwards."""
    server = GitHost(root, context)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
