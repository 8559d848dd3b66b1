"""One record a request, many observers."""
