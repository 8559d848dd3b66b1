"""Choose the lines of the folded part that are kept."""
