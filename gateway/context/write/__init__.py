"""The text that stands in for the folded part, and the messages as they are sent."""
