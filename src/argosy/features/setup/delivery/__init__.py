"""Setup of argosy.yaml: plan, apply and removal.

In: a setup request and live objects. Out: a plan and its steps. Never: writes outside the plan.
"""
