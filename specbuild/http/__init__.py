"""HTTP as the user has set it up: proxies, certificates, credentials; with retries, limits and checked downloads.

The only package that imports httpx.
"""

from specbuild.http.answers import Answer, Download, Response
from specbuild.http.client import HASHES, Client
from specbuild.http.network import CA_VARIABLES, CONNECT_WITHIN, SILENT_FOR, Network

__all__ = [
    "CA_VARIABLES",
    "CONNECT_WITHIN",
    "HASHES",
    "SILENT_FOR",
    "Answer",
    "Client",
    "Download",
    "Network",
    "Response",
]
