"""`argosy serve`: run the web UI and the REST API."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.log_flags import add_log_flags, start_logging
from argosy.cli.plugin_sockets_flag import add_plugin_sockets_flag, read_plugin_sockets_folder
from argosy.cli.port_validation import check_port

if TYPE_CHECKING:
    from argosy.features.serve.web_server_run import RunningServer

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy serve
  argosy serve --context staging --port 9000 --no-browser
  argosy serve --listen 0.0.0.0 --hostname argosy.example.com --tls-cert tls.crt --tls-key tls.key

See also: docs/guides/page.md
"""
LOGIN_LINK_NOTE = "one-time login link, valid for a minute; later: argosy open"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
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
    help_text = "namespace of Applications (default: where argosy or an ArgoCD resource is installed, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)
    help_text = "port of the web UI (0: any free port; default: 8484, or a free port if it is taken)"
    parser.add_argument("--port", type=int, metavar="N", help=help_text)
    help_text = "address to listen on; TLS is used except on loopback addresses (default: 127.0.0.1)"
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDR", help=help_text)
    help_text = "PEM certificate with its chain (default: self-signed, with its fingerprint printed)"
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help=help_text)
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM key of the certificate")
    help_text = "host name of the web UI; repeatable"
    parser.add_argument("--hostname", action="append", default=[], metavar="NAME", help=help_text)
    help_text = "Git clone for promotions (default: environments are read-only)"
    parser.add_argument("--repo", type=Path, metavar="DIR", help=help_text)
    add_plugin_sockets_flag(parser)
    help_text = "also serve /healthz, /livez, /readyz and /metrics on this port, without a login (default: off)"
    parser.add_argument("--metrics-port", type=int, default=0, metavar="N", help=help_text)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_log_flags(parser)
    parser.set_defaults(run=run_serve)


def run_serve(args: argparse.Namespace) -> int:
    from argosy.features.serve.web_server_run import ServeCommandOptions, WebServerOptions, run_server

    check_port("--port", args.port)
    check_port("--metrics-port", args.metrics_port, "none")
    start_logging(args)
    page = WebServerOptions(
        port=args.port,
        listen=args.listen,
        certificate=args.tls_cert,
        key=args.tls_key,
        hostnames=tuple(args.hostname),
        repository=args.repo,
        plugin_sockets=read_plugin_sockets_folder(args),
        metrics_port=args.metrics_port,
    )

    def on_ready(running_server: RunningServer) -> None:
        print("\n".join(render_ready_lines(running_server)), flush=True)
        if not args.no_browser:
            open_browser(running_server.create_login_url(), running_server.folder)

    run_server(ServeCommandOptions(read_target_options(args), args.namespace, page), on_ready)
    print("server stopped", file=sys.stderr)
    return 0


def render_ready_lines(running_server: RunningServer) -> list[str]:
    return [
        f"Serving {running_server.cluster_name}",
        f"  page         {running_server.create_login_url()}",
        *([f"               ({LOGIN_LINK_NOTE})"] if running_server.is_loopback else []),
        *([f"  fingerprint  SHA-256 {running_server.fingerprint}"] if running_server.fingerprint else []),
        *(
            [f"  port         {running_server.taken_port} is taken; choose one with --port"]
            if running_server.taken_port
            else []
        ),
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

    from argosy.cli.sandbox_data_folder_and_lock import write_private_text

    file = folder / "enter.html"
    refresh_tag = f'<meta http-equiv="refresh" content="0;url={html.escape(url)}">'
    write_private_text(file, f"<!doctype html>{refresh_tag}<title>argosy</title>")
    threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
