"""What to do next, for somebody at a command line.

In: an error as the controller would tell it. Out: the same with advice that fits a command. Never: changes what it is.
"""

from __future__ import annotations

import os
import re
from typing import Final

from argosy.model.errors import ArgosyError, UserError

_GIT_SAID: Final = re.compile(r"^(.*?); (.*) (\(git: .*\))$", re.DOTALL)
_CLONE: Final = "clone it with git, and name the clone with --repo"
# What people can do with a cluster, and what they can do here.
_HERE: Final = (
    ("; it is tried again; if it goes on, ", "; run the command again; if it goes on, "),
    ("; it is tried again", "; run the command again, or name a clone of it with --repo"),
    (
        "put it into a Secret with the label argocd.argoproj.io/secret-type: repository",
        f"leave it out of the address; where the repository is private, {_CLONE}",
    ),
    ("check the address and its Secret", f"check the address, or {_CLONE}"),
    ("add its authority to the ConfigMap argocd-tls-certs-cm", _CLONE),
    (" in argosy-cm", " in a ConfigMap argosy-cm, in a file given with --settings"),
    ("set source.helm.releaseName", "set source.helm.releaseName, or --release-name"),
)
_OUT: Final = "leads out of the repository: keep what it names inside"
_OUT_HERE: Final = (
    "leads out of the folder that is read, as this is no Git repository; run the command from a folder above both"
)


def advised(error: ArgosyError, *, in_git: bool) -> ArgosyError:
    if isinstance(error, UserError):
        text = _GIT_SAID.sub(r"\1 \3; \2", error.message)
        for theirs, ours in _HERE:
            text = text.replace(theirs, ours) if ours not in text else text
        error.message = text if in_git else text.replace(_OUT, _OUT_HERE)
    return error


def seen_from_here(error: ArgosyError, root: str) -> str:
    """The whole sentence, with a file of a working tree by the path that it has from the current folder."""
    here = os.path.realpath(os.curdir)
    if not isinstance(error, UserError) or not root or not error.where or here == root:
        return str(error)
    file = os.path.join(root, error.where)
    if not here.startswith(root.rstrip("/") + "/") or not os.path.exists(file):
        return str(error)
    return str(type(error)(error.message, where=os.path.relpath(file, here), line=error.line))
