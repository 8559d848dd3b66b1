"""The way in: connections, addresses, guards, limits and bodies of clients' requests."""
