"""`argosy model list|get|try|probe|restart`: inspect, query and restart served models."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from argosy.cli.error_messages import say
from argosy.cli.exit_codes import NO, code_of
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import described, print_data, talk, work_at
from argosy.errors import TransientError, UserError

if TYPE_CHECKING:
    from argosy.features.models.requests import Question
    from argosy.features.models.service import ModelDesk
    from argosy.gitops.live.inference_service import ServedModel

Commands = argparse._SubParsersAction  # the type argparse gives no public name
Work = Callable[["ModelDesk", argparse.Namespace], Awaitable[int]]

EXAMPLES = """\
Examples:
  argosy model list
  argosy model try dev-qwen25-05b-instruct "Hello"
  argosy model try wine '{"instances": [[7.4, 0.7]]}'

See also: docs/guides/demo.md
"""
HEADINGS = ("NAME", "NAMESPACE", "READY", "URL", "RUNTIME", "APP")


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "model",
        help="list, query, probe and restart served models",
        description="Models served by InferenceServices.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="list|get|try|probe|restart", required=True)
    listing = ["list", "list -n llmops-dev -o json"]
    parser = _add(parts, "list", "list served models", _list, listing, named=False)
    parser.add_argument(
        "-A", "--all-namespaces", action="store_true", help="list models of all namespaces (the default)"
    )
    _add(parts, "get", "show a model and how to query it", _get, ["get dev-qwen25-05b-instruct"])
    trying = _add(
        parts,
        "try",
        "send a request to a model",
        _try,
        ['try dev-qwen25-05b-instruct "Hello"', "try wine '[[7.4, 0.7]]'"],
    )
    trying.add_argument("text", metavar="TEXT|JSON", help="input: a text, instances, or a complete request")
    trying.add_argument("--timeout", type=float, default=60.0, metavar="S", help="timeout in seconds (default: 60)")
    probing = _add(parts, "probe", "check whether a model is ready", _probe, ["probe dev-qwen25-05b-instruct"])
    for each in (trying, probing):
        each.add_argument(
            "-k", "--insecure", action="store_true", help="do not verify the TLS certificate of the model server"
        )
    shown = ["restart dev-qwen25-05b-instruct"]
    _add(parts, "restart", "replace the Pods of a model", _restart, shown, has_forms=False)


def _add(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    about: str,
    work: Work,
    shown: list[str],
    *,
    named: bool = True,
    has_forms: bool = True,
) -> argparse.ArgumentParser:
    parser = described(parts, name, about, [f"model {each}" for each in shown])
    if named:
        parser.add_argument("name", metavar="NAME", help="the InferenceService, as NAME or NAMESPACE/NAME")
    parser.add_argument(
        "-n", "--namespace", default="", metavar="NS", help="namespace of the model (default: all namespaces)"
    )
    if has_forms:
        forms = ["text", "json", "yaml"]
        parser.add_argument("-o", "--output", choices=forms, default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run, work))
    return parser


def _run(work: Work, chosen: argparse.Namespace) -> int:
    from argosy.features.models.service import open_models

    return work_at(open_models(target_options(chosen)), work, chosen)


async def _list(desk: ModelDesk, chosen: argparse.Namespace) -> int:
    from argosy.cli.tables import WHY, Screen
    from argosy.gitops.live.inference_service import read_model

    models = [read_model(each) for each in await desk.all(chosen.namespace)]
    if chosen.output != "text":
        print_data({"items": [each.document() for each in models]}, chosen.output)
        return 0
    if not models:
        where = f" in namespace {chosen.namespace}" if chosen.namespace else ""
        advice = "list Applications with: argosy app list; or try an example with: argosy demo"
        talk(f"No models found{where}; {advice}")
        return 0
    is_any_ill = any(each.why for each in models)
    rows = [[each.name, each.namespace, each.ready, each.url, each.runtime, each.app, each.why] for each in models]
    width = len(HEADINGS) + is_any_ill
    print("\n".join(Screen(sys.stdout).table((*HEADINGS, WHY)[:width], [row[:width] for row in rows])))
    return 0


async def _get(desk: ModelDesk, chosen: argparse.Namespace) -> int:
    from argosy.gitops.live.inference_service import read_model

    model = read_model(await desk.find(chosen.name, chosen.namespace))
    if chosen.output != "text":
        print_data(model.document(), chosen.output)
        return 0
    rows = [
        ("name", model.name),
        ("namespace", model.namespace),
        ("ready", f"{model.ready}: {model.why}" if model.why else model.ready),
        ("url", model.url or "none yet"),
        ("runtime", model.runtime),
        ("model", f"{model.format} from {model.source}" if model.source else model.format),
        ("app", model.app),
        *_maker(model),
        *(_ways(model) if model.url else ()),
    ]
    print("\n".join(f"{label:<11}{text}" for label, text in rows if text))
    return 0


def _maker(model: ServedModel) -> list[tuple[str, str]]:
    """Hint at `argosy trace` while a model on a volume is not ready."""
    if model.ready == "True" or not model.source.startswith("pvc://"):
        return []
    return [("written by", f"find the notebook: argosy trace {model.name} -n {model.namespace}")]


def _ways(model: ServedModel) -> list[tuple[str, str]]:
    """Commands that query the model from this machine."""
    from argosy.features.models.requests import curl, question_for
    from argosy.http_client.plain_request import LOCAL, LOOPBACK, is_known

    typed = "Hello" if model.is_text else "[[1, 2]]"
    question = question_for(model, typed)
    if question.needs_name:
        question = question.named(model.name)
    found = [("query", f'argosy model try {model.name} "{typed}"'), ("", curl(model.url, question))]
    try:
        parts = urlsplit(model.url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # the URL comes from a status, which may contain anything
        return found
    if host.endswith(LOCAL) and not is_known(host):
        found.append(("", f"if the host name does not resolve: --resolve {host}:{port}:{LOOPBACK}"))
    return found


def _must_answer(model: ServedModel) -> None:
    if not model.url:
        why = model.why or "it is not ready yet"
        raise UserError(f"{model.name} has no URL: {why}; see: argosy model get {model.name}")


async def _try(desk: ModelDesk, chosen: argparse.Namespace) -> int:
    from argosy.features.models.requests import gist, refusal
    from argosy.gitops.live.inference_service import read_model

    model = read_model(await desk.find(chosen.name, chosen.namespace))
    _must_answer(model)
    if not model.is_ready:
        talk(f"{model.name} is not ready ({model.why or 'no reason given'}); Pods that still run may answer")
    try:
        tried = await desk.ask(model, chosen.text, seconds=chosen.timeout, insecure=chosen.insecure)
    except TransientError as error:
        if model.is_ready:
            raise
        say(f"{model.name} does not respond", [model.why, str(error)], f"argosy model get {model.name}")
        return code_of(error)
    answered, document = tried.answered, tried.answered.document()
    if answered.code != 200 or document is None:
        why = refusal(document, answered.body)
        say(f"{model.name} returned HTTP {answered.code}", why, f"argosy model probe {model.name}")
        return NO
    if chosen.output == "text":
        print(gist(document))
    else:
        print_data(document, chosen.output)
    _tell_way(model, tried.question, answered.seconds, insecure=chosen.insecure)
    return 0


def _tell_way(model: ServedModel, question: Question, seconds: float, *, insecure: bool) -> None:
    from argosy.features.models.requests import curl

    talk(f"{seconds * 1000:.0f} ms, {model.namespace}/{model.name}; as a curl command:")
    talk(f"  {curl(model.url.rstrip('/'), question, insecure=insecure)}")


async def _probe(desk: ModelDesk, chosen: argparse.Namespace) -> int:
    """Request every health path; exit code 1 if none returns 200."""
    from argosy.gitops.live.inference_service import read_model

    model = read_model(await desk.find(chosen.name, chosen.namespace))
    _must_answer(model)
    found = await desk.probe(model, insecure=chosen.insecure)
    is_up = any(each.code == 200 for each in found)
    if chosen.output != "text":
        asked = [{"path": each.path, "code": each.code, "seconds": round(each.seconds, 4)} for each in found]
        print_data({**model.document(), "answers": is_up, "asked": asked}, chosen.output)
    else:
        for each in found:
            print(f"{each.code or '-':<4} {each.seconds * 1000:6.0f} ms  {model.url}{each.path}")
        print(f"{model.name} {'responds' if is_up else 'does not respond'}; Ready is {model.ready}")
    if is_up and not model.is_ready:
        talk(f"{model.name} is not ready ({model.why or 'no reason given'}); Pods that still run responded")
    if not is_up:
        why = next((each.why for each in found if each.why), "") or model.why
        say(f"{model.name} does not respond", why, f"argosy model get {model.name}")
    return 0 if is_up else NO


async def _restart(desk: ModelDesk, chosen: argparse.Namespace) -> int:
    service = await desk.find(chosen.name, chosen.namespace)
    talk(f"target: {desk.where}")
    print(await desk.restart(service))
    return 0
