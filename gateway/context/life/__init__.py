"""The life of one request: states, transitions and the retry ladder."""
