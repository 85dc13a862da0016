"""What Steps are given of the host: what was meant to, and nothing else."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from specbuild.sandbox.apt_settings import parse_dump
from specbuild.sandbox.passthrough import HostSettings, base_environment, host_settings
from specbuild.sandbox.settings_parts import SETTINGS_DIR, secrets_in

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
OTHER = "-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----"


class Machine:
    """A host in a folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.home = folder / "home"
        self.made = folder / "made"
        self.root.mkdir()
        self.home.mkdir()

    def write(self, path: str, text: str) -> Path:
        """A file of that machine; `~/` is the home."""
        target = self.home / path[2:] if path.startswith("~/") else self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def settings(self, environ: Mapping[str, str] | None = None) -> HostSettings:
        return host_settings(self.made, environ=environ or {}, home=self.home, root=self.root)


def shown(settings: HostSettings, name: str) -> str:
    """The content of a file that sandboxes are shown."""
    (bind,) = [bind for bind in settings.binds if bind.target == f"{SETTINGS_DIR}/{name}"]
    return bind.source.read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_plain_host_passes_nothing_on(machine: Machine) -> None:
    found = machine.settings({"PATH": "/bin", "HOME": "/home/ann", "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "y"})
    assert found == HostSettings()


def test_the_minimal_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    env = base_environment()
    assert (env["HOME"], env["LANG"]) == ("/root", "C.UTF-8")
    assert "PYTHONPATH" not in env


def test_proxies_are_passed_on_under_both_spellings(machine: Machine) -> None:
    found = machine.settings({"HTTPS_PROXY": "http://ann:p%40ss@proxy.test:3128", "no_proxy": "localhost"})
    assert found.env["https_proxy"] == found.env["HTTPS_PROXY"] == "http://ann:p%40ss@proxy.test:3128"
    assert found.env["NO_PROXY"] == "localhost"
    assert {"p%40ss", "p@ss"} <= found.secret_values
    assert found.redact("via http://ann:p%40ss@proxy.test") == "via http://ann:***@proxy.test"


def test_certificates_that_the_caller_names_are_shown_as_one_bundle(machine: Machine) -> None:
    one = machine.write("/etc/one.pem", f"{CERTIFICATE}\n")
    machine.write("/etc/two.pem", f"{CERTIFICATE}\n{OTHER}\n")
    found = machine.settings({"SSL_CERT_FILE": "/etc/one.pem", "PIP_CERT": "/etc/two.pem"})
    assert one.is_file()
    assert shown(found, "ca.crt").count("BEGIN CERTIFICATE") == 2
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"):
        assert found.env[name] == f"{SETTINGS_DIR}/ca.crt"


def test_certificates_of_an_administrator_bring_the_whole_bundle(machine: Machine) -> None:
    machine.write("/etc/ssl/certs/ca-certificates.crt", f"{CERTIFICATE}\n{OTHER}\n")
    assert "SSL_CERT_FILE" not in machine.settings().env
    machine.write("/usr/local/share/ca-certificates/corp.crt", OTHER)
    assert shown(machine.settings(), "ca.crt").count("BEGIN CERTIFICATE") == 2


def test_certificates_that_pips_configuration_names_count(machine: Machine) -> None:
    machine.write("/etc/corp.pem", OTHER)
    machine.write("/etc/pip.conf", "[global]\ncert = /etc/corp.pem\n")
    assert OTHER in shown(machine.settings(), "ca.crt")


def test_a_bundle_that_is_not_there_is_told(machine: Machine) -> None:
    found = machine.settings({"SSL_CERT_FILE": "/etc/none.pem"})
    assert found.env == {}
    assert "/etc/none.pem" in found.notes[0]


def test_pips_settings_are_merged_and_uv_asks_the_same_servers(machine: Machine) -> None:
    machine.write("/etc/pip.conf", "[global]\nindex-url = https://machine.test/simple\ntimeout = 7\nno-color = true\n")
    machine.write("~/.config/pip/pip.conf", "[install]\nextra_index_url =\n  https://a.test/s\n  https://b.test/s\n")
    found = machine.settings({"PIP_INDEX_URL": "https://bob:tok@mine.test/simple"})
    assert found.env["PIP_INDEX_URL"] == found.env["UV_DEFAULT_INDEX"] == "https://bob:tok@mine.test/simple"
    assert found.env["PIP_EXTRA_INDEX_URL"] == found.env["UV_INDEX"] == "https://a.test/s https://b.test/s"
    assert found.env["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert found.env["UV_HTTP_TIMEOUT"] == "7"
    assert "PIP_NO_COLOR" not in found.env
    assert "tok" in found.secret_values


def test_the_configuration_of_pip_can_be_switched_off(machine: Machine) -> None:
    machine.write("/etc/pip.conf", "[global]\nindex-url = https://machine.test/simple\n")
    assert machine.settings({"PIP_CONFIG_FILE": os.devnull}).env == {}


def test_uvs_own_settings_go_before_pips(machine: Machine) -> None:
    machine.write("/etc/pip.conf", "[global]\nindex-url = https://pip.test/simple\n")
    machine.write(
        "~/.config/uv/uv.toml",
        'allow-insecure-host = ["a.test", "b.test"]\nnative-tls = true\n'
        '[[index]]\nname = "corp"\nurl = "https://corp.test/simple"\n'
        '[[index]]\nurl = "https://d.test"\ndefault = true\n',
    )
    found = machine.settings({"UV_INDEX_CORP_USERNAME": "ann", "UV_INDEX_CORP_PASSWORD": "pw", "UV_CACHE_DIR": "/x"})
    assert found.env["UV_INDEX"] == "corp=https://corp.test/simple"
    assert found.env["UV_DEFAULT_INDEX"] == "https://d.test"
    assert found.env["UV_INSECURE_HOST"] == "a.test b.test"
    assert found.env["UV_NATIVE_TLS"] == "true"
    assert found.env["UV_INDEX_CORP_PASSWORD"] == "pw"
    assert "UV_CACHE_DIR" not in found.env
    assert "pw" in found.secret_values


def test_a_folder_of_packages_is_shown_and_a_missing_one_left_out(machine: Machine) -> None:
    (machine.root / "srv/wheels").mkdir(parents=True)
    found = machine.settings({"PIP_FIND_LINKS": "/srv/wheels /srv/none https://links.test/"})
    target = f"{SETTINGS_DIR}/packages-0"
    assert found.env["PIP_FIND_LINKS"] == f"{target} https://links.test/"
    assert found.env["UV_FIND_LINKS"] == f"{target},https://links.test/"
    assert [bind.target for bind in found.binds if not bind.writable] == [target]
    assert "/srv/none" in found.notes[0]


def test_an_index_in_a_folder_is_named_as_it_is_seen_inside(machine: Machine) -> None:
    (machine.root / "srv/simple").mkdir(parents=True)
    found = machine.settings({"UV_INDEX": "corp=file:///srv/simple"})
    assert found.env["UV_INDEX"] == f"corp=file://{SETTINGS_DIR}/packages-0"


def test_of_a_netrc_only_the_indexes_entries_are_shown(machine: Machine) -> None:
    text = "machine mine.test login ann password s3cret\nmachine bank.test login ann password other\n"
    machine.write("~/.netrc", text).chmod(0o600)
    found = machine.settings({"PIP_INDEX_URL": "https://mine.test/simple"})
    assert "bank.test" not in shown(found, "netrc")
    assert "s3cret" in shown(found, "netrc")
    assert found.secret_values == {"s3cret"}


def test_npm_gets_registries_and_tokens_but_no_other_setting(machine: Machine) -> None:
    machine.write(
        "~/.npmrc",
        "registry=https://npm.test/\n@corp:registry=https://corp.test/\n//corp.test/:_authToken=${NPM_TOKEN}\n"
        "prefix=/home/ann/npm\n; comment\n",
    )
    found = machine.settings({"NPM_TOKEN": "t0ken"})
    text = shown(found, "npmrc")
    assert "//corp.test/:_authToken=t0ken\n" in text
    assert "prefix" not in text
    assert found.env == {"NPM_CONFIG_USERCONFIG": f"{SETTINGS_DIR}/npmrc"}
    assert "t0ken" in found.secret_values


def test_cargo_go_and_maven_keep_their_registries(machine: Machine) -> None:
    machine.write(
        "~/.cargo/config.toml", '[registries.my-corp]\nindex = "sparse+https://c.test/"\n[source.x]\na = "b"\n'
    )
    machine.write("~/.cargo/credentials.toml", '[registries.my-corp]\ntoken = "ct"\n')
    machine.write("~/.config/go/env", "GOPROXY=https://go.test\nGOFLAGS=-mod=mod\n")
    machine.write("~/.m2/settings.xml", "<settings><password>mp</password></settings>")
    found = machine.settings({"GOSUMDB": "off"})
    assert found.env["CARGO_REGISTRIES_MY_CORP_INDEX"] == "sparse+https://c.test/"
    assert found.env["CARGO_REGISTRIES_MY_CORP_TOKEN"] == "ct"
    assert (found.env["GOPROXY"], found.env["GOSUMDB"]) == ("https://go.test", "off")
    assert "GOFLAGS" not in found.env
    assert found.env["MAVEN_ARGS"].endswith("maven-settings.xml")
    assert found.secret_values == {"ct", "mp"}
    assert any("replaced sources" in note for note in found.notes)


def test_of_apts_options_those_for_reaching_a_mirror_are_kept() -> None:
    dumped = (
        'Acquire "";\nAcquire::http::Proxy "http://p.test:3142";\nAcquire::Retries "3";\n'
        'Acquire::AllowInsecureRepositories "1";\nAPT::Install-Recommends "false";\nDPkg::Post-Invoke:: "rm -rf /";\n'
    )
    assert parse_dump(dumped) == (("Acquire::http::Proxy", "http://p.test:3142"), ("Acquire::Retries", "3"))


def test_apts_proxy_and_credentials_are_shown(machine: Machine) -> None:
    machine.write("/etc/apt/apt.conf.d/01proxy", 'Acquire::http::Proxy "http://p.test:3142";\n')
    machine.write("/etc/apt/auth.conf.d/corp.conf", "machine deb.test login ann password aptpw\n")
    found = machine.settings({"PATH": os.environ["PATH"]})
    text = shown(found, "apt.conf")
    assert 'Acquire::http::Proxy "http://p.test:3142";' in text
    assert f'Dir::Etc::netrc "{SETTINGS_DIR}/apt-auth.conf";' in text
    assert found.env["APT_CONFIG"] == f"{SETTINGS_DIR}/apt.conf"
    assert "aptpw" in found.secret_values


def test_generated_files_cannot_be_found_by_others_and_can_be_read_inside(machine: Machine) -> None:
    machine.write("~/.npmrc", "//corp.test/:_authToken=t0ken\n")
    (bind,) = machine.settings().binds
    assert stat.S_IMODE(bind.source.stat().st_mode) == 0o644
    assert stat.S_IMODE(machine.made.stat().st_mode) == 0o711
    assert len(bind.source.parent.name) == 64


def test_files_that_no_build_asks_for_any_more_are_removed(machine: Machine) -> None:
    machine.write("~/.npmrc", "registry=https://one.test/\n")
    (old,) = machine.settings().binds
    long_ago = time.time() - 30 * 86_400
    os.utime(old.source.parent, (long_ago, long_ago))
    machine.write("~/.npmrc", "registry=https://two.test/\n")
    (new,) = machine.settings().binds
    assert not old.source.exists()
    assert new.source.exists()


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("https://mine.test/simple", set[str]()),
        ("https://token@mine.test/simple", {"token"}),
        ("https://ann:pw@mine.test", {"pw"}),
        ("corp=https://ann:pw@mine.test", {"pw"}),
        ("https://ann:pw@a.test https://bob:pw2@b.test", {"pw", "pw2"}),
        ("http://[broken", set[str]()),
    ],
)
def test_credentials_are_found_in_addresses(address: str, secrets: set[str]) -> None:
    assert secrets_in(address) == secrets


def test_this_hosts_settings_name_no_path_that_a_sandbox_does_not_have(tmp_path: Path) -> None:
    found = host_settings(tmp_path)
    targets = {bind.target for bind in found.binds}
    paths = [value for value in found.env.values() if value.startswith("/") and not urlsplit(value).scheme]
    assert all(part in targets for path in paths for part in path.replace(",", " ").split())
    assert all(bind.source.exists() for bind in found.binds)
