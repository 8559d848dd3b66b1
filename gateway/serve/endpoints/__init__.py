"""Endpoints beside a conversation: passed through, or answered here where an upstream lacks them."""
