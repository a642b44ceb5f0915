"""`argosy model list|get|try|probe|restart`: inspect, query and restart served models."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_NEGATIVE, get_exit_code
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_document, print_message, run_with_client
from argosy.errors import TransientError, UserError

if TYPE_CHECKING:
    from argosy.features.models.inference_payloads import InferenceRequest
    from argosy.features.models.service import ModelService
    from argosy.gitops.live.inference_service import ServedModel

Commands = argparse._SubParsersAction  # the type argparse gives no public name
ModelCommand = Callable[["ModelService", argparse.Namespace], Awaitable[int]]

EXAMPLES = """\
Examples:
  argosy model list
  argosy model try dev-qwen25-05b-instruct "Hello"
  argosy model try wine '{"instances": [[7.4, 0.7]]}'

See also: docs/guides/demo.md
"""
HEADINGS = ("NAME", "NAMESPACE", "READY", "URL", "RUNTIME", "APP")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "model",
        help="list, query, probe and restart served models",
        description="Models served by InferenceServices.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="list|get|try|probe|restart", required=True)
    list_examples = ["list", "list -n llmops-dev -o json"]
    parser = _add_command(parts, "list", "list served models", _run_list, list_examples, takes_name=False)
    parser.add_argument(
        "-A", "--all-namespaces", action="store_true", help="list models of all namespaces (the default)"
    )
    _add_command(parts, "get", "show a model and how to query it", _run_get, ["get dev-qwen25-05b-instruct"])
    try_parser = _add_command(
        parts,
        "try",
        "send a request to a model",
        _run_try,
        ['try dev-qwen25-05b-instruct "Hello"', "try wine '[[7.4, 0.7]]'"],
    )
    try_parser.add_argument("text", metavar="TEXT|JSON", help="input: a text, instances, or a complete request")
    try_parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="timeout in seconds (default: 60)")
    probe_parser = _add_command(
        parts, "probe", "check whether a model is ready", _run_probe, ["probe dev-qwen25-05b-instruct"]
    )
    for command_parser in (try_parser, probe_parser):
        command_parser.add_argument(
            "-k", "--insecure", action="store_true", help="do not verify the TLS certificate of the model server"
        )
    restart_examples = ["restart dev-qwen25-05b-instruct"]
    _add_command(parts, "restart", "replace the Pods of a model", _run_restart, restart_examples, takes_output=False)


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    summary: str,
    work: ModelCommand,
    examples: list[str],
    *,
    takes_name: bool = True,
    takes_output: bool = True,
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, summary, [f"model {example}" for example in examples])
    if takes_name:
        parser.add_argument("name", metavar="NAME", help="the InferenceService, as NAME or NAMESPACE/NAME")
    parser.add_argument(
        "-n", "--namespace", default="", metavar="NS", help="namespace of the model (default: all namespaces)"
    )
    if takes_output:
        forms = ["text", "json", "yaml"]
        parser.add_argument("-o", "--output", choices=forms, default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_command, work))
    return parser


def _run_command(work: ModelCommand, args: argparse.Namespace) -> int:
    from argosy.features.models.service import open_model_service

    return run_with_client(open_model_service(read_target_options(args)), work, args)


async def _run_list(service: ModelService, args: argparse.Namespace) -> int:
    from argosy.cli.tables import WHY_COLUMN, TerminalOutput
    from argosy.gitops.live.inference_service import read_served_model

    models = [read_served_model(model) for model in await service.list_models(args.namespace)]
    if args.output != "text":
        print_document({"items": [model.to_wire() for model in models]}, args.output)
        return 0
    if not models:
        where = f" in namespace {args.namespace}" if args.namespace else ""
        advice = "list Applications with: argosy app list; or try an example with: argosy demo"
        print_message(f"No models found{where}; {advice}")
        return 0
    has_problems = any(model.why for model in models)
    rows = [
        [model.name, model.namespace, model.ready, model.url, model.runtime, model.app, model.why] for model in models
    ]
    width = len(HEADINGS) + has_problems
    print(
        "\n".join(
            TerminalOutput(sys.stdout).format_table((*HEADINGS, WHY_COLUMN)[:width], [row[:width] for row in rows])
        )
    )
    return 0


async def _run_get(service: ModelService, args: argparse.Namespace) -> int:
    from argosy.gitops.live.inference_service import read_served_model

    model = read_served_model(await service.get_model(args.name, args.namespace))
    if args.output != "text":
        print_document(model.to_wire(), args.output)
        return 0
    rows = [
        ("name", model.name),
        ("namespace", model.namespace),
        ("ready", f"{model.ready}: {model.why}" if model.why else model.ready),
        ("url", model.url or "none yet"),
        ("runtime", model.runtime),
        ("model", f"{model.format} from {model.source}" if model.source else model.format),
        ("app", model.app),
        *_build_trace_hint_rows(model),
        *(_build_query_rows(model) if model.url else ()),
    ]
    print("\n".join(f"{label:<11}{text}" for label, text in rows if text))
    return 0


def _build_trace_hint_rows(model: ServedModel) -> list[tuple[str, str]]:
    """Hint at `argosy trace` while a model on a volume is not ready."""
    if model.ready == "True" or not model.source.startswith("pvc://"):
        return []
    return [("written by", f"find the notebook: argosy trace {model.name} -n {model.namespace}")]


def _build_query_rows(model: ServedModel) -> list[tuple[str, str]]:
    """Commands that query the model from this machine."""
    from argosy.features.models.inference_payloads import build_inference_request, render_curl_command
    from argosy.http_client.anonymous_request import LOCALHOST_SUFFIX, LOOPBACK, is_resolvable

    input_text = "Hello" if model.is_text else "[[1, 2]]"
    question = build_inference_request(model, input_text)
    if question.needs_name:
        question = question.with_model_name(model.name)
    rows = [("query", f'argosy model try {model.name} "{input_text}"'), ("", render_curl_command(model.url, question))]
    try:
        parts = urlsplit(model.url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # the URL comes from a status, which may contain anything
        return rows
    if host.endswith(LOCALHOST_SUFFIX) and not is_resolvable(host):
        rows.append(("", f"if the host name does not resolve: --resolve {host}:{port}:{LOOPBACK}"))
    return rows


def _require_url(model: ServedModel) -> None:
    if not model.url:
        reason = model.why or "it is not ready yet"
        raise UserError(f"{model.name} has no URL: {reason}; see: argosy model get {model.name}")


async def _run_try(service: ModelService, args: argparse.Namespace) -> int:
    from argosy.features.models.inference_payloads import describe_error_response, summarize_answer
    from argosy.gitops.live.inference_service import read_served_model

    model = read_served_model(await service.get_model(args.name, args.namespace))
    _require_url(model)
    if not model.is_ready:
        print_message(f"{model.name} is not ready ({model.why or 'no reason given'}); Pods that still run may answer")
    try:
        result = await service.query_model(model, args.text, seconds=args.timeout, insecure=args.insecure)
    except TransientError as error:
        if model.is_ready:
            raise
        print_failure(f"{model.name} does not respond", [model.why, str(error)], f"argosy model get {model.name}")
        return get_exit_code(error)
    response, answer = result.response, result.response.read_json()
    if response.code != 200 or answer is None:
        error_text = describe_error_response(answer, response.body)
        print_failure(f"{model.name} returned HTTP {response.code}", error_text, f"argosy model probe {model.name}")
        return EXIT_NEGATIVE
    if args.output == "text":
        print(summarize_answer(answer))
    else:
        print_document(answer, args.output)
    _print_curl_hint(model, result.inference_request, response.seconds, insecure=args.insecure)
    return 0


def _print_curl_hint(model: ServedModel, question: InferenceRequest, seconds: float, *, insecure: bool) -> None:
    from argosy.features.models.inference_payloads import render_curl_command

    print_message(f"{seconds * 1000:.0f} ms, {model.namespace}/{model.name}; as a curl command:")
    print_message(f"  {render_curl_command(model.url.rstrip('/'), question, insecure=insecure)}")


async def _run_probe(service: ModelService, args: argparse.Namespace) -> int:
    """Request every health path; exit code 1 if none returns 200."""
    from argosy.gitops.live.inference_service import read_served_model

    model = read_served_model(await service.get_model(args.name, args.namespace))
    _require_url(model)
    probes = await service.probe_health(model, insecure=args.insecure)
    is_up = any(probe.code == 200 for probe in probes)
    if args.output != "text":
        probe_items = [{"path": probe.path, "code": probe.code, "seconds": round(probe.seconds, 4)} for probe in probes]
        print_document({**model.to_wire(), "answers": is_up, "asked": probe_items}, args.output)
    else:
        for probe in probes:
            print(f"{probe.code or '-':<4} {probe.seconds * 1000:6.0f} ms  {model.url}{probe.path}")
        print(f"{model.name} {'responds' if is_up else 'does not respond'}; Ready is {model.ready}")
    if is_up and not model.is_ready:
        print_message(f"{model.name} is not ready ({model.why or 'no reason given'}); Pods that still run responded")
    if not is_up:
        why = next((probe.why for probe in probes if probe.why), "") or model.why
        print_failure(f"{model.name} does not respond", why, f"argosy model get {model.name}")
    return 0 if is_up else EXIT_NEGATIVE


async def _run_restart(service: ModelService, args: argparse.Namespace) -> int:
    inference_service = await service.get_model(args.name, args.namespace)
    print_message(f"target: {service.target_name}")
    print(await service.restart_model(inference_service))
    return 0
