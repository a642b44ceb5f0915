"""Pods that really run: their commands are confined processes of this machine.

In: Pods that ask for it. Out: what their containers do, and what they print. Never: runs a Pod that does not ask;
leaves a process behind; gives it more than the Pod says.
"""

from argosy.sandbox.simulators.pod_processes.runner import Doing, Processes

__all__ = ["Doing", "Processes"]
