"""A small kubectl and oc, for machines that have none, and what oc knows and kubectl does not.

In: a verb with its flags, a cluster. Out: what kubectl would print. Never: stands in the way of a real one.
"""
