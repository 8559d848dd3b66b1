"""Claude Code and Codex, driven through a gateway without a network."""
