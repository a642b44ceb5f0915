"""Detects Unix groups that have no members besides the user and root.

In: a group id. Out: True if nobody else is a member. Never: trusts a group whose members may not all be listed.
"""

from __future__ import annotations

import grp
import os
import pwd


def is_group_of_process(group: int) -> bool:
    return group in (os.getegid(), *os.getgroups())


def is_private_group(group: int, owner: int) -> bool:
    """True if nobody but the owner, this process's user and root is in the group.

    A group without an entry in /etc/group is private if its id is the owner's id, or if this process is in it: the
    fsGroup of a Pod has no entry in the container.
    """
    trusted = {0, owner, os.geteuid()}
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return group == owner or is_group_of_process(group)
    names = {name for name in map(_user_name, trusted) if name}
    if set(entry.gr_mem) - names:
        return False
    if any(user.pw_gid == group and user.pw_uid not in trusted for user in pwd.getpwall()):
        return False
    # A directory service may not list its users, so a primary group such as `users` may have more members.
    return group in (0, owner) or entry.gr_name in names or not any(_primary_group(user) == group for user in trusted)


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return ""


def _primary_group(user: int) -> int:
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return -1
