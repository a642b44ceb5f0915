"""What argosy.yaml asks for: read, planned, applied, taken away.

In: a text, and what is live. Out: a plan and its steps. Never: writes outside the plan.
"""
