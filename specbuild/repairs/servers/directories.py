"""Servers that tests start by themselves, with settings of their own: all that is missing is the programs."""

from __future__ import annotations

from specbuild.repairs.servers.contract import Server

LDAP = Server(
    name="ldap",
    title="OpenLDAP's server",
    packages=("ldap-utils", "slapd"),
    port=389,
    images=("openldap", "ldap", "slapd"),
    probability=0.9,
)
"""As python-ldap's tests do, with a folder and a port of their own."""

KDC = Server(
    name="kdc",
    title="the KDC of MIT Kerberos",
    packages=("krb5-admin-server", "krb5-kdc", "krb5-user"),
    port=88,
    images=("kdc", "kerberos", "krb5"),
    probability=0.9,
)
"""As k5test does."""

PROGRAMS = {
    "slapd": LDAP,
    "slapadd": LDAP,
    "slaptest": LDAP,
    "krb5kdc": KDC,
    "kadmind": KDC,
    "kadmin.local": KDC,
    "kdb5_util": KDC,
}
"""Programs that only who starts such a server asks for."""
