"""The page and the API of a cluster, served on this machine or in a Pod of it.

In: a cluster, where to listen. Out: a Served value while it runs: its address, and one that lets its owner in. Never:
plain HTTP on an address that others reach; an engine.
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
MOST_AUDIT: Final = 5 << 20  # bytes of a file; the one before is kept
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
ENDED: Final = "the watches of the cluster have ended"
EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - with TLS, where somebody asks for it


@dataclass(frozen=True)
class PageOptions:
    port: int | None = None  # None: the usual one, or any that is free
    listen: str = "127.0.0.1"
    certificate: Path | None = None
    key: Path | None = None
    hostnames: tuple[str, ...] = ()
    repository: Path | None = None  # of promotions
    runs: Path | None = None  # the folder of a cluster that runs here, which keeps the runs of its notebooks
    metrics_port: int = 0
    folder: Path | None = None  # None: that of this user
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
    folder: Path  # what only its owner may read
    is_loopback: bool = True
    fingerprint: str = ""  # of a certificate that was made here
    instead_of: int = 0  # the port that was wished for and is taken

    def entrance(self) -> str:
        """The same with a code that counts once, for a minute; beyond this machine people log in."""
        return local_login.entrance(self.url, self.folder) if self.is_loopback else self.url


def run(options: ServingOptions, ready: Callable[[Served], None]) -> None:
    """In the foreground: returns after SIGTERM or SIGINT."""
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
    if not connecting.done():  # Ctrl-C, before anybody has answered
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
        if not opening.done():  # Ctrl-C before the cluster has answered
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return
        gc.collect()
        gc.freeze()  # what lives in the cluster stays, most of it; later collections need not look at it
        ready(opening.result())
        await ending


def check(options: PageOptions) -> None:
    """Before anything is opened."""
    if (options.certificate is None) != (options.key is None):
        raise UserError("a certificate needs its key, and a key its certificate; give both", where="--tls-cert")
    if options.certificate and options.key:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            Certificate(options.certificate, options.key).load(context)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or "they do not belong together, or are not PEM"
            message = f"the certificate and its key cannot be used ({why}); name two PEM files that belong together"
            raise UserError(message, where=str(options.certificate)) from error
    if options.repository and not options.repository.is_dir():
        raise UserError("is no folder; name the clone that promotions are written in", where=str(options.repository))


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
    """While it is open, requests are answered. `repositories` and `crew`: those of an engine in this process."""
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
    """Who answers is ready: everything was listed before. A cluster that is away comes back, and pages say so."""
    from argosy.web.api.metrics import measured

    def ended() -> Sequence[str]:
        return [ENDED] if site.lookout.has_ended else ()

    def troubles() -> Sequence[str]:
        return [*ended(), *confinement.troubles()]

    return Signs([lambda: measured(site, entry)], troubles, ended, ended)


def _listeners(options: PageOptions) -> list[socket.socket]:
    wish = USUAL_PORT if options.port is None else options.port
    address = "127.0.0.1" if options.listen == "localhost" else options.listen
    if address == "::" and not socket.has_dualstack_ipv6():  # nor will anybody ask for it by such an address
        address = "0.0.0.0"  # noqa: S104 - as asked for
    first = bind(address, wish, any_port=options.port is None)
    port, found = int(first.getsockname()[1]), [first]
    if address == "127.0.0.1":  # a browser may take localhost for the other one
        with contextlib.suppress(UserError, OSError):
            found.append(bind("::1", port))
    if address == "::":  # a socket for each kind: on one for both, addresses of the older kind would have another form
        found.append(bind("0.0.0.0", port))  # noqa: S104 - as asked for
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
    """What people ask for it by."""
    if options.listen in LOOPBACK:
        return "[::1]" if options.listen == "::1" else "127.0.0.1"
    if options.hostnames:
        return options.hostnames[0]
    if options.listen in EVERYWHERE:
        return socket.gethostname()
    return f"[{options.listen}]" if ":" in options.listen else options.listen


@contextlib.contextmanager
def _audit_kept(folder: Path) -> Iterator[None]:
    """Where nobody keeps this process's log, its audit is kept nevertheless; where no file can be, the log has it."""
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
