"""Read messages as lines, the units of choice of a fold: sentences, records, calls and rows of output.

- `lines`: split a message. `line`: one line. `sentences`, `records`, `calls`: the lines of what people write, of JSON and of calls.
  `pasted`: what a message quotes from elsewhere. `elements`: ``<tag>...</tag>``.
- `prompt_template`, `as_said`: what an application writes around the user's words. `program_messages`: what an agent's program writes around
  them. `spoken`: what a chat channel or a player of a game does.
- `text_calls`, `text_results`, `as_calls`: agents that call tools in their text. `view`: messages in the shape in which they are read.
- `code_calls`: calls in the code that is a call's argument.
- `words`: the words of a line that can be facts.
- `questions`, `question_words`, `instructions`: whether a text asks, and whether it instructs. `errors`: whether a row reports an error.
- `cues`, `wishes`, `learned`: how binding a sentence is, and whether it is a wish for all later turns. `number_table`: weights in the bytes of their file.
- `self_words`: how often each of two speakers says *I* and *my*.
- `subject`: whether a message names what it is about. `familiar`: its words for what its reader knows already.
"""
