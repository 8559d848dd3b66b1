"""What folding costs and saves with each provider's prompt cache."""
