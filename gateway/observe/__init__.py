"""One record per request, several observers."""
