"""From a comparison to a cluster that is as Git asks.

In: pairs, and what was done so far. Out: tasks in order, and an operation one step further. Never: waits or sleeps.
"""
