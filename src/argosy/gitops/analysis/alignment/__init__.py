"""What would bring Applications in line with what lives: the smallest changes in Git, each with its reason.

In: an Application, a comparison, causes. Out: proposals, and what they change in a manifest. Never: hides a change that
somebody made on purpose; claims what was not compared again.
"""
