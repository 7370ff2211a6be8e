"""Where a view is served, and to whom.

viser answers every page that asks: one of anybody's, open in the same browser, could read the scene from 127.0.0.1 and move it.
Here a page must come from this server, under an address or a name of this machine; a message may set a control's value only.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import math
import operator
import socket
import threading
import warnings
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0  # [s] for a server that takes a tenth of one


def serve(viser: Any, host: str, port: int) -> tuple[Any, str]:
    """A viser server and its URL, on the first free port from `port` on (0: on any)."""
    address, free = _free(host, port)
    ip = ipaddress.ip_address(address)
    if not ip.is_loopback:
        risk = f"shows the view to everyone who can reach port {free} of this machine, and lets them move it"
        warnings.warn(f"host {host!r} {risk}; host='127.0.0.1' keeps it to this machine", stacklevel=3)
    found: list[Any] = []

    def start() -> None:
        try:
            found.append(viser.ViserServer(host=address, port=free, verbose=False))
        except Exception as error:
            found.append(error)

    # its constructor waits without end for a thread that may have failed
    starting = threading.Thread(target=start, name="sarrus-view-start", daemon=True)
    starting.start()
    starting.join(PATIENCE)
    if not found:
        raise RuntimeError(f"the view's server did not come up at {host} port {free} within {PATIENCE:g} s")
    if isinstance(found[0], Exception):
        raise found[0]
    server = found[0]
    names = {host.lower(), "localhost"}
    if not ip.is_loopback:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    _answer_own_pages(server, names)
    _take_values(server)
    shown = ("[::1]" if ip.version == 6 else "127.0.0.1") if ip.is_unspecified else f"[{host}]" if ":" in host else host
    return server, f"http://{shown}:{server.get_port()}"


def _free(host: str, port: int) -> tuple[str, int]:
    """The numeric address of a host of this machine, and the first port there that is free."""
    if isinstance(port, bool) or not hasattr(port, "__index__"):
        raise TypeError(f"port must be an integer; got {port!r}")
    first = operator.index(port)
    if not 0 <= first <= 65535:
        raise ValueError(f"port must lie in 0..65535; got {first}")
    if not isinstance(host, str):
        raise TypeError(f"host must be an address or a name, as '127.0.0.1'; got {host!r}")
    if not host:
        raise ValueError("host is empty; give '127.0.0.1' for this machine alone, '0.0.0.0' for all that can reach it")
    try:
        family, *_, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, ValueError) as error:  # UnicodeError is a ValueError
        raise ValueError(f"host {host!r} is not known here ({error}); '127.0.0.1' is this machine") from None
    address = str(place[0])
    for free in range(first, 65536):
        try:
            with socket.create_server((address, free), family=family) as tried:
                return address, int(tried.getsockname()[1])
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                fault = f"is no address of this machine that can be served ({error.strerror})"
                raise ValueError(f"host {host!r} {fault}") from None
    raise ValueError(f"no port from {first} to 65535 is free on host {host!r}")


def _answer_own_pages(server: Any, names: set[str]) -> None:
    """Send pages of others away before they get or say anything.

    viser 1.1 hands out neither its websockets server nor its `process_request`. What it has is `on_client_connect`: awaited after the
    handshake, and before anything is sent or read. A version of it without the fields used here refuses everybody.
    """
    sockets = server._websock_server

    async def look(client: Any) -> None:
        connection = sockets._live_connections[client.client_id]
        headers = connection.request.headers
        origin, host = (", ".join(headers.get_all(name)) for name in ("Origin", "Host"))
        if is_own_page(origin, host, names):
            return
        del sockets._live_connections[client.client_id], sockets._client_state_from_id[client.client_id]
        warnings.warn(f"the view sent a page of {origin!r} away, which asked for host {host!r}", stacklevel=1)
        await connection.close(1008, "only pages of this server may look")
        # ends the connection's handler without the traceback that another exception would print
        raise asyncio.CancelledError

    sockets.on_client_connect(look)
    # who came before the lookout stood there comes again
    sockets.disconnect_all_clients()


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
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name in names


def _take_values(server: Any) -> None:
    """Drop messages that set anything else than the value of a control, or a value of another kind: viser sets what it is told."""
    from viser import _messages as messages

    gui = server.gui
    update = gui._handle_gui_updates

    async def checked(client: int, message: Any) -> None:
        control = gui._gui_input_handle_from_uuid.get(message.uuid)
        if control is not None and set(message.updates) == {"value"} and _fits(message.updates["value"], control):
            await update(client, message)

    server._websock_server.unregister_handler(messages.GuiUpdateMessage, update)
    server._websock_server.register_handler(messages.GuiUpdateMessage, checked)


def _fits(value: Any, control: Any) -> bool:
    if isinstance(control.value, float):
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is type(control.value) and value in getattr(control, "options", (value,))
