"""Weigh the lines of a folded part: which are new, repeated, replaced or standing wishes, and the worth of each.

- `line_pool`: all lines of a folded part, with what is known of each. It uses the other files.
- `tally`: where each word is: in the user's sentences, in calls, in results.
- `changes`: statements that newer ones have replaced.
- `folded_lines`: the lines and messages that the other files read.
- `standing_wishes`: wishes of the user. `revocations`: which sentences revoke them.
- `speakers`: whose words answer a question.
"""
