"""The messages of a client on a socket: each is checked, folded and named anew on its way to the upstream."""

from contextlib import ExitStack

from aiohttp import web

from gateway.serve import key_limits, keys
from gateway.serve import record as records
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.admission import holding
from gateway.serve.incoming.errors import ClientError
from gateway.serve.sockets.events import CREATE, NotServed, event_of, frame_of
from gateway.serve.sockets.fold import Message, fold_message, speaks_responses
from gateway.serve.sockets.limits import Limits
from gateway.serve.sockets.models import check_message, check_url, with_names_at
from gateway.serve.sockets.pending import PendingResponses
from gateway.serve.sockets.retry import Retries
from gateway.upstream.client import Target


class ClientMessages:
    """The messages of one client for the upstream of its socket."""

    def __init__(
        self, gateway: Gateway, request: web.BaseRequest, target: Target, pending: PendingResponses, retries: Retries
    ) -> None:
        self._gateway, self._request, self._target = gateway, request, target
        self._pending, self._retries = pending, retries
        self._record = records.of(request)
        self._limits = Limits(gateway, self._record, pending, speaks_responses=speaks_responses(request))

    async def edited(self, content: str | bytes) -> str | bytes:
        """Return the content of a frame for the upstream. A message in a binary frame is edited as a text is.

        Raises NotServed, Refused or Overloaded.
        """
        self._record.count_received(len(content))
        self._check_key()
        frame = await frame_of(self._gateway, content)
        await self._limits.check(frame)
        if frame.text is None:
            return content
        try:
            text = await self._edit_and_add_response(frame.text)
        except key_limits.RateLimited as error:
            raise await self._limits.refused(frame, error) from None
        if text == frame.text:
            return content
        return text if isinstance(content, str) else text.encode()

    def _check_key(self) -> None:
        """Check the client's key again, because a socket may stay open for hours. Raises NotServed."""
        before = self._record.arrival.key
        try:
            keys.check_again(self._gateway, self._record.arrival)
            if self._record.arrival.key is not before:
                check_url(self._gateway, self._request)
        except ClientError as refusal:
            raise NotServed(refusal.code) from None

    async def _edit_and_add_response(self, text: str) -> str:
        """Return a message for the upstream, and add a pending response if it asks for one. Raises NotServed, Overloaded when there is no
        room for the message, or RateLimited."""
        with ExitStack() as hold:
            hold.enter_context(holding(self._request, len(text)))
            message = await self._message(text)
            if message.asks:
                size_bytes = len(text.encode("utf-8", "surrogatepass"))
                await self._pending.add(size_bytes, message.fields, message.event_id)
                if message.asking is not None:
                    self._retries.watch(message.asking, hold.pop_all())
                elif message.continues:
                    self._retries.watch_continued(message.continues)
        return message.text

    async def _message(self, text: str) -> Message:
        """Return a message whose models are allowed, folded if it does not fit. If it stays unchanged, an alias in it is replaced. Raises
        NotServed for other models."""
        gateway, target = self._gateway, self._target
        await check_message(gateway, self._request, target, text)
        if speaks_responses(self._request):
            message = await fold_message(gateway, self._request, target, text)
        else:
            event = await event_of(gateway, text)
            message = Message(text, event.type == CREATE, event_id=event.event_id)
        if message.text is not text:
            return message
        return message._replace(text=await with_names_at(gateway, target, text))
