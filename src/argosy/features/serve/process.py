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
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy import __version__
from argosy.cli.data_folder import state_home
from argosy.cli.target import TargetOptions
from argosy.errors import UserError
from argosy.features.controller.process import target_here
from argosy.features.serve import local_login
from argosy.features.serve.http_server import Certificate, bind, listening
from argosy.gitops.engine.logging_setup import masked
from argosy.isolation.health_report import ConfinementCheck
from argosy.kube.client import Cluster
from argosy.kube.client.file_permissions import check_private
from argosy.observability.probe_server import Signs, probed

if TYPE_CHECKING:
    from argosy.gitops.source.repositories import Repositories
    from argosy.isolation.process_pool import Crew
    from argosy.web.middleware.asgi import Entry
    from argosy.web.site import ServeOptions, Site

USUAL_PORT: Final = 8484
AUDIT: Final = "audit.log"
MOST_AUDIT: Final = 5 << 20  # bytes; one rotated file is kept
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
ENDED: Final = "the cluster watches have ended"
EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - only with TLS and on request


@dataclass(frozen=True)
class PageOptions:
    port: int | None = None  # None: the default port, or a free one
    listen: str = "127.0.0.1"
    certificate: Path | None = None
    key: Path | None = None
    hostnames: tuple[str, ...] = ()
    repository: Path | None = None  # for promotions
    runs: Path | None = None  # data folder of a local cluster, with the runs of its notebooks
    metrics_port: int = 0
    folder: Path | None = None  # None: the user's state folder
    is_simulated: bool = False

    @property
    def place(self) -> Path:
        return self.folder or state_home() / local_login.FOLDER


@dataclass(frozen=True)
class ServingOptions:
    target: TargetOptions = field(default_factory=TargetOptions)
    namespace: str = ""
    page: PageOptions = field(default_factory=PageOptions)


@dataclass(frozen=True)
class Served:
    url: str
    where: str  # which cluster
    folder: Path  # readable only by its owner
    is_loopback: bool = True
    fingerprint: str = ""  # of a self-signed certificate
    instead_of: int = 0  # the default port, if it was taken

    def entrance(self) -> str:
        """Login URL with a one-time code, on loopback only; otherwise the plain URL."""
        return local_login.entrance(self.url, self.folder) if self.is_loopback else self.url


