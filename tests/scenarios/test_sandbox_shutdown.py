"""SIGTERM and SIGINT under load: the sandbox exits without losing acknowledged writes."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support.clusters import ARGOSY, Endpoint, Sandbox, ask, configmap, environment, sandbox
from support.deadlines import HANG_SECONDS, wait_until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Writers:
    """Clients that create ConfigMaps until the server stops, and record the acknowledged writes."""

    def __init__(self, endpoint: Endpoint, count: int) -> None:
        self.acked: dict[str, str] = {}
        self._threads = [threading.Thread(target=self._write, args=(endpoint, number)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _write(self, endpoint: Endpoint, number: int) -> None:
        connection = endpoint.connection()
        try:
            for turn in range(10**6):
                name = f"w{number}-{turn}"
                answer = ask(connection, "POST", CONFIGMAPS, configmap(name, {"a": "b"}), token=endpoint.token)
                if answer.code != 201:
                    return
                self.acked[name] = answer.json()["metadata"]["resourceVersion"]
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(HANG_SECONDS)
            assert not thread.is_alive()


def open_watches(endpoint: Endpoint, count: int) -> list[http.client.HTTPResponse]:
    streams = []
    for _ in range(count):
        connection = endpoint.connection()
        connection.request("GET", f"{CONFIGMAPS}?watch=1", headers={"Authorization": f"Bearer {endpoint.token}"})
        streams.append(connection.getresponse())
    return streams


@pytest.mark.tier("all")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_under_load_stops_cleanly_and_keeps_acknowledged_writes(home: Path, number: int) -> None:
    with sandbox(home / "data", "--port", "0") as first:
        streams = open_watches(first.endpoint, 50)
        writers = Writers(first.endpoint, 6)
        wait_until(lambda: len(writers.acked) >= 200, "200 are acknowledged")
        first.end(number)
        assert first.process.returncode == 0
        writers.join()
        assert "Traceback" not in first.log(), first.log()
        for stream in streams:  # each watch response ends completely, not truncated
            stream.read()
            stream.close()
    with sandbox(home / "data") as second:
        listed = second.request("GET", CONFIGMAPS).json()["items"]
        versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed}
        assert {name: versions.get(name) for name in writers.acked} == writers.acked


def test_unfinished_client_connections_do_not_block_the_stop(running: Sandbox) -> None:
    """Half a header, half a body, a TLS handshake that never starts, and a watch that is never read."""
    endpoint, connections = running.endpoint, list[socket.socket]()
    head = f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {endpoint.token}\r\n"
    for text in (head, head + "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", ""):
        plain = socket.create_connection((endpoint.host, endpoint.port))
        stalled = endpoint.tls.wrap_socket(plain, server_hostname=endpoint.host)
        stalled.sendall(text.encode())
        connections.append(stalled)
    connections.append(socket.create_connection((endpoint.host, endpoint.port)))
    streams = open_watches(endpoint, 1)
    for number in range(5):
        running.request("POST", CONFIGMAPS, configmap(f"big{number}", {"a": "x" * 900_000}))
    running.end()
    assert running.process.returncode == 0 and "Traceback" not in running.log()
    for connection in (*connections, *streams):
        connection.close()


@pytest.mark.tier("all")
def test_sigint_during_start_causes_no_traceback_and_allows_a_new_start(home: Path) -> None:
    """Ctrl-C at several moments of a start: no traceback, and the next start works."""
    for number, moment in enumerate((0.0, 0.02, 0.1, 0.3)):
        folder = home / f"hasty-{number}"
        command = [str(ARGOSY), "sandbox", "start", "--data-dir", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=-1, stderr=-1, env=environment(home), text=True) as process:
            while not (folder / "lock").exists() and process.poll() is None:
                time.sleep(0.005)  # before that Python still loads modules
            time.sleep(moment)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANG_SECONDS)
        assert "Traceback" not in err, (moment, err)
    for number in (0, 2):
        with sandbox(home / f"hasty-{number}", "--port", "0", home=home) as started:
            assert started.request("GET", "/readyz").code == 200
