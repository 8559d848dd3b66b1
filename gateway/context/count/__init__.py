"""Count the tokens of a request.

- `proof`: most requests fit by their size in bytes, and are not counted.
- `tokens`: the count of a request. `message_cost`: of one message. `fixed_cost`: of everything besides messages.
- `tools`, `media`, `documents`: what tool definitions, images and files cost.
- `families`: which vocabulary and template a model has. `vocabularies`: count by a vocabulary, or estimate. `counter`: these functions for
  one model.
- `calibration`: how far our counts are from bills.
- `delay`: whether counting would delay the event loop.
"""
