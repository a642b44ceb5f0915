"""Runs Pods as confined local processes.

In: Pods that request it. Out: the state and output of their containers. Never: runs a Pod that does not request it;
leaves a process behind; gives a process more than the Pod specifies.
"""

from argosy.sandbox.simulators.pod_processes.runner import PodProcesses, ProcessPodState

__all__ = ["PodProcesses", "ProcessPodState"]
