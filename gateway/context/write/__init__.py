"""Write the text that replaces the folded part, and the messages to send."""
