"""Weigh the lines of a folded part: which are new, repeated, replaced or standing wishes, and the worth of each.

- `line_pool`: all lines of a folded part, with what is known of each. It uses the other files. `passages`: lines that are quoted together. `choice_cache`: what was chosen
  from the lines.
- `worth`: what each line is worth. `use`: how its facts were used before. `envelope`: what back ends write around every answer.
- `common_arguments`: what a program writes into every call of a tool.
- `tally`: where each word is: in the user's sentences, in calls, in results.
- `statements`: sentences with a value. `replaced_statements`: those that newer ones have replaced.
- `standing_wishes`: wishes of the user that hold. `revocations`: which later sentences may revoke one.
- `folded_lines`: the lines, as the searches in these files see them.
- `speakers`: whose words answer a question.
"""
