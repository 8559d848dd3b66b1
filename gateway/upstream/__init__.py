"""The HTTP client towards upstreams, and which upstream is asked."""
