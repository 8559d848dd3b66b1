"""The way out: read an upstream's answer, and give it to the client."""
