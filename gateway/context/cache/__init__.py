"""Prompt caches of providers: their published rules, and what they would charge for a row of requests."""
