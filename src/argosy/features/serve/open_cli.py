"""`argosy open`: open the local web UI without a password."""

from __future__ import annotations

import argparse

from argosy.cli.cluster_flags import parse_path
from argosy.cli.port_validation import check_port

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy open
  argosy open --no-browser
  argosy open --port 9000

See also: docs/guides/page.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "open",
        help="open the local web UI in a browser",
        description="Prints a one-time login URL of the web UI, valid for a minute, and opens it in a browser. It uses "
        "a running demo, else 'argosy serve'; only the user who started them can do this.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", type=parse_path, metavar="DIR", help="folder of the demo to open")
    help_text = "port of the web UI (default: the demo's, else that of the newest server)"
    parser.add_argument("--port", type=int, default=0, metavar="N", help=help_text)
    parser.add_argument("--no-browser", action="store_true", help="only print the URL")
    parser.set_defaults(run=run_open)


def run_open(args: argparse.Namespace) -> int:
    from argosy.features.serve.cli import open_browser
    from argosy.features.serve.running_server_login_urls import find_login_url

    check_port("--port", args.port, "the newest server")
    url, folder = find_login_url(args.data_dir, args.port)
    print(url, flush=True)
    if not args.no_browser:
        open_browser(url, folder)
    return 0
