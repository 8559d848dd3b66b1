"""Ids of what only one server has: those that a request names, and those that an answer makes.

A response, a conversation, an item, a file, a container. Another server answers that it does not know the id.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.wire.format import Conversation
from gateway.wire.responses_reading import REFERENCE, STORED_MEMBERS, item_type

MOST: Final = 32
"""Ids of one request or answer that are used. Chosen: a long conversation may name hundreds of items, and one is enough to find its server."""
LONGEST: Final = 200
"""Characters of an id. Chosen: real ones have at most 100."""
INSIDE: Final = ("content", "output", "file", "source")
"""Members in which a part of a message has its file, or further parts."""


class _Thing(msgspec.Struct):
    id: Any = None
    container_id: Any = None


class _Said(msgspec.Struct):
    audio: _Thing | None = None


class _Choice(msgspec.Struct):
    message: _Said | None = None
    delta: _Said | None = None


class _Made(msgspec.Struct):
    """The members of an answer, or of an event, that have ids. The decoder skips the others, which are most of it."""

    id: Any = None
    store: Any = None
    conversation: Any = None
    container: Any = None
    thread: Any = None
    output: list[_Thing] | None = None
    choices: list[_Choice] | None = None
    response: "_Made | None" = None
    message: "_Made | None" = None
    delta: "_Made | None" = None


_made: Final = msgspec.json.Decoder(_Made).decode


def made_in(data: bytes) -> tuple[str, ...]:
    """Return the id of the thing that any other endpoint made; nothing of an answer that is no JSON object."""
    return _texts([_read(data).id])


def named_by_responses(request: Any) -> tuple[str, ...]:
    """Return the ids that a Responses body names, those first that say most: what it continues, and its newest items."""
    head = request.head
    found: list[Any] = [_id_of(head.get(name)) for name in STORED_MEMBERS]
    items = [piece.value for piece in request.items]
    found += [item.get("id") for item in reversed(items) if _is_kept(item)]
    tools = head.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            found += _ids_of_tool(tool)
    return _texts([*found, *_files(items)])


def _is_kept(item: Mapping[str, Any]) -> bool:
    """Return whether the server has the content of an item: of a reference, and of reasoning that is sent without any."""
    kind = item_type(item)
    if kind == "reasoning":
        return not item.get("encrypted_content") and not item.get("content")
    return bool(kind == REFERENCE)


def _ids_of_tool(tool: Mapping[str, Any]) -> Iterator[Any]:
    container = tool.get("container")
    yield container
    for files in (tool.get("vector_store_ids"), container.get("file_ids") if isinstance(container, dict) else None):
        yield from files if isinstance(files, list) else ()


def stores_response(conversation: Conversation) -> bool:
    """Return whether the server keeps the answer: it does unless it is told otherwise."""
    return conversation.head.get("store") is not False


def made_by_responses(data: bytes) -> tuple[str, ...]:
    """Return the ids in a response, or in an event that has one."""
    found = _read(data)
    answer = found.response or found
    if answer.store is False:
        return ()
    output = answer.output or []
    items = [each for thing in output[-MOST:] for each in (thing.id, thing.container_id)]
    return _texts([answer.id, _id_of(answer.conversation), *items])


def named_by_chat(conversation: Conversation) -> tuple[str, ...]:
    """Return the files that a chat names, and the spoken answers."""
    spoken = (message.get("audio") for message in reversed(conversation.outline))
    return _texts([*(audio.get("id") for audio in spoken if isinstance(audio, Mapping)), *_files(conversation.outline)])


def stores_chat(conversation: Conversation) -> bool:
    """Return whether the server may keep the answer, or its speech: only if it is told to."""
    return conversation.head.get("store") is True or bool(conversation.head.get("modalities"))


def made_by_chat(data: bytes) -> tuple[str, ...]:
    """Return the id of a chat, and of its speech."""
    found = _read(data)
    said = [each for choice in found.choices or () for each in (choice.message, choice.delta)]
    return _texts([found.id, *(each.audio.id for each in said if each is not None and each.audio is not None)])


def named_by_messages(request: Any) -> tuple[str, ...]:
    """Return the container, the thread and the files that a Messages body names."""
    found = [_id_of(request.head.get(name)) for name in ("thread", "container")]
    return _texts([*found, *_files(block.value for message in request.body_messages for block in message.blocks)])


def may_make(_: Conversation) -> bool:
    """Return True: only the answer says whether something was made."""
    return True


def made_by_messages(data: bytes) -> tuple[str, ...]:
    """Return the container and the thread of a message, or of an event that has them."""
    if b'"container"' not in data and b'"thread"' not in data:
        return ()
    found = _read(data)
    answer = found.message or found.delta or found
    return _texts([_id_of(answer.container), _id_of(answer.thread)])


def _files(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the ids of files in messages and their parts, those of the newest first."""
    waiting = [value for value in values if _has_parts(value)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            if "file_id" in value:
                yield value["file_id"]
            waiting += [value[name] for name in INSIDE if name in value]


def _has_parts(value: Mapping[str, Any]) -> bool:
    """Return whether a message has more than one text. Most have no more, so this saves work."""
    return type(value.get("content")) is not str


def _read(data: bytes) -> _Made:
    """Read an answer; nothing of one that is not in the documented shape."""
    try:
        return _made(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Made()


def _id_of(value: Any) -> Any:
    """Return the id of what may stand as an id or as an object with one."""
    return value.get("id") if isinstance(value, Mapping) else value


def _texts(found: Iterable[Any]) -> tuple[str, ...]:
    """Return what can be an id, each once, in order."""
    ids = (one for one in found if isinstance(one, str) and 0 < len(one) <= LONGEST)
    return tuple(dict.fromkeys(ids))[:MOST]
