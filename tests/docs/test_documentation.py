"""The docs match the program: commands, flags, settings, limits, exit codes, make targets and links."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from argosy.cli import exit_codes
from argosy.main import build_parser

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "argosy"
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "min": 60, "h": 3600, "": 1}


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands(parser: argparse.ArgumentParser, path: str = "argosy") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield path, parser
    for name, child in subcommands(parser).items():
        yield from commands(child, f"{path} {name}")


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def flags(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


@cache
def sections(page: Path) -> dict[str, str]:
    """Maps each heading to the text below it, up to the next heading."""
    parts = re.split(r"^#+ `?(.+?)`?$|^#", page.read_text(), flags=re.MULTILINE)
    text_by_heading: dict[str, str] = {}
    for heading, text in zip(parts[1::2], parts[2::2]):
        text_by_heading.setdefault(heading or "", text)
    return text_by_heading


COMMANDS = dict(commands(build_parser()))


@pytest.mark.parametrize("path", [path for path, parser in COMMANDS.items() if not subcommands(parser)])
def test_every_command_and_flag_is_in_the_cli_reference(path: str) -> None:
    text = sections(REFERENCE / "cli.md").get(path)
    assert text, f"docs/reference/cli.md has no section `{path}`"
    missing = {flag for flag in flags(COMMANDS[path]) - {"-h", "--help"} if f"`{flag}" not in text}
    assert not missing, f"{path}: {sorted(missing)} are not described"


def test_cli_reference_describes_no_unknown_command() -> None:
    text = (REFERENCE / "cli.md").read_text()
    described = {heading.strip("`") for heading in HEADING.findall(text) if heading.startswith("`argosy")}
    assert described - COMMANDS.keys() == set()


def shown_commands(page: Path) -> Iterator[str]:
    """Yield every argosy command that a page shows in a shell block or between backticks."""
    text = page.read_text()
    for language, block in FENCE.findall(text):
        if language in ("", "sh", "console", "text"):
            for line in block.splitlines():
                command_match = re.match(r"^(?:\$ )?(?:\.venv/bin/)?(argosy(?: .*)?)$", line.strip())
                if command_match and language != "text":
                    yield command_match[1]
    for code in INLINE.findall(FENCE.sub("", text)):
        if code.startswith("argosy "):
            yield code


def what_is_wrong(command: str) -> str:
    """Returns why a documented command is invalid; empty if it is valid."""
    parser, path = COMMANDS["argosy"], "argosy"
    for word in shlex.split(re.split(r"\s[|>&#]|;", command)[0])[1:]:
        if word.startswith("-"):
            if word.split("=")[0] not in flags(parser):
                return f"{path} has no flag {word}"
        elif children := subcommands(parser):
            if word.isupper() or word in ("…", "..."):
                return ""
            if word not in children:
                return f"{path} has no command {word}"
            parser, path = children[word], f"{path} {word}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_shown_on_a_page_exists(page: Path) -> None:
    assert [wrong for command in shown_commands(page) if (wrong := what_is_wrong(command))] == []


def test_command_check_reports_unknown_commands_and_flags() -> None:
    assert what_is_wrong("argosy sandbox begin") == "argosy sandbox has no command begin"
    assert what_is_wrong("argosy sandbox start --prot 1") == "argosy sandbox start has no flag --prot"
    assert what_is_wrong("argosy sandbox user add alice --group devs > alice.kubeconfig") == ""


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_make_target_shown_on_a_page_exists(page: Path) -> None:
    text = page.read_text()
    code = [*(block for _, block in FENCE.findall(text)), *INLINE.findall(FENCE.sub("", text))]
    targets = {
        word for code_block in code for word in re.findall(r"^(?:\$ )?make ([a-z0-9-]+)", code_block, re.MULTILINE)
    }
    assert targets - make_targets() == set()


def test_every_make_target_is_described_in_contributing() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert {target for target in make_targets() if f"`make {target}`" not in text} == set()


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of the headings: lower case, words joined by dashes, other punctuation dropped."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_relative_link_and_anchor_resolves(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.is_relative_to(DOCS)], ids=page_name)
def test_every_docs_page_has_an_example_before_its_first_section(page: Path) -> None:
    opening = page.read_text().partition("\n## ")[0]
    assert "```" in opening, "show it before explaining it"


NAME_OF_OURS = re.compile(r"(?:[a-z]+\.)?argosy\.dev/[a-z-]+|ARGOSY_[A-Z_]+")


def settings_in_source() -> set[str]:
    """Environment variables that the program reads, and argosy's own names in manifests."""
    names: set[str] = set()
    for text in (file.read_text() for file in SOURCE.rglob("*.py")):
        if "argosy.dev/" in text or "ARGOSY_" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names |= {node.value} if NAME_OF_OURS.fullmatch(node.value) else set()
        names |= set(re.findall(r"environ(?:\.get\(|\[)\s*\"([A-Z_]+)\"", text))
    return names


def test_every_setting_and_environment_variable_is_in_the_reference() -> None:
    text = "\n".join(page.read_text() for page in REFERENCE.glob("*.md"))
    read = settings_in_source()
    assert {name for name in read if f"`{name}`" not in text} == set()
    assert "XDG_STATE_HOME" in read, "the search for settings finds nothing"


def test_exit_codes_page_lists_every_exit_code_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \|", (REFERENCE / "exit-codes.md").read_text(), re.MULTILINE)
    program_codes = {code for name, code in vars(exit_codes).items() if name.isupper()}
    assert len(program_codes) == 7 and {int(row) for row in rows} >= program_codes


LIMIT = re.compile(r"^\| [^|]+ \| ([\d.,]+) ?(KiB|MiB|s|min|h|) ?[^|]*\|.*\| `([\w.]+):([\w.]+)` \|$", re.MULTILINE)


@pytest.mark.parametrize(("page", "least"), [("reference/limits.md", 12), ("concepts/isolation.md", 5)])
def test_documented_limits_equal_the_constants_in_the_code(page: str, least: int) -> None:
    rows = LIMIT.findall((DOCS / page).read_text())
    assert len(rows) >= least
    wrong = []
    for number, unit, module, name in rows:
        actual = importlib.import_module(module)
        for part in name.split("."):
            actual = getattr(actual, part)
            actual = actual() if isinstance(actual, type) else actual
        if float(number.replace(",", "")) * UNITS[unit] != float(actual):  # type: ignore[arg-type]
            wrong.append(f"{module}:{name} is {actual}, the page says {number} {unit}")
    assert wrong == []


SCENARIO = re.compile(r"^\| (\S+-\d\d) \| .+ \| \[`(\w+)`\]\(([^)]+)\) \|$", re.MULTILINE)


def test_every_scenario_links_to_an_existing_test() -> None:
    text = (REFERENCE / "scenarios.md").read_text()
    rows = SCENARIO.findall(text)
    assert len(rows) == len(re.findall(r"^\| [A-Z]+-\d\d ", text, re.MULTILINE)) >= 20
    assert len({identity for identity, _, _ in rows}) == len(rows), "an id is used twice"
    files = {link: (REFERENCE / link).resolve().read_text() for _, _, link in rows}
    assert [name for _, name, link in rows if f"def {name}(" not in files[link]] == []


def test_readme_shows_the_first_success_within_80_lines() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    success = next(number for number, line in enumerate(lines, 1) if re.match(r"NAME\s+STATUS\s+HEALTH", line))
    assert success <= 80
