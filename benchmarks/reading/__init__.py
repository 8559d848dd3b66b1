"""Whether a small model can read a fold: what it answers from one, and which standing wishes it obeys."""
