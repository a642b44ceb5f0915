"""`argosy promote status|plan|run|rollback|approve|reject|hold|resume|history|graph`: the command line."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.error_messages import answering, failed, say
from argosy.cli.exit_codes import DONE, NO
from argosy.cli.progress import patiently
from argosy.cli.tables import MESSAGE, Screen, plain
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import described, print_data, talk
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.promote.commits import Done
    from argosy.features.promote.plan import Asked, Plan
    from argosy.features.promote.service import Session

Commands = argparse._SubParsersAction  # the type argparse gives no public name
Work = Callable[["Session", argparse.Namespace], int]

EXAMPLES = """\
Examples:
  argosy promote status
  argosy promote plan --to staging
  argosy promote run --to staging

See also: docs/guides/promoting.md
"""
SEE = "See also: docs/guides/promoting.md, docs/reference/cli.md"
COMMITS = ("TIME", "RELEASE", "BY", "COMMIT", MESSAGE)  # of the first environment, which gets releases from commits
HEADINGS = ("TIME", "ENVIRONMENT", "WHAT", "RELEASE", "BY", "COMMIT", MESSAGE)
VERBS = "status|plan|run|rollback|approve|reject|hold|resume|history|graph"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "promote",
        help="take a release from one environment to the next, through gates",
        description="Git defines the release, gates decide whether it may be promoted; a promotion is a commit.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar=VERBS, required=True)
    about = "show the release of each environment and the next promotion"
    _add(parts, "status", about, _status, ["status", "status -o json"])
    about = "show the changes, the values that stay, and which gates are open"
    _to(_add(parts, "plan", about, _plan, ["plan --to staging", "plan r42 --to staging"]))
    about = "promote a release: one commit, with the gate results in its message"
    run = _add(parts, "run", about, _run, ["run --to staging", "run r42 --to staging --branch promote-r42"])
    _branch(_to(run))
    about = "restore the previous release of an environment, and hold the current one"
    examples = ["rollback production", "rollback production --reason 'wrong answers'"]
    back = _add(parts, "rollback", about, _rollback, examples)
    _branch(_reason(_environment(back)))
    for word in ("approve", "reject"):
        about = f"{word} a release, as a commit"
        made = _add(parts, word, about, _answer, [f"{word} --to production", f"{word} r42 --to production"])
        _branch(_to(made))
    about = "block promotions to an environment until it is resumed"
    _branch(_reason(_environment(_add(parts, "hold", about, _hold, ["hold production --reason 'quarter end'"]))))
    about = "end a hold, including one from a rollback"
    _branch(_reason(_environment(_add(parts, "resume", about, _hold, ["resume production"]))))
    examples = ["history", "history production"]
    listing = _add(parts, "history", "list promotions, approvals and holds", _history, examples)
    listing.add_argument("environment", nargs="?", default="", metavar="ENV", help="only this environment")
    shown = ["graph", "graph | dot -Tsvg"]
    _add(parts, "graph", "print the environments and their gates as a dot graph", _graph, shown, has_forms=False)


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, work: Work, examples: list[str], *,
    has_forms: bool = True,
) -> argparse.ArgumentParser:  # fmt: skip
    parser = described(parts, name, about, [f"promote {each}" for each in examples], see=SEE)
    about = "a folder of the repository (default: the current folder, else the repository of a running demo)"
    parser.add_argument("--repo", type=Path, metavar="DIR", help=about)
    parser.add_argument(
        "--offline", action="store_true", help="do not contact a cluster; gates that need one stay closed"
    )
    if has_forms:
        about = "text (default), json or yaml"
        parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_working, work))
    return parser


def _to(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    about = "a release such as r42, or a commit (default: the release of the previous environment)"
    parser.add_argument("release", nargs="?", default="", metavar="RELEASE", help=about)
    parser.add_argument("--release", dest="named", default="", metavar="RELEASE", help="the same, as a flag")
    parser.add_argument("--to", default="", metavar="ENV", help="the target environment (required)")
    about = "skip the previous environment; requires --reason"
    parser.add_argument("--skip", action="append", default=[], metavar="ENV", help=about)
    return _reason(parser)


def _environment(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("environment", metavar="ENV", help="the environment")
    return parser


def _reason(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, kept in the history")
    return parser


def _branch(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    about = "commit to a new branch, for a pull request (default: the current branch)"
    parser.add_argument("--branch", default="", metavar="NAME", help=about)
    return parser


def _working(work: Work, chosen: argparse.Namespace) -> int:
    from argosy.cli.connection import demo_repository, opening
    from argosy.features.promote.service import session

    try:
        options = target_options(chosen)
        demo = partial(demo_repository, options)
        opened = session(chosen.repo, opening(options), demo, is_offline=chosen.offline, talk=talk)
        with patiently("reading the cluster and checking the files"), opened as found:
            for note in found.uncommitted_gates:
                talk(f"note: {plain(note)}")
            return work(found, chosen)
    except ArgosyError as error:
        return failed(error, f"promote {chosen.part} failed")


# -- reading --


def _status(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote import text_output as shown

    code = NO if session.broken else DONE
    if chosen.output != "text":
        print_data(shown.status_document(session), chosen.output)
        return code
    for line in shown.picture(session, Screen(sys.stdout)):
        print(line)
    sys.stdout.flush()
    for error in session.broken.values():
        talk(f"problem: {plain(str(error))}")
    for note in session.notes:
        talk(f"note: {plain(note)}")
    if session.answers.why:
        talk(f"note: {plain(session.answers.why)}: gates that need a cluster are closed")
    if advice := session.advice:
        talk(f"next: {advice}")
    return code


def _plan(session: Session, chosen: argparse.Namespace) -> int:
    plan = session.plan(_asked(session, chosen))
    is_stale = any(each.kind == "clone" for each in plan.closed)  # a stale clone cannot prove that nothing changes
    with answering(DONE if plan.is_open or not (plan.moving.moves or is_stale) else NO) as code:
        _show(plan, chosen.output)
        if plan.moving.moves or is_stale:
            talk(f"next: {_advice(plan, chosen)}")
    return code


def _show(plan: Plan, output: str, done: Done | None = None) -> None:
    from argosy.features.promote import text_output as shown

    if output != "text":
        made = {"commit": done.commit if done else None, "branch": done.branch if done else None}
        print_data({**shown.plan_document(plan), **made}, output)
        return
    screen = Screen(sys.stdout)
    for line in shown.planned(plan, screen):
        print("\n".join(screen.folded(line, 6 if line.startswith(" ") else 2)))
    sys.stdout.flush()
    for note in plan.notes:
        talk(f"note: {plain(note)}")


def _asked(session: Session, chosen: argparse.Namespace) -> Asked:
    from argosy.features.promote.plan import Asked

    if not chosen.to:
        named = chosen.release if chosen.release in [each.name for each in session.survey.way.environments] else ""
        meant = f"argosy promote {chosen.part} --to {named or session.usual}"
        raise UserError(f"missing --to ENV: the target environment; {meant}")
    if chosen.release and chosen.named and chosen.release != chosen.named:
        raise UserError(f"two releases given, {chosen.release} and {chosen.named}; omit one")
    chosen.release = chosen.release or chosen.named
    return Asked(chosen.to, chosen.release, tuple(chosen.skip), chosen.reason)


def _advice(plan: Plan, chosen: argparse.Namespace) -> str:
    if not plan.is_open:
        from argosy.features.promote.gates import advised

        without = "run it without --offline: some gates need a cluster"
        usual = "start a cluster, or choose one with --kubeconfig or --context, and try again"
        return advised(plan.closed) or (without if chosen.offline else usual)
    skipped = "".join(f" --skip {each}" for each in chosen.skip) + (" --reason TEXT" if chosen.skip else "")
    named = f" {chosen.release}" if chosen.release else ""
    return f"argosy promote run{named} --to {plan.target.name}{skipped}"


def _history(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote import text_output as shown

    name = session.environment(chosen.environment).name if chosen.environment else ""
    log = [each for each in session.survey.log if name in ("", each.environment)]
    if chosen.output != "text":
        print_data(shown.history_document(log), chosen.output)
        return DONE
    if name and not session.environment(name).after:
        for line in Screen(sys.stdout).table(COMMITS, session.survey.commits(session.environment(name))):
            print(line)
        return DONE
    if not log:
        talk("no promotions yet; start with: argosy promote status")
        return DONE
    for line in Screen(sys.stdout).table(HEADINGS, [shown.happened(each) for each in log], whole=MESSAGE):
        print(line)
    return DONE


def _graph(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote.text_output import graph

    for line in graph(session.survey.way.environments):
        print(line)
    return DONE


# -- writing --


def _run(session: Session, chosen: argparse.Namespace) -> int:
    return _promoted(session, chosen, _asked(session, chosen))


def _rollback(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote.plan import Asked

    target = session.environment(chosen.environment)
    return _promoted(session, chosen, Asked(target.name, session.planner.previous(target), (), chosen.reason))


def _promoted(session: Session, chosen: argparse.Namespace, asked: Asked) -> int:
    from argosy.features.promote.commits import promote

    with session.survey.repository.alone():
        session.again()
        if _is_stale(session, chosen):
            return NO
        plan = session.plan(asked)
        if not plan.moving.moves:
            _show(plan, chosen.output)
            talk(f"nothing to do: {plan.target.name} has all of {plan.release.name}")
            return DONE
        if chosen.part == "rollback" and session.planner.previous(plan.target) != asked.release:
            has = f"{plan.target.name} has {session.survey.release(plan.target).name} now: another change came first"
            say("promote rollback: nothing was written", [has], "argosy promote status")
            return NO  # the user asked to roll back another release
        if not plan.is_open:
            closed = [f"{each.gate}: {plain(each.why)}" for each in plan.closed]
            chosen.skip = list(asked.skipped)
            say(f"{plan.release.name} is not promoted to {plan.target.name}", closed, _advice(plan, chosen))
            return NO
        done = promote(session.survey, plan, session.by, chosen.branch)
    session.seen(plan.target)
    with answering(DONE) as code:
        _show(plan, chosen.output, done)
        told = "committed" if done.is_new else "was committed before:"
        talk(f"{told} {done.commit[:7]} to {done.branch}: {_title(plan)}")
        talk(f"next: {_onward(session, plan, done, chosen)}")
    return code


def _title(plan: Plan) -> str:
    from argosy.features.promote.commits import subject

    return subject(plan)


def _onward(session: Session, plan: Plan, done: Done, chosen: argparse.Namespace) -> str:
    if chosen.branch:
        return f"git push -u origin {done.branch}, then open a pull request; the commit message has the gate results"
    if session.is_read_by_engine:
        waits = "argosy app wait" if plan.target.sync == "auto" else "argosy app sync"
        return f"{waits} {plan.target.application}"
    word = "wait" if plan.target.sync == "auto" else "sync"
    return f"git push; then: argosy app {word} {plan.target.application}"


def _answer(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote.commits import answer

    is_yes = chosen.part == "approve"
    with session.survey.repository.alone():
        session.again()
        if _is_stale(session, chosen):
            return NO
        asked = _asked(session, chosen)
        target = session.environment(asked.target)
        release = session.planner.named_release(asked)
        done = answer(
            session.survey, target, release, session.by, is_yes=is_yes, reason=chosen.reason, branch=chosen.branch
        )
    word = "approved" if is_yes else "rejected"
    what = f"{word} {release} for {target.name} as {session.by.name}"
    return _told(session, chosen, done, what, f"argosy promote plan --to {target.name}")


def _hold(session: Session, chosen: argparse.Namespace) -> int:
    from argosy.features.promote.commits import hold, resume

    is_hold = chosen.part == "hold"
    with session.survey.repository.alone():
        session.again()
        if _is_stale(session, chosen):
            return NO
        target = session.environment(chosen.environment)
        done = (hold if is_hold else resume)(session.survey, target, session.by, chosen.reason, chosen.branch)
    ended = "no longer held" if done.is_new else "not held"
    what = f"{target.name} is {'held: promotions to it are blocked' if is_hold else ended}"
    after = f"argosy promote resume {target.name}" if is_hold else f"argosy promote plan --to {target.name}"
    return _told(session, chosen, done, what, after)


def _is_stale(session: Session, chosen: argparse.Namespace) -> bool:
    """Report a stale clone and return True: a commit made there could miss decisions of others."""
    from argosy.features.promote.clone_state import stale

    found = stale(session.survey.clone)
    if found:
        say(f"promote {chosen.part}: nothing was written", [plain(each.why) for each in found], found[0].next)
    return bool(found)


def _told(session: Session, chosen: argparse.Namespace, done: Done, what: str, after: str) -> int:
    if chosen.output != "text":
        from argosy.features.promote.text_output import API

        made = {"apiVersion": API, "kind": "PromotionNote", "commit": done.commit, "branch": done.branch}
        print_data({**made, "isNew": done.is_new}, chosen.output)
    else:
        print(plain(what) + ("" if done.is_new else " (unchanged)"))
    talk(f"committed {done.commit[:7]} to {done.branch}" if done.is_new else "nothing was written")
    talk(f"next: {after}" if session.is_read_by_engine or not done.is_new else f"next: git push; then: {after}")
    return DONE
