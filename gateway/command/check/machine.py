"""Check whether this machine has everything that a valid configuration needs: packages, keys, files, ports."""

import asyncio
import errno
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.config import Server, Settings, SettingsError, Upstream
from gateway.config.exposure import endpoint_in, has_key
from gateway.config.report import without_password
from gateway.context.choose import embedding
from gateway.serve.incoming.tls import certificate
from gateway.state.records.opening import records_file
from gateway.state.store import REDIS_SCHEMES, open_store, reach
from gateway.upstream.certificates import tls_of

BUSY = frozenset({errno.EADDRINUSE, errno.EACCES})


class Defect(NamedTuple):
    """A defect that the gateway can tolerate."""

    event: str
    """The name under which it is logged."""
    reason: str
    """The line that says what is wrong."""


def problems(settings: Settings) -> tuple[str, ...]:
    """Return each reason why the gateway cannot start, one line each, without keys and passwords."""
    found = [
        store_problem(settings),
        _traces_problem(settings),
        semantic_problem(settings),
        _tls_problem(settings.server),
        _host_problem("server", settings.server.host),
        _host_problem("admin", settings.admin.host),
        _socket_problem(settings.server),
        *upstream_problems(settings),
    ]
    return tuple(problem for problem in found if problem)


def lacking(settings: Settings) -> tuple[str, ...]:
    """Return each reason why a running gateway cannot take over changed settings."""
    return tuple(filter(None, (semantic_problem(settings), *upstream_problems(settings))))


def upstream_problems(settings: Settings) -> tuple[str, ...]:
    """Return each reason why an upstream cannot be called: a certificate that cannot be read."""
    found = [
        problem(upstream)
        for problem in (_certificate_problem, _client_certificate_problem)
        for upstream in settings.upstreams.values()
    ]
    return tuple(filter(None, found))


def warnings(settings: Settings) -> tuple[Defect, ...]:
    """Return each defect that the gateway can tolerate, one line each: a store in a file that cannot be written, or is not ours."""
    scheme, _, rest = settings.store.url.partition(":///")
    if scheme != "sqlite":
        return ()
    from gateway.state.store.sqlite import foreign  # noqa: PLC0415 - imported when it is used

    found = (
        Defect(event, f"store.url: {file} {reason}; nothing will be remembered from one start to the next")
        for file in (Path(rest), records_file(Path(rest)))
        for event, reason in (("store_unwritable", _unwritable(file)), ("store_file_is_not_ours", foreign(file)))
        if reason
    )
    return tuple(islice(found, 1))  # the file of the records is in the same folder


def endpoints(settings: Settings) -> Iterator[str]:
    """Name the upstreams whose base URL goes on to an endpoint, as documentation of APIs shows it, one line each."""
    for name, upstream in settings.upstreams.items():
        if endpoint := endpoint_in(upstream.base_url):
            yield (
                f"upstreams.{name}.base_url: ends in the endpoint {endpoint}, and every request adds its own; "
                f"write {without_password(upstream.base_url.removesuffix(endpoint))}"
            )


def unreachable_store(settings: Settings) -> Iterator[str]:
    """Say that no server of the store answers, in one line. A gateway serves without it, and asks again."""
    if settings.store.url.startswith(tuple(f"{scheme}://" for scheme in REDIS_SCHEMES)):
        reason = asyncio.run(reach(settings.store.url))
        if reason:
            yield f"store.url: the server does not answer ({reason}); without it nothing is shared or remembered. Is it running, and is this its address?"


def keyless(settings: Settings) -> Iterator[str]:
    """Name the upstreams that get no key at all, or not the one that their URL holds, one line each."""
    for name, upstream in settings.upstreams.items():
        if "@" in urlsplit(upstream.base_url).netloc:
            yield (
                f"upstreams.{name}.base_url: the name and the password in it are not sent; write them as a header, "
                'headers: {authorization: "Basic ..."}'
            )
        if settings.asks_for_keys and not has_key(upstream):
            yield (
                f"upstreams.{name}.api_key: requests go there without any key, since client keys are for the gateway alone. "
                "Right for a server that asks for none"
            )


