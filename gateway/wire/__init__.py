"""Request bodies: from bytes to a conversation, and edits back into the bytes."""
