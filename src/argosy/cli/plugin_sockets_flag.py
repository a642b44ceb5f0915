"""The flag --plugin-sockets: where the config management plug-ins of sidecars listen.

In: the flag, or else ARGOCD_PLUGINSOCKFILEPATH. Out: a folder. Never: a folder that an Application names.
"""

from __future__ import annotations

import argparse
import os
from typing import Final

VARIABLE: Final = "ARGOCD_PLUGINSOCKFILEPATH"
DEFAULT_FOLDER: Final = "/home/argocd/cmp-server/plugins"  # argo: the same


def add_plugin_sockets_flag(parser: argparse.ArgumentParser) -> None:
    help_text = f"folder with the sockets of plug-ins in sidecars (default: ${VARIABLE}, else {DEFAULT_FOLDER})"
    parser.add_argument("--plugin-sockets", default="", metavar="DIR", help=help_text)


def read_plugin_sockets_folder(args: argparse.Namespace) -> str:
    """Return an absolute path. If there is no such folder, there are no such plug-ins."""
    return os.path.abspath(args.plugin_sockets or os.environ.get(VARIABLE, "") or DEFAULT_FOLDER)
