"""An external processor for Envoy: Envoy forwards and retries, this process decides what is sent."""
