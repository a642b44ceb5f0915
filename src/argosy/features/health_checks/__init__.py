"""The workbench for health checks: reads files, opens a pool, and asks the health room.

In: paths and names that somebody typed. Out: values that a command line can show. Never: prints; writes a file.
"""
