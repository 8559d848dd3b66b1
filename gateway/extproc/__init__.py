"""An external processor for Envoy: Envoy forwards and retries, this process decides what is sent.

- `server`: Envoy's calls. `protocol`: its messages.
- `envoy_attempt`: one attempt at one request. It uses `deciding` (what is sent), `replies` (what Envoy is told) and `carried` (what the next
  attempt must know).
"""
