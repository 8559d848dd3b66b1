"""Prompt caches of providers: their published rules, and their prices for a sequence of requests.

`rules` has the published rules. `marking` decides where a request gets marks.
"""
