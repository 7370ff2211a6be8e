"""Server of a view at an address and a port of this machine: viser behind a :mod:`~sarrus.viewer._gate`."""

from __future__ import annotations

import errno
import ipaddress
import operator
import socket
import threading
import warnings
from typing import Any

PATIENCE = 60.0  # timeout for starting the server [s], which usually takes 0.1 s


def serve(host: str, port: int) -> tuple[Any, str]:
    """Start a viser server, and return it with its URL, which contains a key.

    The server uses the first free port from `port` on, or any free port if `port` is 0.
    """
    from ._gate import Gate, guarded

    address, free = _free(host, port)
    ip = ipaddress.ip_address(address)
    if not ip.is_loopback:
        risk = f"everyone who can reach port {free} of this machine and has the view's address can see and move it"
        warnings.warn(f"host {host!r}: {risk}; pass host='127.0.0.1' for this machine only", stacklevel=3)
    names = {host.lower(), "localhost"}
    if not ip.is_loopback:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    gate, outcome = Gate(names), list[Any]()

    def start() -> None:
        try:
            outcome.append(guarded(gate, address, free))
        except Exception as error:
            outcome.append(error)

    # run viser's constructor in a thread, because it would wait forever if viser's own thread fails
    starting = threading.Thread(target=start, name="sarrus-view-start", daemon=True)
    starting.start()
    starting.join(PATIENCE)
    if not outcome:
        raise RuntimeError(f"the view's server did not start at {host} port {free} within {PATIENCE:g} s")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    server = outcome[0]
    shown = ("[::1]" if ip.version == 6 else "127.0.0.1") if ip.is_unspecified else f"[{host}]" if ":" in host else host
    return server, f"http://{shown}:{server.get_port()}/{gate.key}"


def _free(host: str, port: int) -> tuple[str, int]:
    """Return the numeric address of a host of this machine, and its first free port."""
    if isinstance(port, bool) or not hasattr(port, "__index__"):
        raise TypeError(f"port must be an integer; got {port!r}")
    first = operator.index(port)
    if not 0 <= first <= 65535:
        raise ValueError(f"port must be from 0 to 65535; got {first}")
    if not isinstance(host, str):
        raise TypeError(f"host must be an address or a name, such as '127.0.0.1'; got {host!r}")
    if not host:
        raise ValueError(
            "host is empty; pass '127.0.0.1' for this machine only, '0.0.0.0' for all machines that can reach it"
        )
    try:
        family, *_, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, ValueError) as error:  # UnicodeError is a ValueError
        raise ValueError(f"host {host!r} cannot be resolved ({error}); '127.0.0.1' is this machine") from None
    address = str(place[0])
    for free in range(first, 65536):
        try:
            with socket.create_server((address, free), family=family) as tried:
                return address, int(tried.getsockname()[1])
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                fault = f"is not an address of this machine ({error.strerror})"
                raise ValueError(f"host {host!r} {fault}") from None
    raise ValueError(f"no port from {first} to 65535 is free on host {host!r}")
