"""Shorten a kept message: its texts keep their most useful parts, and JSON stays JSON."""
