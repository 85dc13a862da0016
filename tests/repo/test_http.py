"""The HTTP client, against a real server on the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import ssl
import subprocess
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from specbuild.errors import (
    ConfigError,
    DownloadError,
    IntegrityError,
    OversizeError,
    RequestRefusedError,
    TransientError,
    UsageError,
)
from specbuild.http import Client, Network
from specbuild.retry import Retry
from specbuild.testing.http_server import Answer, serve

BODY = bytes(range(256)) * 1000
QUICK = Retry(attempts=3, first=0.001, longest=0.01)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_get_gives_the_decoded_body_and_headers() -> None:
    answer = Answer(gzip.compress(BODY), headers={"Content-Encoding": "gzip", "X-Kind": "test"})
    with serve({"/a": answer}) as server:
        async with Client() as client:
            response = await client.get(f"{server.url}/a")
    assert response.body == BODY
    assert response.headers["x-kind"] == "test"


async def test_download_writes_the_bytes_as_they_are_sent(tmp_path: Path) -> None:
    packed = gzip.compress(BODY)
    with serve({"/a.tar.gz": Answer(packed, headers={"Content-Encoding": "gzip"})}) as server:
        async with Client() as client:
            done = await client.download(f"{server.url}/a.tar.gz", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == packed
    assert done.sha256 == hashlib.sha256(packed).hexdigest()
    assert done.size == len(packed)


@pytest.mark.parametrize("trouble", [Answer(status=429), Answer(status=503), Answer(BODY, cut=100), Answer(cut=-1)])
async def test_passing_trouble_is_tried_again(trouble: Answer, tmp_path: Path) -> None:
    with serve({"/a": [trouble, trouble, Answer(BODY)]}) as server:
        async with Client(retry=QUICK) as client:
            await client.download(f"{server.url}/a", tmp_path / "a")
        assert server.asked("/a") == 3
    assert (tmp_path / "a").read_bytes() == BODY


@pytest.mark.parametrize("trouble", [Answer(status=500), Answer(BODY, cut=100), Answer(cut=-1)])
async def test_lasting_trouble_is_transient_and_leaves_no_file(trouble: Answer, tmp_path: Path) -> None:
    with serve({"/a": trouble}) as server:
        async with Client(retry=QUICK) as client:
            with pytest.raises(TransientError, match="in 3 tries"):
                await client.download(f"{server.url}/a", tmp_path / "a")
        assert server.asked("/a") == 3
    assert files(tmp_path) == []


async def test_a_server_that_is_not_there_is_transient() -> None:
    with serve({}) as server:
        url = server.url
    async with Client(retry=QUICK) as client:
        with pytest.raises(TransientError, match="ConnectError"):
            await client.get(url)


async def test_no_pause_is_longer_than_the_longest_though_the_server_asks_for_it() -> None:
    busy = Answer(status=429, headers={"Retry-After": "86400"})
    with serve({"/a": [busy, Answer(BODY)]}) as server:
        async with Client(retry=QUICK) as client:
            assert (await client.get(f"{server.url}/a")).body == BODY


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_final_no_is_not_tried_again(status: int) -> None:
    with serve({"/a": Answer(status=status)}) as server:
        async with Client(retry=QUICK) as client:
            with pytest.raises(RequestRefusedError) as refused:
                await client.get(f"{server.url}/a")
        assert server.asked("/a") == 1
    assert refused.value.status == status


async def test_a_wrong_hash_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with serve({"/a": Answer(BODY)}) as server:
        async with Client() as client:
            with pytest.raises(IntegrityError, match="was promised"):
                await client.download(f"{server.url}/a", tmp_path / "a", hashes={"sha256": "0" * 64})
    assert files(tmp_path) == []


async def test_the_strongest_hash_counts(tmp_path: Path) -> None:
    right = hashlib.sha512(BODY).hexdigest().upper()
    with serve({"/a": Answer(BODY)}) as server:
        async with Client() as client:
            await client.download(f"{server.url}/a", tmp_path / "a", hashes={"md5": "0", "sha512": right})


async def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    with serve({"/a": Answer(BODY)}) as server:
        async with Client() as client:
            with pytest.raises(OversizeError, match="limit of 1,000 bytes"):
                await client.download(f"{server.url}/a", tmp_path / "a", max_bytes=1000)
            with pytest.raises(OversizeError):
                await client.get(f"{server.url}/a", max_bytes=1000)
    assert files(tmp_path) == []


async def test_a_small_answer_that_decodes_to_much_is_refused() -> None:
    bomb = Answer(gzip.compress(bytes(10_000_000)), headers={"Content-Encoding": "gzip"})
    with serve({"/a": bomb}) as server:
        async with Client() as client:
            with pytest.raises(OversizeError):
                await client.get(f"{server.url}/a", max_bytes=1_000_000)


async def test_redirects_are_followed_without_taking_credentials_to_another_host() -> None:
    with serve({"/b": Answer(b"there")}) as other:
        away = Answer(status=302, headers={"Location": f"{other.url.replace('127.0.0.1', 'localhost')}/b"})
        with serve({"/a": away}) as server:
            async with Client() as client:
                response = await client.get(server.url.replace("http://", "http://me:secret@") + "/a")
        assert response.body == b"there"
        assert "authorization" in server.requests[0].headers
        assert "authorization" not in other.requests[0].headers


async def test_redirects_without_end_are_final() -> None:
    with serve({"/a": Answer(status=302, headers={"Location": "/a"})}) as server:
        async with Client(retry=QUICK) as client:
            with pytest.raises(DownloadError, match="without end"):
                await client.get(f"{server.url}/a")


async def test_credentials_come_from_netrc_and_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\ndefault login you password all\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve({"/a": Answer(b"x")}) as server:
        host = server.url.removeprefix("http://")
        async with Client() as client:
            await client.get(f"{server.url}/a")
            await client.get(f"{server.url.replace('127.0.0.1', 'localhost')}/a")
        async with Client(Network(credentials={host: ("index", "key")})) as client:
            await client.get(f"{server.url}/a")
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == ["Basic bWU6c2VjcmV0", None, "Basic aW5kZXg6a2V5"]


async def test_no_message_tells_a_password() -> None:
    with serve({}) as server:
        async with Client(retry=QUICK) as client:
            with pytest.raises(RequestRefusedError) as refused:
                await client.get(server.url.replace("http://", "http://me:secret@") + "/a")
    assert "secret" not in refused.value.message


async def test_the_proxy_that_is_set_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"http://nowhere.invalid/a": Answer(b"through")}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with Client() as client:
            assert (await client.get("http://nowhere.invalid/a")).body == b"through"
        monkeypatch.delenv("HTTP_PROXY")
        async with Client(Network(proxy=proxy.url)) as client:
            assert (await client.get("http://nowhere.invalid/a")).body == b"through"


@pytest.mark.parametrize("by", ["variable", "setting"])
async def test_hosts_that_need_no_proxy_are_reached_without(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"/a": Answer(b"directly")}) as server, serve({f"{server.url}/a": Answer(b"through")}) as proxy:
        host = server.url.removeprefix("http://")
        if by == "variable":
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
        given = proxy.url if by == "setting" else None
        for no_proxy, body in (
            ((), b"through"),
            ((host,), b"directly"),
            (("*",), b"directly"),
            (("a.test",), b"through"),
        ):
            async with Client(Network(proxy=given, no_proxy=no_proxy)) as client:
                assert (await client.get(f"{server.url}/a")).body == body, no_proxy


async def test_a_client_follows_redirects_and_a_proxy_passes_them_on() -> None:
    moved = Answer(status=302, headers={"Location": "/b"})
    with serve({"/a": moved, "/b": Answer(b"there")}) as server:
        async with Client() as client:
            async with client.exchange("GET", f"{server.url}/a") as answer:
                assert (answer.status, await answer.read()) == (200, b"there")
                assert answer.url == f"{server.url}/b"
            async with client.forward("GET", f"{server.url}/a", headers=[("host", "x"), ("x-only", "this")]) as answer:
                assert answer.status == 302
                assert ("location", "/b") in answer.fields
    assert server.requests[0].headers["user-agent"].startswith("specbuild/")
    assert dict(server.requests[-1].headers) == {"host": "x", "x-only": "this"}


@pytest.mark.parametrize("cut", [-1, 0, 5])
async def test_an_answer_that_breaks_off_is_transient_however_it_is_read(cut: int) -> None:
    with serve({"/a": Answer(BODY, cut=cut)}) as server:
        async with Client() as client:
            for send in (client.exchange, client.forward):
                with pytest.raises(TransientError):
                    async with send("GET", f"{server.url}/a") as answer:
                        await answer.read()
                with pytest.raises(TransientError):
                    async with send("GET", f"{server.url}/a") as answer:
                        assert b"".join([chunk async for chunk in answer.chunks()]) == b"never"


async def test_an_answer_need_not_be_read_to_its_end() -> None:
    with serve({"/a": Answer(BODY)}) as server:
        async with Client() as client:
            for send in (client.exchange, client.forward):
                async with send("GET", f"{server.url}/a") as answer:
                    assert len(await anext(answer.chunks(1000))) == 1000


async def test_an_address_of_another_kind_is_a_usage_error() -> None:
    async with Client(retry=QUICK) as client:
        with pytest.raises(UsageError):
            await client.get("ftp://127.0.0.1/a")


async def test_certificates_that_cannot_be_read_are_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"none\.pem"):
        async with Client():
            pass


async def test_certificates_are_checked_and_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = _certificate(tmp_path)
    with _tls_server(certificate) as port:
        url = f"https://127.0.0.1:{port}/"
        monkeypatch.delenv("PIP_CERT", raising=False)
        async with Client(retry=QUICK) as client:
            with pytest.raises(DownloadError, match="not trusted"):
                await client.get(url)
        async with Client(Network(ca_bundle=certificate)) as client:
            await client.get(url)
        monkeypatch.setenv("PIP_CERT", str(certificate))
        async with Client() as client:
            await client.get(url)
        monkeypatch.delenv("PIP_CERT")
        async with Client(Network(trusted_hosts=(f"127.0.0.1:{port}",))) as client:
            await client.get(url)


def _certificate(folder: Path) -> Path:
    """A self-signed certificate for the loopback address, with its key, in one file."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate.write_text(certificate.read_text() + key.read_text())
    return certificate


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class _TlsServer:
    def __init__(self, certificate: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server = _Forgiving(("127.0.0.1", 0), _Quiet)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> int:
        self._thread.start()
        return self._server.server_port

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Forgiving(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that refuses the certificate is what the test wants."""


def _tls_server(certificate: Path) -> _TlsServer:
    return _TlsServer(certificate)
