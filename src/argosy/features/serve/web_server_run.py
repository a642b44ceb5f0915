"""The web server process: web UI and API of a cluster, on this machine or in a Pod.

In: a cluster, where to listen. Out: a RunningServer while it runs, with its URL and a login URL. Never: plain HTTP on
a non-loopback address; runs an engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy import __version__
from argosy.cli.cluster_target import TargetOptions
from argosy.cli.sandbox_data_folder_and_lock import get_state_folder
from argosy.errors import UserError
from argosy.features.controller.process import choose_target
from argosy.features.serve import running_server_login_urls
from argosy.features.serve.http_server import ServerCertificate, open_listener, serve_application
from argosy.gitops.engine.logging_setup import mask_log_output
from argosy.isolation.confinement_health import ConfinementCheck
from argosy.kube.client import Cluster
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.observability.probe_server import ProbeSources, serve_probes

if TYPE_CHECKING:
    from argosy.gitops.source.repository_mirrors import Repositories
    from argosy.isolation.trusted_process_pool import ProcessPool
    from argosy.web.serve_options import ServeOptions
    from argosy.web.site_services import Site

DEFAULT_PORT: Final = 8484
AUDIT_FILE: Final = "audit.log"
MAX_AUDIT_BYTES: Final = 5 << 20  # bytes; one rotated file is kept
LOOPBACK_ADDRESSES: Final = ("127.0.0.1", "::1", "localhost")
WATCHES_ENDED_MESSAGE: Final = "the cluster watches have ended"
ALL_ADDRESSES: Final = ("0.0.0.0", "::")  # noqa: S104 - only with TLS and on request


@dataclass(frozen=True)
class WebServerOptions:
    port: int | None = None  # None: the default port, or a free one
    listen: str = "127.0.0.1"
    certificate: Path | None = None
    key: Path | None = None
    hostnames: tuple[str, ...] = ()
    repository: Path | None = None  # for promotions
    plugin_sockets: str = ""  # folder with the sockets of plug-ins in sidecars; empty: none
    notebook_runs: Path | None = None  # data folder of a local cluster, with the runs of its notebooks
    metrics_port: int = 0
    folder: Path | None = None  # None: the user's state folder
    is_simulated: bool = False

    @property
    def state_folder(self) -> Path:
        return self.folder or get_state_folder() / running_server_login_urls.STATE_FOLDER_NAME


@dataclass(frozen=True)
class ServeCommandOptions:
    target: TargetOptions = field(default_factory=TargetOptions)
    namespace: str = ""
    page: WebServerOptions = field(default_factory=WebServerOptions)


@dataclass(frozen=True)
class RunningServer:
    url: str
    cluster_name: str  # which cluster
    folder: Path  # readable only by its owner
    is_loopback: bool = True
    fingerprint: str = ""  # of a self-signed certificate
    taken_port: int = 0  # the default port, if it was taken

    def create_login_url(self) -> str:
        """Login URL with a one-time code, on loopback only; otherwise the plain URL."""
        return running_server_login_urls.create_login_url(self.url, self.folder) if self.is_loopback else self.url


def run_server(options: ServeCommandOptions, on_ready: Callable[[RunningServer], None]) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT."""
    asyncio.run(_run(options, on_ready))


