"""Reads the submodules that a commit names, as git does.

In: the text of .gitmodules. Out: paths and URLs, or a SourceError. Never: fetches them; skips a line that git rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, NoReturn

from argosy.errors import SourceError, SourceRefused

GITMODULES_FILE: Final = ".gitmodules"
_SPACES: Final = " \t\n\r"
_COMMENT_SIGNS: Final = "#;"
_ESCAPES: Final[Mapping[str, str]] = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}
_UPDATE_METHODS: Final = ("checkout", "rebase", "merge", "none")


class Submodule(NamedTuple):
    """A folder of a repository whose files are in another repository, at the commit that the folder's entry names."""

    path: str
    url: str
    is_skipped: bool = False  # `update = none`: git leaves the folder empty


class GitSetting(NamedTuple):
    section: str  # in lower case
    subsection: str
    name: str  # in lower case
    value: str | None  # None: a name without `=`
    line: int


def read_settings(text: str) -> list[GitSetting]:
    """Read git's configuration format."""
    return [*_SettingsReader(text)]


def read_gitmodules(text: str) -> list[Submodule]:
    """Return the submodules with a path and a URL. Of several with one path, the last one counts."""
    by_path = {fields["path"]: fields for fields in _read_sections(text).values() if "path" in fields}
    return [
        Submodule(path, fields["url"], fields.get("update") == "none")
        for path, fields in by_path.items()
        if "url" in fields
    ]


def list_submodule_paths(text: str) -> list[str]:
    """Return the paths of all submodules, with and without a URL."""
    return [fields["path"] for fields in _read_sections(text).values() if "path" in fields]


def resolve_submodule_url(url: str, parent_url: str) -> str:
    """Return the address of a submodule. As in git, `./` and `../` are relative to the address of the repository."""
    if not url.startswith(("./", "../")):
        return url
    base = parent_url.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            cut = max(base.rfind("/"), base.rfind(":"))
            if cut <= 0 or base[:cut].endswith(("/", ":")):
                raise SourceRefused("the address of a submodule leads above the host of the repository", where=url)
            base = base[: cut + (base[cut] == ":")].rstrip("/")
        url = url.removeprefix("../") if url.startswith("../") else url.removeprefix("./")
    return f"{base}{'' if base.endswith(':') else '/'}{url}"


def _read_sections(text: str) -> dict[str, dict[str, str]]:
    """Return path, url and update of each submodule, by its name. Names are case-sensitive, as in git."""
    sections: dict[str, dict[str, str]] = {}
    for setting in read_settings(text):
        if setting.section != "submodule" or setting.name not in ("path", "url", "update"):
            continue
        if not setting.subsection or ".." in setting.subsection.replace("\\", "/").split("/"):
            continue  # git ignores such names
        if setting.value is None:
            _reject(setting.line)
        if setting.name == "update":
            if setting.value not in _UPDATE_METHODS:
                message = f"invalid value for 'submodule.{setting.subsection}.update'; use one of"
                raise SourceError(f"{message} {', '.join(_UPDATE_METHODS)}", where=GITMODULES_FILE)
        elif setting.value.startswith("-"):
            continue  # git ignores what could be an option of a command
        fields = sections.setdefault(setting.subsection, {})
        if setting.name == "path":  # at the end: of several with one path, git takes the one that names it last
            sections[setting.subsection] = sections.pop(setting.subsection)
        fields[setting.name] = setting.value
    return sections


def _reject(line: int) -> NoReturn:
    raise SourceError(f"bad config line {line}; correct it", where=GITMODULES_FILE)


class _SettingsReader:
    """Reads git's configuration format, one character after the other."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self._position, self._line = 0, 1
        self._section = self._subsection = ""

    def __iter__(self) -> Iterator[GitSetting]:
        while (sign := self._next()) != "":
            if sign in _COMMENT_SIGNS:
                self._skip_line()
            elif sign == "[":
                self._read_section()
            elif sign not in _SPACES:
                yield self._read_setting(sign)

    def _next(self) -> str:
        """Return the next character; empty at the end."""
        sign = self._text[self._position : self._position + 1]
        self._position += 1
        self._line += sign == "\n"
        return sign

    def _next_in_line(self) -> str:
        """Return the next character, which must be in the same line."""
        sign = self._next()
        if sign in ("", "\n"):
            _reject(self._line - (sign == "\n"))
        return sign

    def _skip_line(self) -> None:
        while self._next() not in ("", "\n"):
            pass

    def _read_section(self) -> None:
        """Read `[name]`, `[name.subsection]` (all in lower case) or `[name "Subsection"]`."""
        name, sign = "", self._next_in_line()
        while sign != "]" and sign not in _SPACES:
            if not _is_name_sign(sign) and sign != ".":
                _reject(self._line)
            name += sign.lower()
            sign = self._next_in_line()
        self._section, _, self._subsection = name.partition(".")
        if sign == "]":
            return
        while sign in _SPACES:
            sign = self._next_in_line()
        if sign != '"':
            _reject(self._line)
        subsection = self._subsection + "." if self._subsection else ""
        while (sign := self._next_in_line()) != '"':
            subsection += self._next_in_line() if sign == "\\" else sign
        self._subsection = subsection
        if self._next_in_line() != "]":
            _reject(self._line)

    def _read_setting(self, sign: str) -> GitSetting:
        line = self._line
        if not (sign.isascii() and sign.isalpha()):
            _reject(line)
        name = ""
        while _is_name_sign(sign):
            name += sign.lower()
            sign = self._next()
        while sign in (" ", "\t"):
            sign = self._next()
        if sign in ("", "\n"):
            return GitSetting(self._section, self._subsection, name, None, line)
        if sign != "=":
            _reject(line)
        return GitSetting(self._section, self._subsection, name, self._read_value(), line)

    def _read_value(self) -> str:
        """Read to the end of the line. Quotes keep spaces and signs of comments; a backslash continues the line."""
        value, spaces, is_quoted = "", 0, False
        while (sign := self._next()) not in ("", "\n"):
            if not is_quoted and sign in _COMMENT_SIGNS:
                self._skip_line()
                return value
            if not is_quoted and sign in _SPACES:
                spaces += bool(value)
                continue
            value, spaces = value + " " * spaces, 0
            if sign == "\\":
                value += self._read_escaped()
            elif sign == '"':
                is_quoted = not is_quoted
            else:
                value += sign
        if is_quoted:
            _reject(self._line - (sign == "\n"))
        return value

    def _read_escaped(self) -> str:
        sign = self._next()
        if sign not in ("\n", "") and sign not in _ESCAPES:
            _reject(self._line)
        return _ESCAPES.get(sign, "")


def _is_name_sign(sign: str) -> bool:
    return sign.isascii() and (sign.isalnum() or sign == "-")
