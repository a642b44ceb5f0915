"""A Helm repository over HTTP or HTTPS, and the archives of charts.

In: charts as files. Out: an address, and the requests that it received. Never: listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import ssl
import tarfile
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {version: {{ .Chart.Version | quote }}, size: {{ .Values.size | quote }}}
"""


def chart_files(name: str, version: str, **more: str) -> dict[str, str]:
    """Return the files of a chart with one ConfigMap; `more` has files by path, with __ for a slash and no dots."""
    return {
        "Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}),
        "values.yaml": "size: small\n",
        "templates/config.yaml": CONFIG_MAP,
        **more,
    }


def pack(files: Mapping[str, str | bytes], folder: str = "") -> bytes:
    """Return the archive of a chart."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{path}" if folder else path)
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


class ChartServer(ThreadingHTTPServer):
    """Serves an index and archives, and records the path and the Authorization header of each request."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.scheme = "https" if context else "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.files: dict[str, bytes] = {}  # by path
        self.entries: dict[str, list[dict[str, object]]] = {}
        self.redirects: dict[str, str] = {}  # path → location
        self.wanted = ""  # the required Authorization header
        self.code = 200  # another one is the answer to every request
        self.seen: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def count(self, path: str) -> int:
        return sum(1 for seen, _ in self.seen if seen == path)

    def publish(self, name: str, version: str, url: str = "", archive: bytes = b"", **fields: object) -> None:
        """Add a version to the index, and its archive at the URL if that is on this server."""
        archive = archive or pack(chart_files(name, version), name)
        url = url or f"charts/{name}-{version}.tgz"
        if "://" not in url:
            self.files[f"/{url.lstrip('/')}"] = archive
        entry = {"name": name, "version": version, "urls": [url], "digest": hashlib.sha256(archive).hexdigest()}
        self.entries.setdefault(name, []).insert(0, {**entry, **fields})
        self.files["/index.yaml"] = yaml.safe_dump({"apiVersion": "v1", "entries": self.entries}).encode()


class _Answer(BaseHTTPRequestHandler):
    server: ChartServer

    def do_GET(self) -> None:
        server, path = self.server, self.path
        authorization = self.headers.get("Authorization", "")
        server.seen.append((path, authorization))
        if server.code != 200:
            self._send(server.code)
        elif server.wanted and authorization != server.wanted:
            self._send(401)
        elif path in server.redirects:
            self._send(302, b"", ("Location", server.redirects[path]))
        elif path in server.files:
            self._send(200, server.files[path])
        else:
            self._send(404)

    def _send(self, code: int, body: bytes = b"", *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def chart_server(context: ssl.SSLContext | None = None) -> Iterator[ChartServer]:
    """Start a server, with TLS if a context is given, and stop it afterwards."""
    server = ChartServer(context)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
