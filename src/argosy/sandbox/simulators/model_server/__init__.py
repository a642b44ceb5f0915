"""The model server: a program that runs confined in its own process and needs only Python.

In: a listening socket, and lines that name the models. Out: HTTP responses. Never: imports argosy modules other than
its own; opens a connection.
"""
