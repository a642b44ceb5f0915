"""The program that answers for models: it runs confined, in a process of its own, and needs nothing but Python.

In: a socket that listens, and lines that say which models there are. Out: answers over HTTP. Never: imports anything of
argosy but its own modules; opens a connection.
"""
