"""Which lines of the folded part are kept."""
