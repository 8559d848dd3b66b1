"""Choose lines of the folded part: for the digest by new facts per token, for quotes by relevance to a question."""
