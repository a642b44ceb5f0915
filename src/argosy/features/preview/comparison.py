"""Compares two sides of a repository per Application.

In: both sides. Out: RepositoryComparison: changed Applications with their changed objects. Never: renders an
Application whose files are equal on both sides, unless it may define further Applications; writes.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError, UserError
from argosy.features.preview.applications import APPLICATION, Finder, Found, Index, matched
from argosy.features.preview.rendering import Drawer, Drawn
from argosy.features.preview.revisions import Repository, Sides
from argosy.features.preview.source_reach import around, is_touched
from argosy.gitops.analysis.environment_names import environment_of
from argosy.gitops.analysis.generated_applications import Lost, lost
from argosy.gitops.analysis.object_changes import Touched, changes
from argosy.gitops.analysis.repository import Item, Written
from argosy.gitops.analysis.rules.history import lost_applications
from argosy.gitops.application import Source
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.workspace.checkouts import Checkouts, Talk

_SHOWN: Final = 3


@dataclass
class Comparison:
    """Both sides, and the changes between them."""

    sides: Sides
    touched: list[Touched]
    applications: list[Found]  # after
    notes: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)  # Applications that ApplicationSets no longer generate
    rendered: int = 0
    environments: Mapping[str, str] = field(default_factory=dict)  # application → environment, by argosy.yaml


def compare(repository: Repository, sides: Sides, names: Sequence[str] = (), *, talk: Talk) -> Comparison:
    found = Comparison(sides, [], [])
    if not sides.changed and not names:
        return found
    checkouts = Checkouts(talk=talk)
    try:
        _Comparing(repository, sides, names, checkouts, found).run()
    finally:
        checkouts.close()
    return found


class _Comparing:
    def __init__(
        self, repository: Repository, sides: Sides, names: Sequence[str], checkouts: Checkouts, found: Comparison
    ) -> None:
        self.sides, self.names, self.found = sides, names, found
        self.drawer = Drawer(repository, checkouts)
        self.index = Index(sides, repository)
        self.before = Finder(self.index, "base", self.drawer)
        self.after = Finder(self.index, "head", self.drawer, self.before.reaches)
        self.changed = around(sides.changed)
        self.defining = around(self.index.candidates["head"])  # paths that may define further Applications
        self.read: set[str] = set()  # files of the head that renders read

    def run(self) -> None:
        before, after = self.before.all(), self.after.all()
        self.found.environments = self._environments()
        known = {each.key for each in (*before, *after)}
        waiting = matched(before, after)
        folders: set[str] = set()
        while waiting:
            one, other = waiting.pop(0)
            self.found.applications += [other] if other else []
            folders |= {_path(source) for each in (one, other) if each for source in each.app.sources}
            drawn = self._application(one, other)
            children = [
                [
                    each
                    for item in (side.items if side else ())
                    if item.key not in known and (each := finder.written(item))
                ]
                for side, finder in zip(drawn, (self.before, self.after), strict=True)
            ]
            known |= {each.key for side in children for each in side}
            waiting += matched(*children)
        self._check_names()
        self.found.touched = _told_apart(self.found.touched)
        if not self.names:
            self._folders(folders)
            self._unread()
        self._sets()
        self.found.notes += [*self.before.notes, *self.after.notes]

    def _sets(self) -> None:
        if not self.after.sets:
            return
        many = ", ".join(sorted(item.key.name for item in self.after.sets)[:_SHOWN])
        self.found.notes.append(f"ApplicationSets are not expanded ({many}): their Applications are not compared")
        sides = [[(item, self._folders_for(item, each)) for item in each.sets] for each in (self.before, self.after)]
        self.found.lost = lost(*sides)
        self.found.notes += [each.message for each in lost_applications(self.found.lost)]

    def _folders_for(self, item: Item, finder: Finder) -> frozenset[str]:
        """List the side's folders for Git generators; empty if the set uses another repository or revision."""
        used = [each["git"] for each in item.all("spec", "generators") if _has_git(each)]
        if not used:
            return frozenset()
        refs = ("", "HEAD", *finder.side.branches)
        if not all(self.drawer.is_ours(str(each.get("repoURL"))) and each.get("revision", "") in refs for each in used):
            return frozenset()
        return self.index.folders(finder.which)

    # -- Applications --

    def _application(self, before: Found | None, after: Found | None) -> tuple[Drawn | None, Drawn | None]:
        found = after or before
        assert found is not None
        is_wanted = not self.names or found.app.name in self.names
        is_same = before is not None and after is not None and _is_same(before, after)
        if is_same and not self._may_matter(found):
            return None, None
        self.found.rendered += 1
        new = self.drawer.draw(self.sides.head, after.app, after.file, after.place) if after else None
        if new is not None:
            self.read |= {each.path for _, _, made in new.renders for each in made.inputs if not each.place}
        if is_same and new is not None and self.drawer.is_current(new, found.app, self.sides.base, found.file):
            return new, new
        if is_same and new is not None and new.is_elsewhere:
            return None, None  # an external source, which this repository does not change
        old = self.drawer.draw(self.sides.base, before.app, before.file, before.place) if before else None
        if is_wanted and (fault := _same_fault(old, new)):
            self.found.notes.append(f"{found.app.name}: cannot be rendered on either side: {fault}")
        elif is_wanted:
            self._compare(found.app.name, before, after, old, new)
        return old, new

    def _may_matter(self, found: Found) -> bool:
        """True if files that it may read changed, or may define further Applications."""
        for source in found.app.sources:
            if source.chart:
                continue
            spot = self.drawer.spot(self.sides.head, source, found.file, found.app.name, Drawn())
            if spot is None:
                return True
            if spot.ref:
                continue  # it tracks another ref, and the Application is unchanged
            reached = self.after.reaches.of(posixpath.join(spot.home, _path(source)), source)
            if is_touched(reached, self.changed) or is_touched(reached, self.defining):
                return True
        return False

    def _compare(
        self, name: str, before: Found | None, after: Found | None, old: Drawn | None, new: Drawn | None
    ) -> None:
        found = after or before
        for drawn in (old, new):
            if drawn is not None and drawn.note and drawn.note not in self.found.notes:
                self.found.notes.append(drawn.note)
        if any(drawn is not None and (drawn.note or drawn.is_elsewhere) for drawn in (old, new)):
            return
        assert found is not None
        sides = [each.app.destination.namespace if each else "" for each in (before, after)]
        self._keep(
            name,
            old or Drawn(),
            new or Drawn(),
            (sides[0], sides[1]),
            Touched(name, before.app if before else None, after.app if after else None, file=found.file),
            found.written,
        )

    def _keep(
        self,
        name: str,
        old: Drawn,
        new: Drawn,
        namespaces: tuple[str, str],
        touched: Touched,
        written: Written | None,
    ) -> None:
        is_broken = bool(old.fault or new.fault)
        is_moved = _is_moved(touched)
        found, kept = ([], []) if is_broken else changes([] if is_moved else old.items, new.items, namespaces)
        where = environment(written, self.found.environments) if written else environment_of(name)
        refs = [spot.ref for _, spot, _ in new.renders if spot.ref]
        notes = [f"tracks {refs[0]}, which this change does not affect"] if refs and found else []
        notes += ["moves to another cluster; its objects in the old cluster stay"] if is_moved else []
        self.found.touched.append(
            replace(
                touched,
                changes=tuple(found),
                kept=tuple(kept),
                fault=new.fault,
                fault_before=old.fault,
                environment=where,
                notes=tuple(notes),
            )
        )

    def _check_names(self) -> None:
        known = {each.app.name for each in self.found.applications} | {each.name for each in self.found.touched}
        for name in self.names:
            if name not in known:
                import difflib

                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else "see argosy check, or git branch for a ref"
                hint = f"for a folder, use --repo {name}" if os.path.isdir(name) else hint
                raise UserError(f"not a ref and not an Application of this repository; {hint}", where=name)

    # -- folders without an Application --

    def _folders(self, named: set[str]) -> None:
        all_folders = self.before.folders.keys() | self.after.folders.keys()
        above = {posixpath.dirname(each.file) for each in self.found.applications}
        homes = {posixpath.join(home, path) for path in named for home in above}
        for folder in sorted(all_folders):
            finders = [each for each in (self.before, self.after) if folder in each.folders]
            if (
                folder in named
                or folder in homes
                or not any(is_touched(e.folders[folder], self.changed) for e in finders)
            ):
                continue
            if not all(each.roots([folder]) for each in finders):
                continue
            old = self.before.folder(folder) if self.before in finders else Drawn()
            new = self.after.folder(folder) if self.after in finders else Drawn()
            self.read |= {each.path for _, _, made in new.renders for each in made.inputs if not each.place}
            if any(item.kind == APPLICATION for item in (*old.items, *new.items)):
                continue  # compared as Applications
            self.found.rendered += 1
            self.found.notes += [each.note for each in (old, new) if each.note]
            touched = Touched(folder or ".", None, None, is_folder=True)
            self._keep(folder, old, new, ("", ""), touched, None)

    def _unread(self) -> None:
        """Note changed manifest files that no Application or kustomization reads."""
        if any(each.fault for each in self.found.touched):
            return  # the files of the failed render are unknown
        left = [
            path
            for path, each in self.sides.changed.items()
            if each.is_after
            and path.endswith((".yaml", ".yml"))
            and not any(part.startswith(".") for part in path.split("/"))
            and path not in self.read
            and path not in self.index.candidates["head"]
            and b"kind:" in _text(self.sides.head.tree, path)
        ]
        if left:
            named = ", ".join(sorted(left)[:_SHOWN]) + (", …" if len(left) > _SHOWN else "")
            self.found.notes.append(f"{named}: changed, but not deployed by any Application here")

    def _environments(self) -> dict[str, str]:
        text = _text(self.sides.head.tree, "argosy.yaml")
        if not text:
            return {}
        from argosy.gitops.delivery_file.reader import read_delivery

        try:
            delivery = read_delivery(text, "argosy.yaml")
        except ArgosyError:
            return {}  # argosy check reports it
        return {each.application: environment_of(each.name) or each.name for each in delivery.environments}


