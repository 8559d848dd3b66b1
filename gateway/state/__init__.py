"""The state that outlives a request: learned facts, summaries, records, background tasks."""
