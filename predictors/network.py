"""The network, certificates and addresses, as clients of all languages say it."""

from __future__ import annotations

from specbuild.failures import CertificateTrouble, DeadUrl, Failure, NetworkTrouble, RegistryTrouble, Weight
from specbuild.predictors.phrases import LED, OUTCOME
from specbuild.predictors.signature import always, signature


def _answered(status: str, evidence: str, url: str = "") -> Failure:
    if status in {"404", "410"}:
        return DeadUrl(url=url, status=status, evidence=evidence)
    host = url.partition("://")[2].partition("/")[0]
    return RegistryTrouble(status=status, host=host, evidence=evidence)


_LOCAL = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})  # noqa: S104 - names that messages hold


def _retried(host: str, evidence: str) -> Failure | None:
    return None if host in _LOCAL else NetworkTrouble(host=host, evidence=evidence)


def _npm(status: str, url: str, evidence: str) -> Failure:
    return _answered(status, evidence, url)


SIGNATURES = (
    signature(
        ("_VERIFY_FAILED] certificate verify failed",),
        r"[A-Za-z][\w.]{0,100}(?:Error|Exception): .{0,1000}?\[SSL: CERTIFICATE_VERIFY_FAILED\] certificate "
        r"verify failed: (?P<why>[a-z][a-z -]{3,80}[a-z])\b",
        CertificateTrouble,
        (
            (
                "x.SSLError: HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: / "
                "(Caused by "
                "SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed "
                "certificate (_ssl.c'"
            ),
            CertificateTrouble(why="self signed certificate"),
        ),
        near=("# [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed certificate",),
    ),
    signature(
        ("x509: certificate", "x509: cannot", "certificate verification failed", "annot verify "),
        LED + r"(?:x509: (?P<why>certificate [a-z ]{3,80})|server certificate verification failed"
        r"|cannot verify \S{1,80} certificate)",
        CertificateTrouble,
        (
            "go: a@v1: Get x: tls: failed to verify certificate: x509: certificate signed by unknown authority",
            CertificateTrouble(why="certificate signed by unknown authority"),
        ),
        (
            "fatal: unable to do so: server certificate verification failed. CAfile: none CRLfile: none",
            CertificateTrouble(),
        ),
    ),
    signature(
        (
            "UNABLE_TO_VERIFY_LEAF",
            "CERT_HAS_EXPIRED",
            "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
            "get local issuer certificate",
        ),
        LED + r"(?P<why>UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_HAS_EXPIRED|unable to get local issuer certificate)",
        CertificateTrouble,
        (
            "npm ERR! code UNABLE_TO_VERIFY_LEAF_SIGNATURE",
            CertificateTrouble(why="UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ),
    ),
    signature(
        ("certificate verify failed",),
        r"(?:[\w:]{1,80}: ){0,2}(?:SSL_connect returned=1 .{0,80}?: )?certificate verify failed"
        r" \((?P<why>[a-z][a-z -]{3,80})",
        CertificateTrouble,
        (
            (
                "OpenSSL::SSL::SSLError: SSL_connect returned=1 errno=0 state=error: certificate verify failed "
                "(unable to "
                "get local issuer certificate)"
            ),
            CertificateTrouble(why="unable to get local issuer certificate"),
        ),
    ),
    signature(
        "nable to resolve host address",
        r"wget: unable to resolve host address [‘'](?P<host>[\w.-]{1,120})[’']",
        NetworkTrouble,
        ("wget: unable to resolve host address ‘d.example’", NetworkTrouble(host="d.example")),
    ),
    signature(
        "ailed to connect to ",
        r"(?:curl: \(\d{1,2}\) |fatal: unable to access '[^']{1,200}': |[\w.]{1,60}: )?"
        r"Failed to connect to (?P<host>[\w.-]{1,120}) port \d{1,5}",
        NetworkTrouble,
        (
            "curl: (28) Failed to connect to d.example port 443 after 130000 ms: Connection timed out",
            NetworkTrouble(host="d.example"),
        ),
    ),
    signature(
        ("onnection reset by peer", "ECONNRESET", "ETIMEDOUT", "rror: socket hang up"),
        LED + r"(?:(?:\[Errno 104\] )?Connection reset by peer|(?:read |connect )?ECONNRESET|(?:connect )?ETIMEDOUT"
        r"|socket hang up)",
        always(NetworkTrouble, weight=Weight.SYMPTOM),
        ("Error: read ECONNRESET", NetworkTrouble(weight=Weight.SYMPTOM)),
        (
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            NetworkTrouble(weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "ax retries exceeded with url",
        OUTCOME + r"(?:[\w.]{1,100}: )?(?:HTTPS?ConnectionPool\(host='(?P<host>[\w.-]{1,120})', port=\d{1,5}\): )"
        r"Max retries exceeded with url",
        _retried,
        (
            (
                "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='a.example', port=443): Max retries "
                "exceeded with url: / (Caused by x)"
            ),
            NetworkTrouble(host="a.example"),
        ),
    ),
    signature(
        ("returned error: ", "ERROR 404", "ERROR 403", "ERROR 50"),
        r"(?:curl: \(22\) The requested URL returned error: |\d{4}-\d\d-\d\d [\d:]{8} ERROR )(?P<status>[45]\d\d)\b",
        _answered,
        ("curl: (22) The requested URL returned error: 404", DeadUrl(url="", status="404")),
        ("2024-01-01 10:00:00 ERROR 404: Not Found.", DeadUrl(url="", status="404")),
        ("curl: (22) The requested URL returned error: 503", RegistryTrouble(status="503")),
    ),
    signature(
        (
            " Not Found - GET",
            "Too Many Requests - GET",
            "Service Unavailable - GET",
            "Internal Server Error - GET",
            "Bad Gateway - GET",
        ),
        r"(?:code E\d{3} )?(?:\d{3} )?(?P<status>[45]\d\d) (?:Not Found|Too Many Requests|Service Unavailable|"
        r"Internal Server Error|Bad Gateway) - GET (?P<url>https?://\S{1,200})",
        _npm,
        (
            "npm ERR! 404 Not Found - GET https://r.example/nosuch - Not found",
            DeadUrl(url="https://r.example/nosuch", status="404"),
        ),
        (
            "npm error 429 Too Many Requests - GET https://r.example/a",
            RegistryTrouble(status="429", host="r.example"),
        ),
    ),
    signature(
        ("TLS handshake timeout", "i/o timeout", "deadline exceeded (Client"),
        LED + r"(?:net/http: TLS handshake timeout|i/o timeout)",
        NetworkTrouble,
        ("error: failed: net/http: TLS handshake timeout", NetworkTrouble()),
    ),
    signature(
        ("rror: RPC failed", "fatal: "),
        r"(?:error: RPC failed; |fatal: early EOF|fatal: [Tt]he remote end hung up unexpectedly|fatal: "
        r"fetch-pack: invalid index-pack)",
        NetworkTrouble,
        (
            "error: RPC failed; curl 56 GnuTLS recv error (-110): The TLS connection was non-properly terminated.",
            NetworkTrouble(),
        ),
    ),
    signature(
        "annot connect to host ",
        LED + r"Cannot connect to host (?P<host>[\w.-]{1,120}):\d{1,5} ssl:",
        _retried,
        (
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host a.example:443 ssl:default [x]",
            NetworkTrouble(host="a.example"),
        ),
        near=("ClientConnectorError: Cannot connect to host localhost:1234 ssl:default [x]",),
    ),
)
"""What clients of the network say."""
