"""The corridor: one application, from its source to its status.

In: an application, a cluster, the rules in force. Out: what became of it. Never: knows how a room does its work.
"""