async def _run(options: ServeCommandOptions, on_ready: Callable[[RunningServer], None]) -> None:
    from argosy.kube.client.cluster_client import connect
    from argosy.kube.client.reachability_log import ReachabilityLog

    check_options(options.page)
    target = choose_target(options.target)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    connect_task, stop_task = asyncio.create_task(connect(target.connection)), asyncio.create_task(stop.wait())
    await asyncio.wait({connect_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
    if not connect_task.done():  # Ctrl-C before the connection is open
        connect_task.cancel()
        await asyncio.gather(connect_task, return_exceptions=True)
        return
    stop_task.cancel()
    cluster = connect_task.result()
    cluster.set_reachability_log(ReachabilityLog())
    try:
        await _serve(cluster, target.display_name, options, on_ready, stop)
    finally:
        await cluster.close()


async def _serve(
    cluster: Cluster,
    cluster_name: str,
    options: ServeCommandOptions,
    on_ready: Callable[[RunningServer], None],
    stop: asyncio.Event,
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        open_task = asyncio.create_task(
            stack.enter_async_context(serve_web(cluster, cluster_name, options.page, namespace=options.namespace))
        )
        stop_task = asyncio.create_task(stop.wait())
        await asyncio.wait({open_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
        if not open_task.done():  # Ctrl-C before the initial list
            open_task.cancel()
            await asyncio.gather(open_task, return_exceptions=True)
            return
        gc.collect()
        gc.freeze()  # most cached objects stay alive; later collections skip them
        on_ready(open_task.result())
        await stop_task


def check_options(options: WebServerOptions) -> None:
    """Validate the options. Raises UserError."""
    if (options.certificate is None) != (options.key is None):
        raise UserError("--tls-cert and --tls-key must be used together", where="--tls-cert")
    if options.certificate and options.key:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            ServerCertificate(options.certificate, options.key).load_into(context)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or "they do not match, or are not PEM"
            message = f"cannot load the certificate and its key ({reason}); pass a matching pair of PEM files"
            raise UserError(message, where=str(options.certificate)) from error
    if options.repository and not options.repository.is_dir():
        raise UserError("is not a folder; pass the Git clone for promotions", where=str(options.repository))


@contextlib.asynccontextmanager
async def serve_web(
    cluster: Cluster,
    cluster_name: str,
    options: WebServerOptions,
    *,
    namespace: str = "",
    repositories: Repositories | None = None,
    crew: ProcessPool | None = None,
) -> AsyncIterator[RunningServer]:
    """Serve while the block runs. `repositories` and `crew` are those of an engine in this process, if any."""
    from argosy.features.serve.web_application import open_web_application
    from argosy.web.middleware.request_head import is_trusted_proxy

    check_options(options)
    listeners = _open_listeners(options)
    port = int(listeners[0].getsockname()[1])
    certificate = _load_or_create_certificate(options)
    with contextlib.ExitStack() as sockets:
        for listener in listeners:
            sockets.callback(listener.close)
        serve_options = _build_serve_options(options, port, certificate)
        async with open_web_application(
            cluster, cluster_name, serve_options, options.state_folder, namespace, repositories, crew
        ) as application:
            confinement = ConfinementCheck()
            check_task = asyncio.create_task(confinement.run(), name="confinement check")
            sockets.callback(check_task.cancel)
            with _write_audit_file(options.state_folder), mask_log_output(application.mask):
                async with (
                    serve_application(
                        application,
                        listeners,
                        certificate=certificate,
                        on_closing=application.close,
                        is_trusted_proxy=partial(is_trusted_proxy, application.site),
                    ),
                    serve_probes(
                        options.metrics_port,
                        _build_probes(application.site, confinement),
                        address=LOOPBACK_ADDRESSES[0] if serve_options.is_loopback else ALL_ADDRESSES[1],
                        flag="--metrics-port",
                    ),
                ):
                    running_server = _build_running_server(options, serve_options, port, cluster_name)
                    state_file = running_server_login_urls.write_state_file(
                        options.state_folder, running_server.url, cluster_name
                    )
                    with state_file if running_server.is_loopback else contextlib.nullcontext():
                        yield running_server


def _build_probes(site: Site, confinement: ConfinementCheck) -> ProbeSources:
    """Probes: the server is ready once it listens, after the initial list. An unreachable cluster is no failure."""
    from argosy.web.api.metrics import render_metrics

    def list_ended_watches() -> Sequence[str]:
        return [WATCHES_ENDED_MESSAGE] if site.cluster_view.has_stopped else ()

    def list_troubles() -> Sequence[str]:
        return [*list_ended_watches(), *confinement.list_problems()]

    return ProbeSources(
        [lambda: render_metrics(site, site.state)], list_troubles, list_ended_watches, list_ended_watches
    )


def _open_listeners(options: WebServerOptions) -> list[socket.socket]:
    preferred_port = DEFAULT_PORT if options.port is None else options.port
    address = "127.0.0.1" if options.listen == "localhost" else options.listen
    if address == "::" and not socket.has_dualstack_ipv6():  # the host has no IPv6
        address = "0.0.0.0"  # noqa: S104 - as requested
    first = open_listener(address, preferred_port, any_port=options.port is None)
    port, listeners = int(first.getsockname()[1]), [first]
    if address == "127.0.0.1":  # a browser may resolve localhost to ::1
        with contextlib.suppress(UserError, OSError):
            listeners.append(open_listener("::1", port))
    if address == "::":  # two sockets: a dual-stack one would show IPv4 peers as mapped addresses
        listeners.append(open_listener("0.0.0.0", port))  # noqa: S104 - as requested
    return listeners


def _load_or_create_certificate(options: WebServerOptions) -> ServerCertificate | None:
    from argosy.sandbox.apiserver.tls import create_self_signed_certificate, is_certificate_valid_for

    if options.certificate and options.key:
        check_private_file(options.key, follow_links=True)
        return ServerCertificate(options.certificate, options.key)
    if options.listen in LOOPBACK_ADDRESSES:
        return None
    self_signed_certificate = ServerCertificate(options.state_folder / "tls.crt", options.state_folder / "tls.key")
    names = ["localhost", socket.gethostname(), *options.hostnames]
    addresses = ["127.0.0.1", "::1", *([] if options.listen in ALL_ADDRESSES else [options.listen])]
    if not self_signed_certificate.key.exists() or not is_certificate_valid_for(
        self_signed_certificate.certificate, names, addresses
    ):
        create_self_signed_certificate(
            self_signed_certificate.certificate, self_signed_certificate.key, names, addresses
        )
    check_private_file(self_signed_certificate.key)
    return self_signed_certificate


def _build_serve_options(options: WebServerOptions, port: int, certificate: ServerCertificate | None) -> ServeOptions:
    from argosy.web.serve_options import LOOPBACK_HOSTS, ServeOptions

    is_loopback = options.listen in LOOPBACK_ADDRESSES
    own_hosts = () if is_loopback else (socket.gethostname().lower(),)
    return ServeOptions(
        hosts=(*LOOPBACK_HOSTS, *own_hosts, *(hostname.lower() for hostname in options.hostnames)),
        is_loopback=is_loopback,
        is_tls=certificate is not None,
        is_simulated=options.is_simulated,
        repository=options.repository,
        plugin_sockets=options.plugin_sockets,
        notebook_runs_folder=options.notebook_runs,
        version=f"v{__version__}",
        port=port,
    )


def _build_running_server(
    options: WebServerOptions, serve_options: ServeOptions, port: int, cluster_name: str
) -> RunningServer:
    from argosy.sandbox.apiserver.tls import read_fingerprint

    url = f"{'https' if serve_options.is_tls else 'http'}://{_host_name(options)}:{port}"
    is_self_signed = serve_options.is_tls and options.certificate is None
    return RunningServer(
        url=url,
        cluster_name=cluster_name,
        folder=options.state_folder,
        is_loopback=serve_options.is_loopback,
        fingerprint=read_fingerprint(options.state_folder / "tls.crt") if is_self_signed else "",
        taken_port=DEFAULT_PORT if options.port is None and port != DEFAULT_PORT else 0,
    )


def _host_name(options: WebServerOptions) -> str:
    """Host name for the URL."""
    if options.listen in LOOPBACK_ADDRESSES:
        return "[::1]" if options.listen == "::1" else "127.0.0.1"
    if options.hostnames:
        return options.hostnames[0]
    if options.listen in ALL_ADDRESSES:
        return socket.gethostname()
    return f"[{options.listen}]" if ":" in options.listen else options.listen


@contextlib.contextmanager
def _write_audit_file(folder: Path) -> Iterator[None]:
    """Also write the audit log to a file, in case the process log is not kept; ignored if it cannot be written."""
    logger = logging.getLogger("argosy.audit")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / AUDIT_FILE, os.O_CREAT | os.O_WRONLY, 0o600))
        file_handler: logging.Handler = RotatingFileHandler(
            folder / AUDIT_FILE, maxBytes=MAX_AUDIT_BYTES, backupCount=1
        )
    except OSError:
        file_handler = logging.NullHandler()
    file_handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    old_level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(file_handler)
    try:
        yield
    finally:
        logger.removeHandler(file_handler)
        logger.setLevel(old_level)
        file_handler.close()
