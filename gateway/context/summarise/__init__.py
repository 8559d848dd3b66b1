"""The question to a summariser, and the verdict on its answer."""
