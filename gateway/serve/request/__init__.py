"""One foldable request: its places, its measure, the work of its states, its end and its record."""
