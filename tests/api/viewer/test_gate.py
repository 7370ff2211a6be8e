"""Access to a view: pages that may open it, and messages that they may send (two of viser's, with values of controls and cameras)."""

import contextlib
import dataclasses
import socket
import time
import types
import typing
import warnings
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import sarrus
from sarrus.viewer.viewer import View

viser = pytest.importorskip("viser")
msgpack = pytest.importorskip("msgspec.msgpack")
import websockets  # noqa: E402
from viser import _messages  # noqa: E402
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from sarrus.viewer import _gate as gate  # noqa: E402


@pytest.fixture(scope="module")
def fourbar():
    return sarrus.mechanisms.four_bar()


@pytest.fixture
def shown(fourbar):
    with View(fourbar, port=0) as shown:
        yield shown


def page(shown, origin=None, host=None, key=None, version=viser.__version__, **headers):
    """Open the scene's socket as a page of an origin does; by default its own."""
    at, _, own = shown.url.removeprefix("http://").partition("/")
    return connect(
        f"ws://{host or at}/{own if key is None else key}",
        sock=socket.create_connection(("127.0.0.1", shown._server.get_port())),
        origin=f"http://{at}" if origin is None else origin or None,
        subprotocols=[f"viser-v{version}"],
        additional_headers=headers,
        max_size=None,
    )


def until(condition):
    """Wait for another thread; the deadline only limits a failure."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def slid(shown, **updates):
    """Return the message of a slider that was moved."""
    return msgpack.encode({"type": "GuiUpdateMessage", "uuid": shown.sliders["motor"]._impl.uuid, "updates": updates})


def said(shown, *messages):
    """Send messages as a page of the view, and wait for the last one, of a slider."""
    goal = 0.25 if shown.sliders["motor"].value != 0.25 else 0.5
    with page(shown) as own:
        for message in messages:
            own.send(message)
        own.send(slid(shown, value=goal))
        until(lambda: shown.sliders["motor"].value == goal)


CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1, 0, 0, 0],
    "position": [1.0, 2, 3],
    "fov": 0.5,
    "near": 0.1,
    "far": 100,
    "image_height": 600,
    "image_width": 900,
    "look_at": [0, 0, 0],
    "up_direction": [0, 0, 1],
}


# ---- who may look ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "host", "key"),
    [
        ("http://evil.example", None, None),
        ("null", None, None),  # of a file, or a sandbox
        ("", None, None),  # no browser
        ("http://localhost:1", None, None),  # another server of this machine
        ("http://evil.example:8080", "evil.example:8080", None),  # a name that was led here
        ("http://[", None, None),
        ("ftp://127.0.0.1", "127.0.0.1", None),
        # a program that forges its origin, or a page of another view that was here
        (None, None, ""),
        (None, None, "a" * 22),
        (None, None, "é"),
    ],
)
def test_a_page_of_another_origin_or_without_the_key_gets_nothing(shown, origin, host, key):
    with pytest.warns(UserWarning, match="rejected a page of"), pytest.raises(InvalidStatus, match="403"):
        page(shown, origin, host, key and key.encode().decode("latin-1")).close()
    with page(shown) as own:
        assert len(own.recv()) > 1000


@pytest.mark.parametrize("name", ["127.0.0.1:{}", "localhost:{}", "LocalHost:9000", "[::1]:{}", "192.0.2.1"])
def test_pages_under_an_address_or_a_name_of_this_machine_see_it(shown, name):
    host = name.format(shown._server.get_port())
    with page(shown, f"http://{host}", host) as own:
        assert len(own.recv()) > 1000


def test_the_page_itself_has_the_key_in_its_address(shown):
    root, key = shown.url.rsplit("/", 1)
    for address in (shown.url, f"{shown.url}/", f"{shown.url}/index.html", f"{shown.url}?fixedDpr=1"):
        with urlopen(address, timeout=10) as answer:
            assert b"<html" in answer.read()
    for address in (root, f"{root}/", f"{root}/index.html", f"{root}/{key[:-1]}", f"{root}/{key}x", f"{root}/?{key}"):
        with pytest.raises(HTTPError, match="403") as refused:
            urlopen(address, timeout=10)
        refused.value.close()
    for path in ("/../../../__init__.py", "/%2e%2e/%2e%2e/__init__.py", "//etc/passwd"):
        with pytest.raises(HTTPError, match="404") as refused:
            urlopen(shown.url + path, timeout=10)
        refused.value.close()
    with View(shown.mechanism, port=0) as other:
        assert other.url.rsplit("/", 1)[1] != key


def test_pages_that_are_sent_away_are_told_of_once_and_briefly(shown, capsys, caplog):
    """For any number of pages, headers and protocols, neither the terminal nor the registry of warnings fills."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(20):
            with contextlib.suppress(InvalidStatus):
                page(shown, f"http://{k}.{'évil' * 900}.example", f"é{k}").close()
            with contextlib.suppress(InvalidStatus):
                page(shown, version=f"0.{k}").close()
        with socket.create_connection(("127.0.0.1", shown._server.get_port())) as raw:
            raw.sendall(b"no request at all\r\n\r\n")
            raw.recv(1)
    (warning,) = told
    assert len(str(warning.message)) < 500 and str(warning.message).isprintable()
    assert capsys.readouterr() == ("", "") and not caplog.records


