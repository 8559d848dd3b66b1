"""Recognise how upstreams say that a request is too long.

In the order of use: `unwrap` (the plain statements in an error's body), `wording` (one thing gets one word), `phrases` (what is looked for in
these words), `sizes` (which number is which), `signs` (what the refusal says). `unfinished`: answers that ended before their first word.
"""