def run(options: ServingOptions, ready: Callable[[Served], None]) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT."""
    asyncio.run(_run(options, ready))


async def _run(options: ServingOptions, ready: Callable[[Served], None]) -> None:
    from argosy.kube.client.http import connect
    from argosy.kube.client.reachability import Contact

    check(options.page)
    target = target_here(options.target)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    connecting, ending = asyncio.create_task(connect(target.connection)), asyncio.create_task(stop.wait())
    await asyncio.wait({connecting, ending}, return_when=asyncio.FIRST_COMPLETED)
    if not connecting.done():  # Ctrl-C before the connection is open
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        return
    ending.cancel()
    cluster = connecting.result()
    cluster.tell_contact(Contact())
    try:
        await _serve(cluster, target.where, options, ready, stop)
    finally:
        await cluster.close()


async def _serve(
    cluster: Cluster, where: str, options: ServingOptions, ready: Callable[[Served], None], stop: asyncio.Event
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        opening = asyncio.create_task(
            stack.enter_async_context(serving(cluster, where, options.page, namespace=options.namespace))
        )
        ending = asyncio.create_task(stop.wait())
        await asyncio.wait({opening, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():  # Ctrl-C before the initial list
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return
        gc.collect()
        gc.freeze()  # most cached objects stay alive; later collections skip them
        ready(opening.result())
        await ending


def check(options: PageOptions) -> None:
    """Validate the options. Raises UserError."""
    if (options.certificate is None) != (options.key is None):
        raise UserError("--tls-cert and --tls-key must be used together", where="--tls-cert")
    if options.certificate and options.key:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            Certificate(options.certificate, options.key).load(context)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or "they do not match, or are not PEM"
            message = f"cannot load the certificate and its key ({why}); pass a matching pair of PEM files"
            raise UserError(message, where=str(options.certificate)) from error
    if options.repository and not options.repository.is_dir():
        raise UserError("is not a folder; pass the Git clone for promotions", where=str(options.repository))


@contextlib.asynccontextmanager
async def serving(
    cluster: Cluster,
    where: str,
    options: PageOptions,
    *,
    namespace: str = "",
    repositories: Repositories | None = None,
    crew: Crew | None = None,
) -> AsyncIterator[Served]:
    """Serve while the block runs. `repositories` and `crew` are those of an engine in this process, if any."""
    from argosy.features.serve.site_setup import opened_site
    from argosy.web import build

    check(options)
    listeners = _listeners(options)
    port = int(listeners[0].getsockname()[1])
    certificate = _certificate(options)
    with contextlib.ExitStack() as sockets:
        for each in listeners:
            sockets.callback(each.close)
        told = _serve_options(options, port, certificate)
        async with opened_site(cluster, where, told, options.place, namespace, repositories, crew) as site:
            entry = build(site)
            confinement = ConfinementCheck()
            checking = asyncio.create_task(confinement.run(), name="confinement check")
            sockets.callback(checking.cancel)
            with _audit_kept(options.place), masked(entry.mask):
                async with (
                    listening(entry, listeners, certificate=certificate, closing=entry.close),
                    probed(
                        options.metrics_port,
                        _signs(site, entry, confinement),
                        listen=LOOPBACK[0] if told.is_loopback else EVERYWHERE[1],
                        flag="--metrics-port",
                    ),
                ):
                    found = _served(options, told, port, where)
                    page = local_login.told(options.place, found.url, where)
                    with page if found.is_loopback else contextlib.nullcontext():
                        yield found


def _signs(site: Site, entry: Entry, confinement: ConfinementCheck) -> Signs:
    """Probes: the server is ready once it listens, after the initial list. An unreachable cluster is no failure."""
    from argosy.web.api.metrics import measured

    def ended() -> Sequence[str]:
        return [ENDED] if site.lookout.has_ended else ()

    def troubles() -> Sequence[str]:
        return [*ended(), *confinement.troubles()]

    return Signs([lambda: measured(site, entry)], troubles, ended, ended)


def _listeners(options: PageOptions) -> list[socket.socket]:
    wish = USUAL_PORT if options.port is None else options.port
    address = "127.0.0.1" if options.listen == "localhost" else options.listen
    if address == "::" and not socket.has_dualstack_ipv6():  # the host has no IPv6
        address = "0.0.0.0"  # noqa: S104 - as requested
    first = bind(address, wish, any_port=options.port is None)
    port, found = int(first.getsockname()[1]), [first]
    if address == "127.0.0.1":  # a browser may resolve localhost to ::1
        with contextlib.suppress(UserError, OSError):
            found.append(bind("::1", port))
    if address == "::":  # two sockets: a dual-stack one would show IPv4 peers as mapped addresses
        found.append(bind("0.0.0.0", port))  # noqa: S104 - as requested
    return found


def _certificate(options: PageOptions) -> Certificate | None:
    from argosy.sandbox.apiserver.tls import self_signed, speaks_for

    if options.certificate and options.key:
        check_private(options.key, follow_links=True)
        return Certificate(options.certificate, options.key)
    if options.listen in LOOPBACK:
        return None
    made = Certificate(options.place / "tls.crt", options.place / "tls.key")
    names = ["localhost", socket.gethostname(), *options.hostnames]
    addresses = ["127.0.0.1", "::1", *([] if options.listen in EVERYWHERE else [options.listen])]
    if not made.key.exists() or not speaks_for(made.certificate, names, addresses):
        self_signed(made.certificate, made.key, names, addresses)
    check_private(made.key)
    return made


def _serve_options(options: PageOptions, port: int, certificate: Certificate | None) -> ServeOptions:
    from argosy.web.site import LOOPBACK_HOSTS, ServeOptions

    is_loopback = options.listen in LOOPBACK
    own = () if is_loopback else (socket.gethostname().lower(),)
    return ServeOptions(
        hosts=(*LOOPBACK_HOSTS, *own, *(each.lower() for each in options.hostnames)),
        is_loopback=is_loopback,
        is_tls=certificate is not None,
        is_simulated=options.is_simulated,
        repository=options.repository,
        runs=options.runs,
        version=f"v{__version__}",
        port=port,
    )


def _served(options: PageOptions, told: ServeOptions, port: int, where: str) -> Served:
    from argosy.sandbox.apiserver.tls import fingerprint

    url = f"{'https' if told.is_tls else 'http'}://{_name(options)}:{port}"
    made = told.is_tls and options.certificate is None
    return Served(
        url=url,
        where=where,
        folder=options.place,
        is_loopback=told.is_loopback,
        fingerprint=fingerprint(options.place / "tls.crt") if made else "",
        instead_of=USUAL_PORT if options.port is None and port != USUAL_PORT else 0,
    )


def _name(options: PageOptions) -> str:
    """Host name for the URL."""
    if options.listen in LOOPBACK:
        return "[::1]" if options.listen == "::1" else "127.0.0.1"
    if options.hostnames:
        return options.hostnames[0]
    if options.listen in EVERYWHERE:
        return socket.gethostname()
    return f"[{options.listen}]" if ":" in options.listen else options.listen


@contextlib.contextmanager
def _audit_kept(folder: Path) -> Iterator[None]:
    """Also write the audit log to a file, in case the process log is not kept; ignored if it cannot be written."""
    logger = logging.getLogger("argosy.audit")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / AUDIT, os.O_CREAT | os.O_WRONLY, 0o600))
        kept: logging.Handler = RotatingFileHandler(folder / AUDIT, maxBytes=MOST_AUDIT, backupCount=1)
    except OSError:
        kept = logging.NullHandler()
    kept.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(kept)
    try:
        yield
    finally:
        logger.removeHandler(kept)
        logger.setLevel(before)
        kept.close()