def test_a_viser_that_serves_otherwise_is_not_taken(fourbar, monkeypatch):
    """A future viser may open the socket by another name, without the access check."""
    worker = viser.infra.WebsockServer._background_worker
    otherwise = types.FunctionType(renamed(worker.__code__), {**worker.__globals__, "sockets": websockets})
    monkeypatch.setattr(viser.infra.WebsockServer, "_background_worker", otherwise)
    with pytest.raises(RuntimeError, match=rf"viser {viser.__version__} is not supported"):
        View(fourbar, port=0)


def renamed(code):
    """Return the code of a function that calls `websockets` by another name."""
    names = tuple("sockets" if name == "websockets" else name for name in code.co_names)
    inner = (renamed(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_names=names, co_consts=tuple(inner))


# ---- what it may say -------------------------------------------------------------------------------------------------


def example(hint):
    """Return a value that a field of a message may contain."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in arguments else example(arguments[0])
    if origin is tuple:
        return [] if ... in arguments else [example(argument) for argument in arguments]
    return {str: "x", int: 1, float: 0.5, bool: True, bytes: b"x"}.get(hint, {} if origin is dict else None)


def every_message():
    """Return one valid message of each type of viser: name to bytes."""
    made = {}
    for kind in _messages.Message.get_subclasses():
        hints = typing.get_type_hints(kind)
        fields = {field.name: example(hints[field.name]) for field in dataclasses.fields(kind) if field.init}
        made[kind.__name__] = msgpack.encode({"type": kind.__name__, **fields})
    return made


def test_nothing_but_values_of_controls_and_cameras_gets_to_viser(shown, monkeypatch):
    """Uploads and the request to publish the view are among viser's hundred messages."""
    sockets, heard = shown._server._websock_server, []
    handle = sockets._handle_incoming_message

    async def hear(client, message):
        heard.append(type(message).__name__)
        await handle(client, message)

    monkeypatch.setattr(sockets, "_handle_incoming_message", hear)
    messages = every_message()
    handled = {kind.__name__ for kind in sockets._incoming_handlers}
    # each of these does something, unless it is stopped
    assert {"ShareUrlRequest", "FileTransferStartUpload", "GuiFormDirtyMessage"} <= handled
    for name in handled:
        assert type(_messages.Message.deserialize(messages[name])).__name__ == name
    said(shown, *messages.values(), msgpack.encode(CAMERA))
    assert {*heard} == {"GuiUpdateMessage", "ViewerCameraMessage"}
    # the last one of the slider alone: that of the list sets nothing that is there
    assert heard.count("GuiUpdateMessage") == 1 and len(messages) > 100


def test_no_page_can_have_the_view_published(shown, monkeypatch):
    """One of viser's messages requests a public tunnel to the view from its server."""
    asked = []
    monkeypatch.setattr("viser._viser.ViserTunnel", lambda *where: asked.append(where))
    said(shown, *(msgpack.encode({"type": name}) for name in ("ShareUrlRequest", "ShareUrlDisconnect")))
    shown._server._thread_executor.shutdown()  # whatever was set off is done
    assert asked == [] and shown._server._share_tunnel is None


def test_what_is_no_message_is_dropped_without_a_word(shown, capsys, caplog):
    own = slid(shown, value=1.5)
    said(
        shown,
        *(
            b"",
            b"\xc1",
            b"\x91" * 4000,
            b"\xa1\xff",
            b"\x81\x90\x01",
            "text",
            own.decode("latin-1"),
            own[:-1],
            own + b"\xc0",
        ),
        *(msgpack.encode(message) for message in (None, 1, [], {}, {"type": 1}, {"type": "Message"}, {"type": "é"})),
        # two types in one: which is read is each reader's choice
        b"\x82\xa4type\xb3ViewerCameraMessage\xa4type\xafShareUrlRequest",
        b"\x82\xa4type\xafShareUrlRequest\xa4type\xb3ViewerCameraMessage",
    )
    assert capsys.readouterr() == ("", "") and not caplog.records
    # what is longer than any message ends the connection before it is read
    with page(shown) as other:
        other.send(b"\x00" * (gate.LONGEST + 1))
        with pytest.raises(ConnectionClosed) as closed:
            list(other)
    assert closed.value.rcvd.code == 1009 and capsys.readouterr() == ("", "")


def test_a_message_that_is_no_value_of_its_slider_changes_nothing(shown):
    slider, before = shown.sliders["motor"], shown.sliders["motor"].value
    with page(shown) as own:
        for updates in (
            {"value": [1.0]},
            {"value": np.nan},
            {"value": np.inf},
            {"value": "nan"},
            {"value": "0.5"},
            {"value": True},
            {"value": None},
            {"value": slider.max + 1.0},
            {"value": -1e200},
            {"value": 10**30 % 2**63},
            {"value": 0.25, "props": [1]},
            {"props": [1]},
            {"update_cb": [1]},
            {"removed": True},
            {},
        ):
            own.send(slid(shown, **updates))
        seen = []
        slider._impl.sync_cb, sync = lambda *told: (seen.append(told[1]), sync(*told)), slider._impl.sync_cb
        own.send(slid(shown, value=1))
        until(lambda: slider.value == 1.0)
    assert seen == [{"value": 1.0}] and before != 1.0
    assert shown.move({"motor": 0.75}) and slider.value == 0.75


def test_every_control_takes_what_a_page_sets_it_to(fourbar):
    """Buttons, groups of buttons, boxes, lists and sliders, including those of a playback: the check contains the type of each."""
    q = fourbar.assemble()
    run = sarrus.simulate(fourbar, q, np.zeros(3), 0.05)
    with View(fourbar, trajectory=[run, run], port=0) as shown, page(shown) as own:
        controls = shown._server.gui._gui_input_handle_from_uuid
        seen, kinds = [], set()
        for control in controls.values():
            state, kind = control._impl, type(control).__name__
            # not the playback's own affairs: what viser takes is what is looked at
            state.update_cb, state.sync_cb = [], lambda client, told, kind=kind: seen.append(kind)
            options = getattr(control, "options", None)
            if options is not None:
                value = options[-1]
            elif isinstance(control.value, bool):
                value = True if "Button" in kind else not control.value
            else:
                value = control.max if control.value != control.max else control.min
            own.send(msgpack.encode({"type": "GuiUpdateMessage", "uuid": state.uuid, "updates": {"value": value}}))
            kinds.add(kind)
        until(lambda: len(seen) == len(controls))
        assert len(kinds) == 5 and set(seen) == kinds


def test_a_camera_that_is_none_is_dropped(shown):
    def clients():
        return shown._server.get_clients()

    with page(shown) as own:
        for change in (
            {"image_height": 0},
            {"image_width": -1},
            {"fov": np.nan},
            {"position": [0, 0, np.inf]},
            {"position": [0, 0]},
            {"wxyz": "1000"},
            {"wxyz": None},
            {"more": 1},
        ):
            own.send(msgpack.encode({**CAMERA, **change}))
        own.send(slid(shown, value=0.25))
        until(lambda: shown.sliders["motor"].value == 0.25)
        assert not clients()
        own.send(msgpack.encode(CAMERA))
        until(clients)
        (client,) = clients().values()
        assert client.camera.image_width == 900


def test_a_name_is_no_markup():
    """viser's page renders tags in Markdown, including scripts, and names come from files."""
    b = sarrus.Builder("hostile")
    b.add_body("a", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
    b.add_joint("<img src=x onerror='alert(1)'> ![](//evil.example)", sarrus.Revolute("y"), "ground", "a")
    with View(b.build(), port=0) as hostile:
        hostile._panel.set_status(f"The loops would open: {hostile.inputs[0]}.")
        shown = hostile._panel.status.content
        assert "\\<img src=x" in shown and "\\!\\[\\]" in shown
        hostile._panel.set_note(hostile.inputs[0])
        assert hostile._panel.note.content.startswith("\\<img")


def test_the_page_itself_needs_no_origin(shown):
    """A browser sends no origin, or that of a linking page: the response is viser's program, without the scene."""
    with urlopen(Request(shown.url, headers={"Origin": "http://evil.example"}), timeout=10) as answer:
        assert answer.status == 200