def busy_ports(settings: Settings) -> Iterator[str]:
    """Return each port that another program uses, and each host that is no address of this machine, one line each. Worker n has the admin
    port + n."""
    admin_ports = (
        range(settings.admin.port, settings.admin.port + settings.server.workers) if settings.admin.port else ()
    )
    for name, flag, host, port in (
        ("server", "port", settings.server.host, settings.server.port),
        *(("admin", "admin-port", settings.admin.host, port) for port in admin_ports),
    ):
        if not port or not (found := _busy(host, port)):
            continue
        reason, is_address = found
        if is_address:
            yield f"{name}.port: {host}:{port} cannot be bound ({reason}). Is the gateway running already? If not, end the program that uses the port, or choose another: --{flag} PORT"
        else:
            yield f"{name}.host: {host}:{port} cannot be bound ({reason}); choose an address of this machine, such as 127.0.0.1 or 0.0.0.0"


def store_problem(settings: Settings) -> str:
    """Return why the store cannot be opened. Opening needs its package and its key; it reads and writes nothing."""
    try:
        open_store(settings.store.url, encryption_key=settings.store.encryption_key)
    except ValueError as error:
        return str(error)
    return ""


def _traces_problem(settings: Settings) -> str:
    if not settings.observe.traces or find_spec("opentelemetry") is not None:
        return ""
    return "observe.traces: traces need OpenTelemetry: pip install 'turnfold[otel]'"


def semantic_problem(settings: Settings) -> str:
    """Return why questions cannot be searched by meaning where the settings want it; empty when they can or need not."""
    lacking = embedding.missing() if settings.by_meaning else ""
    return f"{settings.by_meaning}.recall.semantic: {lacking}" if lacking else ""


def unreadable(settings: Settings) -> Iterator[str]:
    """Load the vectors of meaning. A gateway loads them while it serves; without them it searches by words alone."""
    if settings.by_meaning and not embedding.missing() and embedding.load() is None:
        yield f"{settings.by_meaning}.recall.semantic: the vectors of the installed {embedding.PACKAGE} cannot be read: {embedding.REMEDY}"


def _certificate_problem(upstream: Upstream) -> str:
    if not upstream.ca_file or not upstream.verify:
        return ""
    try:
        ssl.create_default_context(cafile=upstream.ca_file)
    except ssl.SSLError:
        reason = "has no certificate in PEM form"
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    else:
        return ""
    return f"upstreams.{upstream.name}.ca_file: {upstream.ca_file} {reason}"


def _tls_problem(server: Server) -> str:
    try:
        certificate(server)
    except SettingsError as error:
        return error.problems[0]
    return ""


def _host_problem(section: str, host: str) -> str:
    try:
        host.encode("idna")  # as every look-up of a name does
    except UnicodeError:
        return f"{section}.host: {host} is no address and no name of a host"
    return ""


def _socket_problem(server: Server) -> str:
    """Return why the Unix socket cannot be made; empty when it can, or when a process has one there."""
    path = Path(server.socket)
    if not server.socket or path.is_socket():
        return ""
    reason = "is there already, and is no socket"
    if not path.exists():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(server.socket)  # its path is checked, and nothing is made
            except FileNotFoundError as error:
                reason = "" if path.absolute().parent.is_dir() else f"cannot be made ({error.strerror})"
            except OSError as error:
                reason = f"cannot be made ({error.strerror or error})"
    return f"server.socket: {path} {reason}" if reason else ""


def _client_certificate_problem(upstream: Upstream) -> str:
    if not upstream.client_cert:
        return ""
    try:
        tls_of(replace(upstream, ca_file=""))
    except (OSError, ValueError):
        files = " and ".join(filter(None, (upstream.client_cert, upstream.client_key)))
        return f"upstreams.{upstream.name}.client_cert: {files} cannot be read as a certificate and its unencrypted key in PEM form"
    return ""


def _unwritable(path: Path) -> str:
    if path.exists():
        return (
            ""
            if path.is_file() and os.access(path, os.W_OK)
            else "cannot be written (not a file that this user may write)"
        )
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"cannot be written ({error.strerror or error})"


def _busy(host: str, port: int) -> tuple[str, bool] | None:
    """Bind a port for a moment, as a worker would; return why it fails, and whether the host is an address of this machine. None when
    it works or the reason is unknown."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        is_foreign = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        if is_foreign or error.errno in BUSY:
            return error.strerror or str(error), not is_foreign
    return None
