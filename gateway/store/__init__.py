"""What survives a request: summaries, learned limits, ratios and usage."""
