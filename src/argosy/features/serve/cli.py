"""`argosy serve`: run the web UI and the REST API."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.log_flags import add_log_flags, begin_log
from argosy.cli.ports import check_port
from argosy.cli.target_flags import add_target_flags, target_options

if TYPE_CHECKING:
    from argosy.features.serve.process import Served

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy serve
  argosy serve --context staging --port 9000 --no-browser
  argosy serve --listen 0.0.0.0 --hostname argosy.example.com --tls-cert tls.crt --tls-key tls.key

See also: docs/guides/page.md
"""
ONCE = "one-time login link, valid for a minute; later: argosy open"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the web UI and the REST API of a cluster",
        description="Serves the web UI and the REST API for a cluster's Applications until it is stopped. It uses only "
        "the cluster's API, and works with an Argo CD or argosy's controller. Inside a Pod it serves the cluster of "
        "the Pod.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_flags(parser)
    about = "namespace of Applications (default: where argosy or an ArgoCD resource is installed, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    about = "port of the web UI (0: any free port; default: 8484, or a free port if it is taken)"
    parser.add_argument("--port", type=int, metavar="N", help=about)
    about = "address to listen on; TLS is used except on loopback addresses (default: 127.0.0.1)"
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDR", help=about)
    about = "PEM certificate with its chain (default: self-signed, with its fingerprint printed)"
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help=about)
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM key of the certificate")
    about = "host name of the web UI; repeatable"
    parser.add_argument("--hostname", action="append", default=[], metavar="NAME", help=about)
    about = "Git clone for promotions (default: environments are read-only)"
    parser.add_argument("--repo", type=Path, metavar="DIR", help=about)
    about = "also serve /healthz, /livez, /readyz and /metrics on this port, without a login (default: off)"
    parser.add_argument("--metrics-port", type=int, default=0, metavar="N", help=about)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_log_flags(parser)
    parser.set_defaults(run=serve)


def serve(chosen: argparse.Namespace) -> int:
    from argosy.features.serve.process import PageOptions, ServingOptions, run

    check_port("--port", chosen.port)
    check_port("--metrics-port", chosen.metrics_port, "none")
    begin_log(chosen)
    page = PageOptions(
        port=chosen.port,
        listen=chosen.listen,
        certificate=chosen.tls_cert,
        key=chosen.tls_key,
        hostnames=tuple(chosen.hostname),
        repository=chosen.repo,
        metrics_port=chosen.metrics_port,
    )

    def ready(served: Served) -> None:
        print("\n".join(announced(served)), flush=True)
        if not chosen.no_browser:
            open_browser(served.entrance(), served.folder)

    run(ServingOptions(target_options(chosen), chosen.namespace, page), ready)
    print("server stopped", file=sys.stderr)
    return 0


def announced(served: Served) -> list[str]:
    return [
        f"Serving {served.where}",
        f"  page         {served.entrance()}",
        *([f"               ({ONCE})"] if served.is_loopback else []),
        *([f"  fingerprint  SHA-256 {served.fingerprint}"] if served.fingerprint else []),
        *([f"  port         {served.instead_of} is taken; choose one with --port"] if served.instead_of else []),
        "Ctrl-C stops it.",
    ]


def open_browser(url: str, folder: Path) -> None:
    """Open the URL if there is a terminal and a display. By a file, because other users may see process arguments."""
    import html
    import os

    has_display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not (has_display and sys.stdout.isatty()):
        return
    import threading
    import webbrowser

    from argosy.cli.data_folder import write_text

    file = folder / "enter.html"
    leads = f'<meta http-equiv="refresh" content="0;url={html.escape(url)}">'
    write_text(file, f"<!doctype html>{leads}<title>argosy</title>")
    threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
