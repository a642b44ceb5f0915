"""Answers to people who install.

In: what people ask for, and what a cluster has. Out: a plan, and its steps one after another. Never: prints; writes
outside the plan.
"""
