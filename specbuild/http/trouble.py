"""What httpx raises, and what servers answer, as errors of ours."""

from __future__ import annotations

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx

from specbuild.errors import DownloadError, OversizeError, TransientError, UnansweredError, UnreachableError, UsageError
from specbuild.urls import host_of, without_credentials

NO_ADDRESS = (httpx.InvalidURL, UnicodeError)
"""What comes of an address that is none; the latter of names of hosts that no alphabet has (IDNA)."""


@contextmanager
def told_by_host(url: str) -> Generator[None]:
    """Trouble with a server, to who has asked it."""
    try:
        yield
    except httpx.TransportError as trouble:
        raise_if_final(url, trouble)
        where, why = host_of(urlsplit(url)), f"{type(trouble).__name__}: {trouble}".rstrip(": ")
        if isinstance(trouble, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            raise UnreachableError(
                f"{where} cannot be reached: {why}", hint="check the network; behind a proxy set HTTPS_PROXY"
            ) from trouble
        raise TransientError(f"the connection to {where} broke: {why}", hint="try again later") from trouble
    except (httpx.TooManyRedirects, httpx.DecodingError, *NO_ADDRESS) as trouble:
        raise DownloadError(f"{without_credentials(url)} cannot be asked: {trouble}") from trouble


@contextmanager
def told_by_address(url: str) -> Generator[None]:
    """Trouble on the way to a server, to a client that it is passed on to."""
    shown = without_credentials(url)
    try:
        yield
    except httpx.TimeoutException as trouble:
        raise UnansweredError(f"{shown} did not answer in time ({type(trouble).__name__})") from trouble
    except httpx.TransportError as trouble:
        raise TransientError(f"{shown} could not be fetched: {type(trouble).__name__}: {trouble}") from trouble
    except NO_ADDRESS as error:
        raise UsageError(f"{shown} is no http address: {error}") from error


def raise_if_final(url: str, trouble: httpx.TransportError) -> None:
    """Raise for what no further try can cure."""
    if isinstance(trouble, httpx.UnsupportedProtocol):
        raise UsageError(f"{without_credentials(url)} is no http address: {trouble}") from trouble
    cause: BaseException | None = trouble
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"the certificate of {host_of(urlsplit(url))} is not trusted: {cause.verify_message}",
                hint="if a proxy of yours signs it, name its certificates in SSL_CERT_FILE or PIP_CERT",
            ) from trouble
        cause = cause.__cause__ or cause.__context__


def check_size(url: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise OversizeError(f"{without_credentials(url)} is larger than the limit of {max_bytes:,} bytes")
