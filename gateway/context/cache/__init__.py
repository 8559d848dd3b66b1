"""Prompt caches of providers: their published rules, and their prices for a sequence of requests."""
