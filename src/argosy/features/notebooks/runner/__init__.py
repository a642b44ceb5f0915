"""The one program that runs and judges a notebook: the same on a laptop, in the sandbox and in a Pod.

In: an order, a file of JSON. Out: events, the executed notebook, results. Never: imports more than the standard
library, nbformat, nbclient and itself, for it is shipped alone.
"""
