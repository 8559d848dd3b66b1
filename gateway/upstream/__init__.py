"""The HTTP client for upstreams, and the choice of an upstream."""
