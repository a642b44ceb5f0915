"""HTTP and SMTP requests to hosts other than the cluster.

In: a URL and a request. Out: the response. Never: follows a redirect.
"""
