"""Serve client requests: the aiohttp side of the gateway."""
