"""`argosy kubectl …` and `argosy oc …`: run an installed kubectl, else the built-in one; with oc's own verbs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import ClusterError, TransientError, UserError

if TYPE_CHECKING:
    from argosy.features.kubectl.session import KubectlSession
    from argosy.kube.client.connection_settings import Connection

NAMES: Final = ("kubectl", "oc")
EXIT_FAILED: Final = 1  # k8s: exit code of every error
OC_VERBS_MODULE: Final = "argosy.features.kubectl.oc_verbs"
READ_VERBS_MODULE: Final = "argosy.features.kubectl.read_verbs"
WRITE_VERBS_MODULE: Final = "argosy.features.kubectl.write_verbs"
WAIT_VERBS_MODULE: Final = "argosy.features.kubectl.wait_logs_verbs"
OC_ONLY_VERBS: Final = {
    "whoami": OC_VERBS_MODULE, "extract": OC_VERBS_MODULE, "start-build": OC_VERBS_MODULE, "project": OC_VERBS_MODULE,
    "new-project": OC_VERBS_MODULE, "login": OC_VERBS_MODULE,
}  # fmt: skip
BUILD_KIND_NAMES: Final = ("bc", "buildconfig", "buildconfigs", "build", "builds")  # kinds whose logs only oc can show
UNSUPPORTED_OC_VERBS: Final = (
    "adm", "cancel-build", "idle", "image", "import-image", "logout", "new-app", "new-build", "observe", "policy",
    "process", "projects", "registry", "rollback", "rsh", "rsync", "secrets", "serviceaccounts", "status", "tag",
)  # fmt: skip
VERB_MODULES: Final = {
    "get": READ_VERBS_MODULE,
    "describe": READ_VERBS_MODULE,
    "apply": WRITE_VERBS_MODULE,
    "create": WRITE_VERBS_MODULE,
    "patch": WRITE_VERBS_MODULE,
    "annotate": WRITE_VERBS_MODULE,
    "label": WRITE_VERBS_MODULE,
    "delete": WRITE_VERBS_MODULE,
    "wait": WAIT_VERBS_MODULE,
    "logs": WAIT_VERBS_MODULE,
    "version": READ_VERBS_MODULE,
    "api-resources": READ_VERBS_MODULE,
}
# Verbs that need no cluster, and flags with which a verb needs none.
OFFLINE_VERBS: Final = ("", "completion", "config", "help", "kustomize", "options", "plugin")
OFFLINE_FLAGS: Final = frozenset({"--client", "--help", "--local", "-h"})
CLUSTER_FLAGS: Final = frozenset({"--cluster", "--context", "--kubeconfig", "--server", "-s"})
HELP_TEXT: Final = """\
Runs kubectl if it is on PATH. Otherwise a built-in kubectl supports:
  get, describe, wait, logs, apply -f, create, patch, annotate, label, delete, version, api-resources

Examples:
  argosy oc whoami
  argosy kubectl get pods -A
  argosy oc start-build my-model -n llmops-dev

For other verbs, install kubectl, for example with: pip install 'argosy[kubectl]'

Environment: ARGOSY_KUBECTL is the path of kubectl, or none. See also: docs/reference/cli.md
"""


def add_commands(commands: Any, name: str = "kubectl") -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help="run kubectl, or a built-in one if it is not installed",
        description="Works like kubectl" + (", with the verbs of oc." if name == "oc" else "."),
        epilog=HELP_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB …", help="as for kubectl")
    parser.set_defaults(run=lambda args: run_command(name, args.words))


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run the command and return the exit code; errors are printed as kubectl prints them."""
    from argosy.features.kubectl.flags import find_verb
    from argosy.features.kubectl.installed_programs import find_kubectl

    verb = find_verb(arguments)
    kubectl_path = find_kubectl()
    try:
        if kubectl_path and not (
            name == "oc" and (verb in (*OC_ONLY_VERBS, *UNSUPPORTED_OC_VERBS) or _requests_build_logs(verb, arguments))
        ):
            _exec_kubectl(kubectl_path, verb, arguments)
        if (
            kubectl_path
            and (name, verb) == ("oc", "project")
            and len(arguments) == 2
            and not arguments[1].startswith("-")
        ):
            context, _ = _choose_context(verb, arguments)
            _exec_kubectl(
                kubectl_path, "config", ["config", "set-context", context or "--current", "--namespace", arguments[1]]
            )
        if not verb:
            print(HELP_TEXT, end="")
            return 0
        return _run_builtin(name, verb, arguments)
    except ClusterError as error:
        print(f"Error from server ({error.reason or error.code}): {error.message}", file=sys.stderr)
    except (UserError, TransientError) as error:
        print(f"error: {error}", file=sys.stderr)
    return EXIT_FAILED


