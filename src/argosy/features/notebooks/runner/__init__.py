"""Runs one notebook and validates it; the same program runs on a laptop, in the sandbox and in a Pod.

In: a run request (a JSON file). Out: events, the executed notebook, results. Never: imports anything but the standard
library, nbformat, nbclient, jupyter_client, itself and `observability.redaction.text_redaction`: a Pod has no more.
"""
