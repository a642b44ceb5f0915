"""Detects Unix groups that have no members besides the user and root.

In: a group id. Out: True if nobody else is a member. Never: trusts a group whose members may not all be listed.
"""

from __future__ import annotations

import grp
import os
import pwd


def is_group_of_process(group_id: int) -> bool:
    return group_id in (os.getegid(), *os.getgroups())


def is_private_group(group_id: int, owner_id: int) -> bool:
    """True if nobody but the owner, this process's user and root is in the group.

    A group without an entry in /etc/group is private if its id is the owner's id, or if this process is in it: the
    fsGroup of a Pod has no entry in the container.
    """
    trusted = {0, owner_id, os.geteuid()}
    try:
        entry = grp.getgrgid(group_id)
    except KeyError:
        return group_id == owner_id or is_group_of_process(group_id)
    names = {name for name in map(_find_user_name, trusted) if name}
    if set(entry.gr_mem) - names:
        return False
    if any(user.pw_gid == group_id and user.pw_uid not in trusted for user in pwd.getpwall()):
        return False
    # A directory service may not list its users, so a primary group such as `users` may have more members.
    return (
        group_id in (0, owner_id)
        or entry.gr_name in names
        or not any(_find_primary_group(user) == group_id for user in trusted)
    )


def _find_user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return ""


def _find_primary_group(user_id: int) -> int:
    try:
        return pwd.getpwuid(user_id).pw_gid
    except KeyError:
        return -1
