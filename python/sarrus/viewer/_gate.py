"""Gate between browsers and viser, which controls access to a view and filters messages.

viser accepts every message for which it has a handler, for example uploads and requests to publish the view on the internet. The gate forwards only
two kinds of messages: :class:`GuiUpdateMessage` and :class:`ViewerCameraMessage`.
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

LONGEST = 4096  # largest size of a message [bytes]; a message of a camera has 300
LEGIBLE = 80  # largest number of characters of a header in a warning

Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
Pixels = Annotated[float, msgspec.Meta(ge=1, le=1e6)]
Triple = tuple[Finite, Finite, Finite]


class Value(msgspec.Struct, forbid_unknown_fields=True):
    """New value of a control."""

    value: bool | int | Finite | str


class GuiUpdateMessage(msgspec.Struct, tag_field="type", tag=True, forbid_unknown_fields=True):
    """Message of a control that was moved or clicked."""

    uuid: str
    updates: Value


class ViewerCameraMessage(msgspec.Struct, tag_field="type", tag=True, forbid_unknown_fields=True):
    """Message of a page whose camera was moved, or whose window was resized."""

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
    """Gate of a view, which checks the requests and messages of browser pages.

    Attributes
    ----------
    key : random path of the view's address
    serving : True if viser serves behind the gate
    server : the viser server; None before it runs, when messages that set controls are rejected
    """

    def __init__(self, names: set[str]) -> None:
        self.key = secrets.token_urlsafe(16)
        self.serving = False
        self.server: Any = None
        self._names, self._warned = names, False
        self._decode = msgspec.msgpack.Decoder(GuiUpdateMessage | ViewerCameraMessage).decode

    # ---- requests ----------------------------------------------------------------------------------------------------

    def admits(self, request: Request) -> bool:
        """Return True if a request contains the key. A websocket request must also come from a page of this server."""
        path = request.path.partition("?")[0].split("/")
        keyed = secrets.compare_digest(path[1].encode(errors="replace") if len(path) > 1 else b"", self.key.encode())
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return keyed
        origin, host = (", ".join(request.headers.get_all(name)) for name in ("Origin", "Host"))
        if keyed and is_own_page(origin, host, self._names):
            return True
        # warn only once, because a rejected page tries again every second
        if not self._warned:
            self._warned = True
            reason = "it has another origin" if keyed else "its address lacks the key of this view"
            page = f"{_legible(origin)} (host {_legible(host)})"
            warnings.warn(
                f"view: rejected a page of {page}: {reason}; further rejections are not reported", stacklevel=1
            )
        return False

    # ---- messages ----------------------------------------------------------------------------------------------------

    def filtered(self, data: str | bytes) -> bytes | None:
        """Return a message, encoded again from its decoded fields; None if it is not allowed."""
        try:
            message = self._decode(data if isinstance(data, bytes) else b"")
        except (ValueError, RecursionError):  # the message is text, or not of an allowed kind
            return None
        if isinstance(message, GuiUpdateMessage):
            controls = {} if self.server is None else self.server.gui._gui_input_handle_from_uuid
            control = controls.get(message.uuid)
            if control is None or not fits(message.updates.value, control):
                return None
        return msgspec.msgpack.encode(message)

    # ---- server ------------------------------------------------------------------------------------------------------

    def serve(self, handler: Callable[[Any], Awaitable[None]], host: str, port: int, **options: Any) -> Any:
        """Serve behind the gate; replaces `websockets.asyncio.server.serve` in viser."""
        process_request, version = options.pop("process_request"), f"viser-v{viser.__version__}"

        def checked_request(connection: Any, request: Request) -> Any:
            if not self.admits(request):
                text = "Open the address with the key that the program printed.\n"
                return connection.respond(http.HTTPStatus.FORBIDDEN, text)
            path = request.path.removeprefix(f"/{self.key}").lstrip("/")
            return process_request(connection, replace(request, path=f"/{path}"))

        def subprotocol(_: Any, offered: list[str]) -> str:
            # reject such a page here, because viser would print a line for each page of another version
            if version not in offered:
                raise NegotiationError(f"the page must use {version}")
            return version

        async def filtered_handler(connection: Any) -> None:
            receive = connection.recv

            async def filtered_receive() -> bytes:
                while True:
                    message = self.filtered(await receive())
                    if message is not None:
                        return message

            connection.recv = filtered_receive
            await handler(connection)

        self.serving = True
        # a separate logger, because an invalid request must not print a traceback in the terminal
        logger = logging.Logger("sarrus.view", logging.ERROR)
        logger.addFilter(lambda record: record.getMessage() != "opening handshake failed")
        options.update(process_request=checked_request, select_subprotocol=subprotocol, max_size=LONGEST, logger=logger)
        return websockets.asyncio.server.serve(filtered_handler, host, port, **options)


def guarded(gate: Gate, host: str, port: int) -> Any:
    """Start a viser server whose requests all pass a gate, and return the server.

    viser does not expose its websockets server: a thread of viser calls `serve` of the module `websockets`. That thread's function is therefore
    copied with globals in which `serve` is :meth:`Gate.serve`. Other websockets servers of the process are not affected.
    """

    class Guarded(viser.ViserServer):  # type: ignore[misc, unused-ignore]
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "_websock_server":  # the thread is created, but not started yet
                work = type(value)._background_worker
                server = SimpleNamespace(**{**vars(websockets.asyncio.server), "serve": gate.serve})
                module = SimpleNamespace(**{**vars(websockets), "asyncio": SimpleNamespace(server=server)})
                value._background_worker = FunctionType(
                    work.__code__, {**work.__globals__, "websockets": module}
                ).__get__(value)
            super().__setattr__(name, value)

    server = Guarded(host=host, port=port, verbose=False)
    if not gate.serving:
        server.stop()
        raise RuntimeError(
            f"viser {viser.__version__} is not supported; install an older version: pip install 'viser<1.2'"
        )
    gate.server = server
    return server


def is_own_page(origin: str, host: str, names: set[str]) -> bool:
    """Return True if a request for `host` comes from a page of the same host, and the host is a numeric address or one of `names`.

    Other names are rejected, because they allow DNS rebinding attacks. The port is not checked, because an SSH tunnel changes it.
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
    """Return True if a value is valid for a control: it has the control's type, and is one of its options or within its range."""
    if type(control.value) in (int, float):
        number = type(value) is int or (type(value) is float and type(control.value) is float)
        # tolerance of one step, because the page rounds values to steps
        return number and control.min - control.step <= value <= control.max + control.step
    return type(value) is type(control.value) and value in getattr(control, "options", (value,))


def _legible(header: str) -> str:
    """Return a header escaped and shortened for a warning, because a page can put any text into it."""
    return ascii(header if len(header) <= LEGIBLE else header[: LEGIBLE - 3] + "...")
