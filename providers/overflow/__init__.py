"""Recognise how upstreams say that a request is too long."""