def _is_moved(touched: Touched) -> bool:
    """True if the destination cluster changed; a changed namespace shows in the objects' keys."""
    if touched.before is None or touched.after is None:
        return False
    one, other = touched.before.destination.known, touched.after.destination.known
    return (one.server, one.name) != (other.server, other.name)


def _same_fault(old: Drawn | None, new: Drawn | None) -> str:
    """Return the fault that both sides have, so that it is not reported as a change."""
    faults = [drawn.fault.message for drawn in (old, new) if drawn and drawn.fault]
    return faults[0] if len(faults) == 2 and faults[0] == faults[1] else ""


def _told_apart(touched: list[Touched]) -> list[Touched]:
    """Add the file to the name of Applications that share a name, as in a repository of examples."""
    counts = Counter(each.name for each in touched)
    return [replace(each, name=f"{each.name} ({each.file})") if counts[each.name] > 1 else each for each in touched]


def _has_git(generator: object) -> bool:
    return isinstance(generator, dict) and isinstance(generator.get("git"), dict)


def _text(tree: Tree, path: str) -> bytes:
    try:
        return tree.read(path)
    except ArgosyError:
        return b""


def _is_same(before: Found, after: Found) -> bool:
    """True if file and manifest are equal."""
    return before.file == after.file and before.written.item.manifest == after.written.item.manifest


def _path(source: Source) -> str:
    path = posixpath.normpath(source.path or ".")
    return "" if path == "." else path


def environment(written: Written, planned: Mapping[str, str]) -> str:
    if written.name in planned:
        return planned[written.name]
    labels = written.item.fields("metadata", "labels")
    said = [str(labels.get(name, "")) for name in ("environment", "env")]
    paths = [posixpath.basename(_path(source)) for source in written.app.sources]
    return environment_of(*said, written.name, written.app.destination.namespace, *paths)
