"""The records of past requests: in memory, and in the store for some days."""
