"""Where a conversation is cut."""
