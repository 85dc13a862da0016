"""Where npm, cargo, Go and Maven get packages from on this host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from specbuild.sandbox.settings_parts import Host, HostSettings, join, place, secrets_in

_NPM_LINE = re.compile(
    r"(?P<key>(@[^:=\s]+:)?registry|//[^=\s]+|strict-ssl|proxy|https-proxy|noproxy|always-auth|fetch-[a-z-]+)\s*=\s*(?P<value>.*)"
)
_NPM_SECRET = re.compile(r"(_authToken|_auth|_password)$")
_NPM_VARIABLE = re.compile(r"npm_config_(registry|strict_ssl|fetch_.+)", re.IGNORECASE)

_GO_VARIABLES = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOVCS")

_CARGO_VARIABLE = re.compile(r"CARGO_(REGISTRIES_.+|REGISTRY_(DEFAULT|TOKEN)|HTTP_(PROXY|TIMEOUT|CHECK_REVOKE)|NET_.+)")

_MAVEN_SECRET = re.compile(r"<(?:password|passphrase)>([^<]+)</")


def registries(host: Host) -> HostSettings:
    """Registry settings of npm, cargo, Go and Maven, with the credentials that they need."""
    return join([_npm(host), _cargo(host), _go(host), _maven(host)])


def _npm(host: Host) -> HostSettings:
    """The registries and their tokens from the machine's and the user's npmrc, as one file."""
    env = {name: value for name, value in host.environ.items() if value and _NPM_VARIABLE.fullmatch(name)}
    user = host.environ.get("NPM_CONFIG_USERCONFIG") or host.environ.get("npm_config_userconfig")
    found: dict[str, str] = {}
    for path in (host.at("/etc/npmrc"), host.at("/usr/local/etc/npmrc"), Path(user or host.home / ".npmrc")):
        for line in (host.read(path) or "").splitlines():
            if match := _NPM_LINE.fullmatch(line.strip()):
                found[match["key"]] = _expand(match["value"].strip(), host)
    secrets = {value for key, value in found.items() if value and _NPM_SECRET.search(key)}
    secrets |= secrets_in(*found.values(), *env.values())
    if not found:
        return HostSettings(env, secret_values=frozenset(secrets))
    bind = place(host, "npmrc", "".join(f"{key}={value}\n" for key, value in found.items()))
    return HostSettings(env | {"NPM_CONFIG_USERCONFIG": bind.target}, (bind,), frozenset(secrets))


def _expand(value: str, host: Host) -> str:
    """npm replaces `${NAME}` by the caller's variable, which a sandbox does not have."""
    return re.sub(r"\$\{(\w+)\??\}", lambda match: host.environ.get(match[1], match[0]), value)


def _cargo(host: Host) -> HostSettings:
    """Registries as variables. A replaced source has no variable, and cargo takes no second file from elsewhere."""
    home = Path(host.environ.get("CARGO_HOME") or host.home / ".cargo")
    tables: dict[str, Any] = {}
    for name in ("config", "config.toml", "credentials", "credentials.toml"):
        try:
            tables = _deep(tables, tomllib.loads(host.read(home / name) or ""))
        except tomllib.TOMLDecodeError:
            continue  # cargo refuses to start with it
    notes = ("cargo's replaced sources ([source]) are not passed on",) if "source" in tables else ()
    wanted: dict[str, Any] = {key: tables[key] for key in ("registries", "registry", "http", "net") if key in tables}
    env = dict(_variables("CARGO", wanted))
    env |= host.environ
    env = {name: value for name, value in env.items() if value and _CARGO_VARIABLE.fullmatch(name)}
    secrets = {value for name, value in env.items() if name.endswith("_TOKEN")} | secrets_in(*env.values())
    return HostSettings(env, secret_values=frozenset(secrets), notes=notes)


def _deep(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]
    return merged


def _variables(prefix: str, table: dict[str, Any]) -> list[tuple[str, str]]:
    """Cargo's names of variables: the keys joined by `_`, upper case, dashes as `_`."""
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        name = f"{prefix}_{key.upper().replace('-', '_')}"
        if isinstance(value, dict):
            found += _variables(name, value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, bool):
            found.append((name, str(value).lower()))
        elif isinstance(value, str | int):
            found.append((name, str(value)))
    return found


def _go(host: Host) -> HostSettings:
    """Go's variables, of the caller before those that `go env -w` stored."""
    stored = host.read(Path(host.environ.get("GOENV") or host.config_home() / "go/env")) or ""
    pairs = dict(line.split("=", 1) for line in stored.splitlines() if "=" in line)
    env = {name: value for name in _GO_VARIABLES if (value := host.environ.get(name) or pairs.get(name))}
    return HostSettings(env, secret_values=secrets_in(*env.values()))


def _maven(host: Host) -> HostSettings:
    text = host.read(host.home / ".m2/settings.xml")
    if text is None:
        return HostSettings()
    bind = place(host, "maven-settings.xml", text)
    secrets = frozenset(_MAVEN_SECRET.findall(text)) | secrets_in(*re.findall(r"<url>([^<]+)</url>", text))
    # Maven 3.9 and later read MAVEN_ARGS.
    return HostSettings({"MAVEN_ARGS": f"--settings {bind.target}"}, (bind,), secrets)
