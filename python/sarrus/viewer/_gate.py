"""What stands between a browser and viser: who may open a view, and what a page may say.

viser takes whatever it knows a handler for, uploads and a request to publish the view on the internet among them. Here a page may say
two things (:class:`GuiUpdateMessage`, :class:`ViewerCameraMessage`), and nothing else reaches viser.
"""

from __future__ import annotations

import http
import ipaddress
import logging
import secrets
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import FunctionType, SimpleNamespace
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import viser
import websockets
import websockets.asyncio.server
from websockets.exceptions import NegotiationError
from websockets.http11 import Request

LONGEST = 4096  # [bytes] of a message; a camera's are 300
LEGIBLE = 80  # characters of a header in a warning

Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
Pixels = Annotated[float, msgspec.Meta(ge=1, le=1e6)]
Triple = tuple[Finite, Finite, Finite]


class Value(msgspec.Struct, forbid_unknown_fields=True):
    """What a control is set to."""

    value: bool | int | Finite | str


class GuiUpdateMessage(msgspec.Struct, tag_field="type", tag=True, forbid_unknown_fields=True):
    """A control was moved, or clicked."""

    uuid: str
    updates: Value


class ViewerCameraMessage(msgspec.Struct, tag_field="type", tag=True, forbid_unknown_fields=True):
    """The camera of a page was moved, or its window has another size."""

    wxyz: tuple[Finite, Finite, Finite, Finite]
    position: Triple
    fov: Finite
    near: Finite
    far: Finite
    image_height: Pixels
    image_width: Pixels
    look_at: Triple
    up_direction: Triple


class Gate:
    """Who may open a view, and what a page may say to it.

    Attributes
    ----------
    key : the path of the view's address, which nobody guesses
    stands : whether viser serves behind it
    server : the viser server, once it is there; no control is set before
    """

    def __init__(self, names: set[str]) -> None:
        self.key = secrets.token_urlsafe(16)
        self.stands = False
        self.server: Any = None
        self._names, self._warned = names, False
        self._decode = msgspec.msgpack.Decoder(GuiUpdateMessage | ViewerCameraMessage).decode

    # ---- who may look ------------------------------------------------------------------------------------------------

    def let_in(self, request: Request) -> bool:
        """Whether a request has the key, and, where it asks for the scene, comes from a page of this server."""
        path = request.path.partition("?")[0].split("/")
        keyed = secrets.compare_digest(path[1].encode(errors="replace") if len(path) > 1 else b"", self.key.encode())
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return keyed
        origin, host = (", ".join(request.headers.get_all(name)) for name in ("Origin", "Host"))
        if keyed and is_own_page(origin, host, self._names):
            return True
        # once: a page that is sent away comes again, every second
        if not self._warned:
            self._warned = True
            why = "is of another origin" if keyed else "has not this view's key in its address"
            said = f"{_legible(origin)}, which asked for host {_legible(host)}"
            warnings.warn(
                f"the view sent a page of {said}, away: it {why}. Others are sent away without a word", stacklevel=1
            )
        return False

    # ---- what it may say ---------------------------------------------------------------------------------------------

    def taken(self, said: str | bytes) -> bytes | None:
        """The message, written anew from what was understood of it; None where it is not to be taken."""
        try:
            message = self._decode(said if isinstance(said, bytes) else b"")
        except (ValueError, RecursionError):  # text, or no message that is known here
            return None
        if isinstance(message, GuiUpdateMessage):
            controls = {} if self.server is None else self.server.gui._gui_input_handle_from_uuid
            control = controls.get(message.uuid)
            if control is None or not fits(message.updates.value, control):
                return None
        return msgspec.msgpack.encode(message)

    # ---- in viser's place --------------------------------------------------------------------------------------------

    def serve(self, handler: Callable[[Any], Awaitable[None]], host: str, port: int, **options: Any) -> Any:
        """What viser calls for `websockets.asyncio.server.serve`: the same, behind the gate."""
        answer, version = options.pop("process_request"), f"viser-v{viser.__version__}"

        def answered(connection: Any, request: Request) -> Any:
            if not self.let_in(request):
                text = "This view is at the address that the program which shows it has printed: with the key.\n"
                return connection.respond(http.HTTPStatus.FORBIDDEN, text)
            path = request.path.removeprefix(f"/{self.key}").lstrip("/")
            return answer(connection, replace(request, path=f"/{path}"))

        def spoken(_: Any, offered: list[str]) -> str:
            # viser prints a line for each page of another version
            if version not in offered:
                raise NegotiationError(f"the page must speak {version}")
            return version

        async def behind(connection: Any) -> None:
            receive = connection.recv

            async def received() -> bytes:
                while True:
                    message = self.taken(await receive())
                    if message is not None:
                        return message

            connection.recv = received
            await handler(connection)

        self.stands = True
        # of its own: a request that is none is no error of ours, with a traceback in the terminal
        logger = logging.Logger("sarrus.view", logging.ERROR)
        logger.addFilter(lambda record: record.getMessage() != "opening handshake failed")
        options.update(process_request=answered, select_subprotocol=spoken, max_size=LONGEST, logger=logger)
        return websockets.asyncio.server.serve(behind, host, port, **options)


def guarded(gate: Gate, host: str, port: int) -> Any:
    """A viser server behind a gate, from its first request on.

    viser hands its websockets server to nobody: its thread calls `serve` of the module `websockets`. Here that thread's function finds
    another `serve` under the name; no other server of the process does.
    """

    class Guarded(viser.ViserServer):  # type: ignore[misc, unused-ignore]
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "_websock_server":  # made, and not started yet
                work = type(value)._background_worker
                server = SimpleNamespace(**{**vars(websockets.asyncio.server), "serve": gate.serve})
                module = SimpleNamespace(**{**vars(websockets), "asyncio": SimpleNamespace(server=server)})
                value._background_worker = FunctionType(
                    work.__code__, {**work.__globals__, "websockets": module}
                ).__get__(value)
            super().__setattr__(name, value)

    server = Guarded(host=host, port=port, verbose=False)
    if not gate.stands:
        server.stop()
        raise RuntimeError(
            f"viser {viser.__version__} serves in a way that is not known here; take an older one: pip install 'viser<1.2'"
        )
    gate.server = server
    return server


def is_own_page(origin: str, host: str, names: set[str]) -> bool:
    """Whether a request for `host` comes from a page of the same host, under an address or one of these names.

    Any other name may be somebody's who leads it here (DNS rebinding). The port is free: an SSH tunnel has its own.
    """
    try:
        page = urlsplit(origin.lower())
        name = page.hostname or ""
    except ValueError:
        return False
    if page.scheme not in ("http", "https") or page.netloc != host.lower():
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def fits(value: Any, control: Any) -> bool:
    """Whether a control can have a value: one of its kind, of its options, between its ends."""
    if type(control.value) in (int, float):
        number = type(value) is int or (type(value) is float and type(control.value) is float)
        # the page rounds to its steps
        return number and control.min - control.step <= value <= control.max + control.step
    return type(value) is type(control.value) and value in getattr(control, "options", (value,))


def _legible(header: str) -> str:
    """A header as a warning shows it: a page may fill one with what it likes."""
    return ascii(header if len(header) <= LEGIBLE else header[: LEGIBLE - 3] + "...")
