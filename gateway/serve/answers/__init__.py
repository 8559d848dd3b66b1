"""The way out: read an upstream's answer, and give it to the client.

- `answer`: read it far enough to know whether it is a refusal.
- `relay`: forward it as it arrives. `whole`: one that has arrived completely.
- `repeated_key`: the upstream's key is removed from its errors.
- `tail`: what its last bytes say.
"""
