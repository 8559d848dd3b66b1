"""WebSockets: passed through, and their turns folded."""
