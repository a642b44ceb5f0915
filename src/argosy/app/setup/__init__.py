"""Setting up a cluster for a delivery.

In: files, and the flags that choose a cluster. Out: plans and words. Never: decides what a plan holds.
"""
