"""The certificate that clients see: read at the start, and again when its files change, without ending a connection."""

import ssl
from pathlib import Path

from gateway.config import SettingsError
from gateway.config.values import Server


class Certificate:
    """A TLS context whose certificate can be replaced; connections that are open keep the old one."""

    def __init__(self, cert: str, key: str) -> None:
        self._cert = cert
        self._key = key
        self.context = read(cert, key)

    def renew(self) -> None:
        """Read the files again. Raises SettingsError where they do not fit together; the old certificate then stays."""
        read(self._cert, self._key)  # a context that fails half-way would be left without a certificate
        self.context.load_cert_chain(self._cert, self._key)


def certificate(server: Server) -> Certificate | None:
    """Return the configured certificate; None without one. Raises SettingsError."""
    return Certificate(server.tls_cert, server.tls_key) if server.tls_cert else None


def read(cert: str, key: str) -> ssl.SSLContext:
    """Return a context for a certificate and its key. Raises SettingsError."""
    for name, file in (("cert", cert), ("key", key)):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise SettingsError([f"server.tls.{name}: {file} cannot be read ({error.strerror or error})"]) from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key, password="")  # an encrypted key would else ask on the terminal
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(
            [
                f"server.tls: {cert} and {key} are not a certificate and its unencrypted key in PEM form, or do not fit together"
            ]
        ) from error
    return context
