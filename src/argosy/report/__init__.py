"""All that came of a look at an application, told in Argo CD's words.

In: values. Out: the Application's status, its history, Events: plain JSON data. Never: decides, asks a cluster, reads
a clock.
"""
