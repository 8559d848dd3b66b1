"""Weigh the lines of a folded part: which are new, repeated, replaced or standing wishes, and the worth of each."""