def _requests_build_logs(verb: str, arguments: Sequence[str]) -> bool:
    return verb == "logs" and any(
        argument.partition("/")[0].partition(".")[0] in BUILD_KIND_NAMES for argument in arguments if "/" in argument
    )


def _exec_kubectl(program: str, verb: str, arguments: Sequence[str]) -> None:
    """Replace this process by the real kubectl, which then talks to the cluster that argosy would choose."""
    context, environment = _choose_context(verb, arguments)
    if context and verb not in OFFLINE_VERBS:
        environment = _with_current_context(context, environment)
    sys.stdout.flush()
    os.execve(program, ["kubectl", *arguments], environment)  # noqa: S606


def _with_current_context(context: str, environment: dict[str, str]) -> dict[str, str]:
    """Choose the context by KUBECONFIG, not by --context: a plug-in may not know the flag, or have several words."""
    from argosy.features.local_sandbox.kubeconfig import write_current_context_kubeconfig

    paths = environment.get("KUBECONFIG", "").strip(os.pathsep) or os.path.expanduser("~/.kube/config")
    # k8s: of several files, the first that names a current-context wins.
    return {**environment, "KUBECONFIG": f"{write_current_context_kubeconfig(context)}{os.pathsep}{paths}"}


def _choose_context(verb: str, arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the context and the environment for kubectl: flags, ARGOSY_CONTEXT, KUBECONFIG, a running sandbox."""
    environment = dict(os.environ)
    flags = arguments[: arguments.index("--")] if "--" in arguments else arguments  # the rest is for another program
    names = {flag.partition("=")[0] for flag in flags}
    if _selects_cluster(flags):
        return "", environment
    from argosy.cli.cluster_target import mention_context_variable_in_error
    from argosy.cli.running_sandbox_selection import select_folder
    from argosy.kube.client.kubeconfig import check_context, list_contexts, list_environment_paths

    needs_cluster = verb not in OFFLINE_VERBS and not names & OFFLINE_FLAGS and "--dry-run=client" not in flags
    if context := environment.get("ARGOSY_CONTEXT", ""):
        if needs_cluster:
            with mention_context_variable_in_error(context):
                check_context(context)
        return context, environment
    if not list_environment_paths() and (run := select_folder(None).find_running_instance()):
        if run.context and needs_cluster:
            check_context(run.context, [run.kubeconfig])
        return run.context, {**environment, "KUBECONFIG": run.kubeconfig}
    if verb == "project":
        check_context()  # otherwise kubectl would write a context without a cluster
    elif list_environment_paths() and needs_cluster:
        list_contexts()  # raises if no file exists: kubectl would try http://localhost:8080
    return "", environment


def _selects_cluster(flags: Sequence[str]) -> bool:
    """True if a flag selects the cluster. k8s: a flag with an empty value is ignored."""
    for index, flag in enumerate(flags):
        name, has_value, value = flag.partition("=")
        if name in CLUSTER_FLAGS and (value if has_value else "".join(flags[index + 1 : index + 2])):
            return True
    return False


def _run_builtin(name: str, verb: str, arguments: Sequence[str]) -> int:
    module = VERB_MODULES.get(verb) or OC_ONLY_VERBS.get(verb)
    if name == "oc" and verb in UNSUPPORTED_OC_VERBS:
        supported = ", ".join(OC_ONLY_VERBS)
        raise UserError(
            f"oc {verb} is not supported: argosy's oc is kubectl plus {supported}; install oc for other commands"
        )
    if module is None:
        supported = ", ".join([*VERB_MODULES, *OC_ONLY_VERBS])
        raise UserError(
            f"{name} {verb} needs kubectl, which is not installed: put `kubectl` on the PATH, or run "
            f"`pip install 'argosy[kubectl]'`. Supported without it: {supported}"
        )
    from argosy.features.kubectl.flags import parse_arguments

    args = parse_arguments(verb, arguments)
    run_verb: Callable[[KubectlSession], Awaitable[int]] = getattr(import_module(module), verb.replace("-", "_"))
    import asyncio

    return asyncio.run(_run_verb(args, run_verb))


async def _run_verb(args: argparse.Namespace, run_verb: Callable[[KubectlSession], Awaitable[int]]) -> int:
    from argosy.features.kubectl.session import KubectlSession
    from argosy.kube.client.cluster_client import connect

    connection = _find_connection(args)
    async with await connect(connection) as cluster:
        namespace = args.namespace or connection.namespace
        return await run_verb(KubectlSession(cluster, namespace, args, connection.name, connection.server))


def _find_connection(args: argparse.Namespace) -> Connection:
    from pathlib import Path

    from argosy.cli.cluster_target import TargetOptions, find_target

    kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
    return find_target(TargetOptions(args.context, kubeconfig)).connection
