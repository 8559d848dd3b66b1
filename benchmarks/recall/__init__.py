"""How much of what a conversation needs later survives a fold, and what the fold costs."""
