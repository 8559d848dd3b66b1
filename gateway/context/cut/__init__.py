"""Decide where a conversation is cut."""
