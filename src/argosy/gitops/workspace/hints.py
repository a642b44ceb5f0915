"""Adapts the advice in error messages to the command line.

In: an error as the controller reports it. Out: the same error with advice for a command. Never: changes the kind of
error.
"""

from __future__ import annotations

import os
import re
from typing import Final

from argosy.errors import ArgosyError, UserError
from argosy.gitops.workspace.source_flags import FLAGS, Given

_GIT_SAID: Final = re.compile(r"^(.*?); (.*) (\(git: .*\))$", re.DOTALL)
_CLONE: Final = "clone it with git, and name the clone with --repo"
# Advice for a cluster, and its replacement on the command line.
_HERE: Final = (
    ("; it is tried again; if it goes on, ", "; run the command again; if it goes on, "),
    ("; it is tried again", "; run the command again later"),
    (
        "put it into a Secret with the label argocd.argoproj.io/secret-type: repository",
        f"leave it out of the address, or {_CLONE}",
    ),
    ("; argosy will retry; if it persists, ", "; run the command again; if it persists, "),
    ("; argosy will retry", "; run the command again later"),
    ("check the address and its Secret", f"check the address, or {_CLONE}"),
    ("add its authority to the ConfigMap argocd-tls-certs-cm", _CLONE),
    ("move it below a folder listed in source.local.roots in argosy-cm", "name it, or a folder above it, with --root"),
    (" in argosy-cm", " in argosy-cm (a ConfigMap in a file given with --settings)"),
    ("add it to directory.jsonnet.tlas", "add it with --jsonnet-tla-str, or to directory.jsonnet.tlas"),
    ("add it to directory.jsonnet.extVars", "add it with --jsonnet-ext-var-str, or to directory.jsonnet.extVars"),
    (
        "add it to kustomize.buildOptions,",
        "add it to kustomize.buildOptions in argocd-cm (a ConfigMap in a file given with --settings),",
    ),
    ("set source.helm.releaseName", "set source.helm.releaseName, or --release-name"),
)
_OUT: Final = "leads out of the repository: keep what it names inside"
_OUT_HERE: Final = (
    "leads out of the folder that is read, as this is no Git repository; "
    "move what it names inside, or run the command from a folder above both"
)


_TOOLS: Final = {"helm": "Helm", "kustomize": "Kustomize", "directory": "plain files", "plugin": "a plug-in"}
_OTHER_TOOL: Final = re.compile(r"there is no kustomization\.yaml|so this is no chart|the source has settings for ")
_NO_VALUES: Final = re.compile(r"valueFiles\[\d+\] names it, but there is no such file")


def with_flags(error: ArgosyError, given: Given, folder: str) -> ArgosyError:
    """Relate the error to the flags that were typed. `folder`: the source's folder on this machine."""
    if not isinstance(error, UserError):
        return error
    what, semicolon, advice = error.message.partition("; ")
    if _OTHER_TOOL.search(what):
        typed = [flag for flag in FLAGS if given.get(flag.name) not in (None, False, [])]
        named = ", ".join(f"{flag.name} is for {_TOOLS[flag.field.partition('.')[0]]}" for flag in typed)
        error.message = f"{what} ({named}){semicolon}{advice}" if named else error.message
    elif _NO_VALUES.search(what) and folder:
        for typed_file in given.get("--values") or ():
            if os.path.isfile(typed_file) and not os.path.isfile(os.path.join(folder, typed_file)):
                path = os.path.relpath(os.path.realpath(typed_file), folder)
                error.message = f"{what}; it is relative to the chart: use --values {path}"
    return error


def advised(error: ArgosyError, *, in_git: bool) -> ArgosyError:
    if isinstance(error, UserError):
        text = _GIT_SAID.sub(r"\1 \3; \2", error.message)
        for theirs, ours in _HERE:
            text = text.replace(theirs, ours) if ours not in text else text
        error.message = text if in_git else text.replace(_OUT, _OUT_HERE)
    return error


def seen_from_here(error: ArgosyError, root: str) -> str:
    """Return the message, with a file of the working tree relative to the current folder."""
    here = os.path.realpath(os.curdir)
    if not isinstance(error, UserError) or not root or not error.where or here == root:
        return str(error)
    file = os.path.join(root, error.where)
    if not here.startswith(root.rstrip("/") + "/") or not os.path.exists(file):
        return str(error)
    return str(UserError(error.message, where=os.path.relpath(file, here), line=error.line))
