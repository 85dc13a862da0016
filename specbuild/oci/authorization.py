"""How a registry is convinced: anonymous and personal tokens of its token service, or user name and password.

The challenges are those of RFC 9110 and RFC 6750, the token service is that of the distribution project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import anyio

from specbuild.errors import DownloadError, RateLimitedError, RegistryDeniedError, TransientError
from specbuild.http import Client
from specbuild.oci.credentials import Credentials
from specbuild.oci.places import from_json, table

_SCHEME = re.compile(r"\s*,?\s*([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)(?:\s+|$)")
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_LASTS = 60.0
"""Seconds that a token is good for when its service does not say (the protocol's own default)."""
_LONGEST = 86_400.0
"""Seconds that no token is believed to be good for beyond."""
_MARGIN = 0.2
"""Part of a token's life that is not used: requests take time, and clocks differ."""
_CLIENT = "specbuild"


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a `WWW-Authenticate` header asks for."""

    scheme: str
    """In lower case."""
    parameters: dict[str, str]


def challenges(header: str) -> Iterator[Challenge]:
    """The challenges of a header, in its order; what cannot be read ends them."""
    position = 0
    while match := _SCHEME.match(header, position):
        position = match.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(header, position):
            value = parameter[3] if parameter[2] is None else re.sub(r"\\(.)", r"\1", parameter[2])
            parameters[parameter[1].lower()] = value
            position = parameter.end()
        yield Challenge(match[1].lower(), parameters)


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    until: float
    """By the event loop's clock."""


class Authorization:
    """What is sent along to one registry: nothing until it asks, then what it asks for."""

    def __init__(self, client: Client, base: str, credentials: Credentials | None) -> None:
        self._client = client
        self._base = base
        self._credentials = credentials
        self._tokens: dict[str, _Token] = {}
        self._basic = False
        self._lock = anyio.Lock()

    @property
    def anonymous(self) -> bool:
        """Whether the user has no credentials for it."""
        return self._credentials is None

    def headers(self, scope: str) -> dict[str, str]:
        """For a request that needs `scope` (`repository:NAME:pull`)."""
        if self._basic and self._credentials:
            return {"Authorization": self._credentials.basic}
        token = self._tokens.get(scope)
        if token and token.until > anyio.current_time():
            return {"Authorization": f"Bearer {token.value}"}
        return {}

    async def meet(self, header: str, scope: str, sent: dict[str, str]) -> bool:
        """Get what a challenge asks for after `sent` did not do; whether trying again makes sense.

        Raises RegistryDeniedError, TransientError or DownloadError where the token service does not give one.
        """
        async with self._lock:
            if self.headers(scope) not in ({}, sent):  # another request has got one meanwhile
                return True
            for challenge in challenges(header):
                if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                    self._tokens[scope] = await self._fetch(challenge.parameters, scope)
                    return True
                if challenge.scheme == "basic" and self._credentials and self._credentials.password:
                    first, self._basic = not self._basic, True
                    return first
        return False

    async def _fetch(self, parameters: dict[str, str], scope: str) -> _Token:
        realm = self._service(parameters["realm"])
        secret = self._credentials
        if urlsplit(realm).scheme != "https" and urlsplit(self._base).scheme == "https":
            secret = None  # what the registry was told in secret is not for everybody on the way to the service
        fields = [("service", parameters["service"])] if "service" in parameters else []
        fields += [("scope", each) for each in scope.split(" ")]
        if secret and secret.identity_token:
            fields += [("grant_type", "refresh_token"), ("refresh_token", secret.identity_token)]
            body = urlencode([*fields, ("client_id", _CLIENT)]).encode()
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            return await self._ask("POST", realm, form, body)
        headers = {"Authorization": secret.basic} if secret else {}
        joint = "&" if urlsplit(realm).query else "?"
        return await self._ask("GET", f"{realm}{joint}{urlencode(fields)}", headers, None)

    def _service(self, realm: str) -> str:
        """The address of the token service. Raises DownloadError for what is none."""
        try:
            parts = urlsplit(realm)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise DownloadError(
                f"{urlsplit(self._base).netloc} names {realm[:200]!r} as the service that gives tokens for it, which is"
                " no address",
                hint="its owner has to set it right (`auth.token.realm` of the distribution registry)",
            )
        return realm

    async def _ask(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> _Token:
        service = urlsplit(url).netloc
        async with self._client.exchange(method, url, headers=headers, content=body) as answer:
            if answer.status in {400, 401, 403, 404}:
                who = "without credentials" if self.anonymous else "to this user"
                raise RegistryDeniedError(
                    f"{service} gives no token for that {who} (HTTP {answer.status})",
                    status=answer.status,
                    hint=login_hint(self._base),
                )
            if answer.status == 429:
                raise RateLimitedError(f"{service} gives no more tokens for now (HTTP 429)", hint="try again later")
            if answer.status != 200:
                raise TransientError(f"{service} gives no token (HTTP {answer.status} {answer.reason})")
            return _token(service, await answer.read(1 << 20))


def login_hint(base: str) -> str:
    """What to do where credentials are missing or wrong."""
    host = urlsplit(base).netloc
    return f"check the name; if it is private: `docker login {host}` or `podman login {host}`"


def _token(service: str, body: bytes) -> _Token:
    try:
        answer = table(from_json(body))
    except ValueError as error:
        raise DownloadError(f"{service} answers with something that is no token: {error}") from error
    value = answer.get("token") or answer.get("access_token")
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise DownloadError(f"{service} answers with something that is no token")
    lasts = answer.get("expires_in")
    seconds = min(lasts, _LONGEST) if isinstance(lasts, int | float) and lasts > 0 else _LASTS
    return _Token(value, anyio.current_time() + seconds * (1 - _MARGIN))
