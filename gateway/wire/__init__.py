"""Read request bodies into conversations, and write edits back into the bytes."""
