"""What survives a request: learned facts, summaries, background tasks."""
