"""Adapts the advice in error messages to the command line.

In: an error as the controller reports it. Out: the same error with advice for a command. Never: changes the kind of
error.
"""

from __future__ import annotations

import os
import re
from typing import Final

from argosy.errors import ArgosyError, UserError
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS, FlagValues

_GIT_DETAIL: Final = re.compile(r"^(.*?); (.*) (\(git: .*\))$", re.DOTALL)
_CLONE_ADVICE: Final = "clone it with git, and name the clone with --repo"
# Advice for a cluster, and its replacement on the command line.
_COMMAND_LINE_ADVICE: Final = (
    ("; it is tried again; if it goes on, ", "; run the command again; if it goes on, "),
    ("; it is tried again", "; run the command again later"),
    (
        "put it into a Secret with the label argocd.argoproj.io/secret-type: repository",
        f"leave it out of the address, or {_CLONE_ADVICE}",
    ),
    ("; argosy will retry; if it persists, ", "; run the command again; if it persists, "),
    ("; argosy will retry", "; run the command again later"),
    ("check the address and its Secret", f"check the address, or {_CLONE_ADVICE}"),
    ("add its authority to the ConfigMap argocd-tls-certs-cm", _CLONE_ADVICE),
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
_OUTSIDE_REPOSITORY: Final = "leads out of the repository: keep what it names inside"
_OUTSIDE_FOLDER: Final = (
    "leads out of the folder that is read, as this is no Git repository; "
    "move what it names inside, or run the command from a folder above both"
)


_TOOL_NAMES: Final = {"helm": "Helm", "kustomize": "Kustomize", "directory": "plain files", "plugin": "a plug-in"}
_WRONG_TOOL: Final = re.compile(r"there is no kustomization\.yaml|so this is no chart|the source has settings for ")
_MISSING_VALUES_FILE: Final = re.compile(r"Error: open .*: no such file or directory")


def add_flag_hints(error: ArgosyError, flag_values: FlagValues, folder: str) -> ArgosyError:
    """Relate the error to the flags that were typed. `folder`: the source's folder on this machine."""
    if not isinstance(error, UserError):
        return error
    problem, semicolon, advice = error.message.partition("; ")
    if _WRONG_TOOL.search(problem):
        typed = [flag for flag in FLAGS if flag_values.get(flag.name) not in (None, False, [])]
        flags_text = ", ".join(f"{flag.name} is for {_TOOL_NAMES[flag.field.partition('.')[0]]}" for flag in typed)
        error.message = f"{problem} ({flags_text}){semicolon}{advice}" if flags_text else error.message
    elif _MISSING_VALUES_FILE.search(problem) and folder:
        for typed_file in flag_values.get("--values") or ():
            if os.path.isfile(typed_file) and not os.path.isfile(os.path.join(folder, typed_file)):
                path = os.path.relpath(os.path.realpath(typed_file), folder)
                error.message = f"{problem}; it is relative to the chart: use --values {path}"
    return error


def adapt_advice_to_cli(error: ArgosyError, *, in_git: bool) -> ArgosyError:
    if isinstance(error, UserError):
        text = _GIT_DETAIL.sub(r"\1 \3; \2", error.message)
        for cluster_advice, local_advice in _COMMAND_LINE_ADVICE:
            text = text.replace(cluster_advice, local_advice) if local_advice not in text else text
        error.message = text if in_git else text.replace(_OUTSIDE_REPOSITORY, _OUTSIDE_FOLDER)
    return error


def render_cwd_relative_error(error: ArgosyError, root: str) -> str:
    """Return the message, with a file of the working tree relative to the current folder."""
    current_folder = os.path.realpath(os.curdir)
    if not isinstance(error, UserError) or not root or not error.where or current_folder == root:
        return str(error)
    file = os.path.join(root, error.where)
    if not current_folder.startswith(root.rstrip("/") + "/") or not os.path.exists(file):
        return str(error)
    return str(UserError(error.message, where=os.path.relpath(file, current_folder), line=error.line))
