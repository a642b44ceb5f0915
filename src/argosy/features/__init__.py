"""The features: one folder for each thing that a person can do with argosy.

`argosy.command_modules` lists their commands, `argosy.features.serve.routes` their routes.
"""
