"""Shorten a kept message: its texts keep their most useful parts, and JSON stays JSON.

`message` finds the texts, `text` and `json_value` shorten one, `gaps` marks what is left out.
"""
