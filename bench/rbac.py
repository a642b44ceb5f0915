"""How quickly it is decided who may do what: decisions a second beside their limit, and a list of 5,000 applications.

Run: python bench/rbac.py [rounds]. Processor time, as others use the machine too; each decision is of a question that
was not asked before, and of all rounds the best counts. Exit code 1: a figure is over its limit.
"""

from __future__ import annotations

import sys
import time

from argosy.gitops.application.project_spec import Project, ProjectRole
from argosy.gitops.policy.rbac import RbacEnforcer, RbacPermissions, RbacRequester
from argosy.gitops.policy.rbac_config import read_access_policy

LEAST_A_SECOND = 50_000
LIST_LIMIT = 0.020
APPLICATIONS = 5_000
ROLES = 250


def permissions() -> RbacPermissions:
    """258 rules; who asks has ten groups, three of which give roles."""
    lines = [f"p, role:r{n}, applications, {('get', 'sync', '*')[n % 3]}, team-{n}/*, allow" for n in range(ROLES)]
    lines += [f"g, group-{n}, role:r{n}" for n in range(0, ROLES, 5)]
    lines += ["p, role:r5, applications, *, */prod-*, deny", "g, group-5, role:readonly"]
    owners = [
        Project(
            name=f"team-{n}",
            roles=(
                ProjectRole("ops", (f"p, proj:team-{n}:ops, applications, *, team-{n}/*, allow",), (f"group-{n + 1}",)),
            ),
        )
        for n in range(20)
    ]
    enforcer = RbacEnforcer(read_access_policy({"policy.csv": "\n".join(lines)}), owners)
    return enforcer.get_permissions(RbacRequester("ann", tuple(f"group-{n}" for n in range(10))))


def one_round() -> tuple[float, float]:
    checks = [(f"team-{n % 40}/app-{n}", action) for n in range(APPLICATIONS) for action in ("get", "sync", "delete")]
    user_permissions = permissions()
    began = time.process_time()
    for name, action in checks:
        user_permissions.may("applications", action, name)
    rate = len(checks) / (time.process_time() - began)
    fresh_permissions = permissions()
    names = [f"team-{n % 40}/app-{n}" for n in range(APPLICATIONS)]
    began = time.process_time()
    visible = [name for name in names if fresh_permissions.may("applications", "get", name)]
    assert 0 < len(visible) <= APPLICATIONS
    return rate, time.process_time() - began


def main(rounds: int) -> int:
    results = [one_round() for _ in range(rounds)]
    rate = max(rate for rate, _ in results)
    listing = min(took for _, took in results)
    print(f"decisions            {rate:>12,.0f} /s   {rate / LEAST_A_SECOND:5.1f} times the least wanted")
    print(f"a list of {APPLICATIONS:,}      {listing * 1000:>12.1f} ms   {listing / LIST_LIMIT:5.2f} of its limit")
    return int(rate < LEAST_A_SECOND or listing > LIST_LIMIT)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
