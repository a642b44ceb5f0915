"""Proposes the smallest changes in Git that bring an Application in sync, each with its reason.

In: an Application, a comparison, causes. Out: proposals and manifest edits. Never: hides an intended change; claims a
result that was not compared again.
"""
