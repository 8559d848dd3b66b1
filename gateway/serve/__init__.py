"""One client request and its attempts: the aiohttp side of the gateway."""
