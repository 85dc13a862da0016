"""What the machine, its limits, the network and registries did: mostly infrastructure."""

from __future__ import annotations

from specbuild.failures import (
    CertificateTrouble,
    DeadUrl,
    DiskFull,
    Failure,
    Killed,
    NetworkTrouble,
    OutOfMemory,
    PermissionRefused,
    PrivilegeNeeded,
    RegistryTrouble,
    TimedOut,
    Weight,
)
from specbuild.predictors.phrases import LED, OUTCOME, RAISED
from specbuild.predictors.signature import always, signature


def _status(status: str, evidence: str, url: str = "") -> Failure:
    if status in {"404", "410"}:
        return DeadUrl(url=url, status=status, evidence=evidence)
    host = url.partition("://")[2].partition("/")[0]
    return RegistryTrouble(status=status, host=host, evidence=evidence)


def _refused(evidence: str, first: str = "", second: str = "", third: str = "") -> Failure:
    return PermissionRefused(path=first or second or third, evidence=evidence)


SIGNATURES = (
    signature(
        ("ould not resolve host", "ould not resolve proxy"),
        r"(?!\* )" + LED + r"Could not resolve "
        r"(?:host|proxy|hostname)(?: \(Could not resolve host)?: (?P<host>[\w.-]{1,120})",
        NetworkTrouble,
        ("curl: (6) Could not resolve host: a.example", NetworkTrouble(host="a.example")),
        near=("* Could not resolve host: a.example",),
    ),
    signature(
        ("ailure in name resolution", "ailure resolving", "Name or service not known"),
        LED + r"(?:Temporary failure in name resolution|Temporary failure resolving '(?P<host>[\w.-]{1,120})'|"
        r"\[Errno -[235]\] Name or service not known)",
        NetworkTrouble,
        ("  Temporary failure resolving 'deb.example'", NetworkTrouble(host="deb.example")),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", NetworkTrouble()),
    ),
    signature(
        "no such host",
        LED + r"(?:Get \"[^\"]{1,200}\": )?dial tcp: lookup (?P<host>[\w.-]{1,120})(?: on \S{1,60})?: no such host",
        NetworkTrouble,
        (
            'Get "https://p.example/x": dial tcp: lookup p.example on 1.1.1.1:53: no such host',
            NetworkTrouble(host="p.example"),
        ),
    ),
    signature(
        "Cannot access",
        LED + r"Cannot access \S{1,40} \(https?://(?P<host>[\w.-]{1,120})[^)]{0,100}\) in offline mode"
        r"(?: and the artifact (?P<subject>\S{1,120}))?",
        NetworkTrouble,
        (
            "Cannot access central (https://m.example/maven2) in offline mode and the artifact a:b:jar:1 has not",
            NetworkTrouble(host="m.example", subject="a:b:jar:1"),
        ),
    ),
    signature(
        "ould not reach host",
        r"Could not reach host (?P<host>[\w.-]{1,119}\w)\.",
        NetworkTrouble,
        ("Could not reach host gems.example. Check your network", NetworkTrouble(host="gems.example")),
    ),
    signature(
        "getaddrinfo ",
        LED + r"getaddrinfo (?:for |ENOTFOUND |EAI_AGAIN )(?P<host>[\w.-]{1,120})",
        NetworkTrouble,
        ("php_network_getaddresses: getaddrinfo for p.example failed: Name", NetworkTrouble(host="p.example")),
    ),
    signature(
        ("ENOTFOUND", "EAI_AGAIN"),
        LED + r"(?:getaddrinfo )?(?:ENOTFOUND|EAI_AGAIN) (?P<host>[\w.-]{1,120})",
        NetworkTrouble,
        ("npm ERR! network request failed: EAI_AGAIN r.example", NetworkTrouble(host="r.example")),
    ),
    signature(
        ("establish a new connection", "annot connect to proxy", "etwork is unreachable", "No route to host"),
        LED
        + r"(?:Failed to establish a new connection|Cannot connect to proxy|Network is unreachable|No route to host)",
        NetworkTrouble,
        ("OSError: [Errno 101] Network is unreachable", NetworkTrouble()),
    ),
    signature(
        ("rror sending request for url", "ailed to lookup address information"),
        LED
        + r"(?:error sending request for url \(https?://(?P<host>[\w.-]{1,120})|failed to lookup address information)",
        NetworkTrouble,
        (
            "error: error sending request for url (https://i.example/simple/)",
            NetworkTrouble(host="i.example"),
        ),
    ),
    signature(
        ("onnection timed out", "Read timed out", "peration timed out"),
        LED + r"(?:[Cc]onnection timed out|Read timed out|[Oo]peration timed out)",
        NetworkTrouble,
        ("urllib3.exceptions.ReadTimeoutError: pool: Read timed out.", NetworkTrouble()),
        near=("# the connection timed out test passed without errors",),
    ),
    signature(
        ("rror: HTTP error ", "HTTP Error ", "Client Error: ", "Server Error: ", "404  Not Found"),
        LED + r"(?:HTTP [Ee]rror |HTTPError: (?:HTTP Error )?)(?P<status>[45]\d\d)\b"
        r"(?:(?: (?:Client|Server) Error: [^:]{0,60} for url:| while getting) (?P<url>https?://\S{1,200}))?",
        _status,
        ("urllib.error.HTTPError: HTTP Error 404: Not Found", DeadUrl(url="", status="404")),
        (
            "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://r.example/x",
            RegistryTrouble(status="503", host="r.example"),
        ),
    ),
    signature(
        "ailed to fetch",
        r"E: Failed to fetch (?P<url>\S{1,200}) {1,4}(?P<status>\d{3}) ",
        _status,
        (
            "E: Failed to fetch http://d.example/a.deb  404  Not Found [IP: 1.2.3.4 80]",
            DeadUrl(url="http://d.example/a.deb", status="404"),
        ),
        (
            (
                "E: Failed to fetch http://d.example/a.deb  502  http://d.example/a.deb could not be fetched: "
                "ConnectError: All connection attempts failed [IP: 127.0.0.1 40001]"
            ),
            RegistryTrouble(status="502", host="d.example"),
        ),
        (
            (
                "E: Failed to fetch http://d.example/a.deb  504  http://d.example/a.deb did not answer in time "
                "(ReadTimeout) [IP: 127.0.0.1 40001]"
            ),
            RegistryTrouble(status="504", host="d.example"),
        ),
        near=("W: Failed to fetch http://d.example/dists/x/InRelease  404  Not Found [IP: 1.2.3.4 80]",),
    ),
    signature(
        "ailed to fetch",
        r"E: Failed to fetch https?://(?P<host>[\w.-]{1,120})\S{1,200} {1,4}"
        r"(?:Could not connect to|Unable to connect to|Cannot initiate the connection to|Could not resolve|"
        r"Temporary failure resolving|Connection failed|Connection timed out|Error reading from server|Read error - |"
        r"Undetermined Error|Could not wait for server fd)",
        NetworkTrouble,
        (
            (
                "E: Failed to fetch http://d.example/a.deb  Could not connect to 127.0.0.1:9 (127.0.0.1). - "
                "connect (111: Connection refused)"
            ),
            NetworkTrouble(host="d.example"),
        ),
        (
            "E: Failed to fetch http://d.example/b.deb  Unable to connect to 127.0.0.1:9:",
            NetworkTrouble(host="d.example"),
        ),
        (
            "E: Failed to fetch http://d.example/b.deb  Temporary failure resolving 'd.example'",
            NetworkTrouble(host="d.example"),
        ),
        (
            (
                "E: Failed to fetch http://d.example/b.deb  Error reading from server. Remote end closed connection "
                "[IP: 127.0.0.1 40001]"
            ),
            NetworkTrouble(host="d.example"),
        ),
    ),
    signature(
        "ailed to fetch",
        r"E: Failed to fetch https?://(?P<host>[\w.-]{1,120})\S{1,200} {1,4}"
        r"(?P<status>Hash Sum mismatch|File has unexpected size)",
        RegistryTrouble,
        (
            "E: Failed to fetch http://d.example/a.deb  Hash Sum mismatch",
            RegistryTrouble(status="Hash Sum mismatch", host="d.example"),
        ),
        (
            (
                "E: Failed to fetch http://d.example/a.deb  File has unexpected size (3 != 580). Mirror sync in "
                "progress? [IP: 127.0.0.1 40001]"
            ),
            RegistryTrouble(status="File has unexpected size", host="d.example"),
        ),
    ),
    signature(
        ("certificate verify failed", "SSL certificate problem"),
        LED + r"(?:certificate verify failed: |SSL certificate problem: )(?P<why>[a-z][a-z -]{3,80})",
        CertificateTrouble,
        (
            "fatal: unable to use 'x': SSL certificate problem: self-signed certificate in chain",
            CertificateTrouble(why="self-signed certificate in chain"),
        ),
    ),
    signature(
        ("invalid peer certificate", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_GET_ISSUER_CERT"),
        LED
        + r"(?P<why>invalid peer certificate: \w{1,40}|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT\w{0,10})",
        CertificateTrouble,
        (
            "  Caused by: invalid peer certificate: UnknownIssuer",
            CertificateTrouble(why="invalid peer certificate: UnknownIssuer"),
        ),
    ),
    signature(
        ("No space left on device", "ENOSPC"),
        r"(?:[\w+-]{1,20}: (?:error|cannot|failed) [^`\"]{0,200}?: |"
        + LED
        + r")(?:\[Errno 28\] )?(?:No space left on device|ENOSPC)"
        r"(?:: '(?P<path>[^']{1,200})')?",
        DiskFull,
        ("OSError: [Errno 28] No space left on device: '/x/y'", DiskFull(path="/x/y")),
        ("cp: error writing '/a': No space left on device", DiskFull()),
    ),
    signature(
        "uota exceeded",
        LED + r"Disk quota exceeded",
        DiskFull,
        ("tar: a/b: Cannot write: Disk quota exceeded", DiskFull()),
    ),
    signature(
        ("annot allocate memory", "virtual memory exhausted", "JavaScript heap out of memory", "rror: out of memory"),
        LED + r"(?:Cannot allocate memory|virtual memory exhausted|JavaScript heap out of memory|error: out of memory)",
        OutOfMemory,
        ("virtual memory exhausted: Cannot allocate memory", OutOfMemory()),
    ),
    signature(
        "MemoryError",
        RAISED + r"MemoryError(?:$|: )",
        OutOfMemory,
        ("MemoryError", OutOfMemory()),
    ),
    signature(
        "java.lang.OutOfMemoryError",
        LED + r"java\.lang\.OutOfMemoryError",
        always(OutOfMemory, program="java"),
        ("Exception: java.lang.OutOfMemoryError: Java heap space", OutOfMemory(program="java")),
    ),
    signature(
        "fatal error: Killed signal",
        r"(?P<program>[\w+-]{1,20}): fatal error: Killed signal terminated program",
        OutOfMemory,
        (
            "g++: fatal error: Killed signal terminated program cc1plus",
            OutOfMemory(program="g++"),
        ),
    ),
    signature(
        "Killed",
        r"(?:(?:/bin/)?(?:ba|da)?sh: (?:line )?\d{1,6}: {1,9}\d{1,9} )?Killed(?: {2,30}.{0,100})?$",
        Killed,
        ("Killed", Killed()),
        near=("Killed the monster", "Mutants Killed: 12"),
    ),
    signature(
        ("ermission denied", "not permitted: "),
        OUTCOME + r"(?:PermissionError|OSError|IOError|error): \[Errno (?:13|1)\] (?:Permission denied|Operation not "
        r"permitted): "
        r"b?'(?P<path>[^']{1,200})'",
        PermissionRefused,
        ("PermissionError: [Errno 13] Permission denied: '/x'", PermissionRefused(path="/x")),
    ),
    signature(
        "ermission denied",
        r"(?:(?:/bin/)?(?:ba|da|z)?sh: (?:(?:line )?\d{1,6}: )?)(?P<path>\S{1,200}): Permission denied$",
        PermissionRefused,
        ("sh: 1: ./configure: Permission denied", PermissionRefused(path="./configure")),
    ),
    signature(
        (
            "are you root?",
            "run as root",
            "requires root",
            "must be root",
            "need to be root",
            "as root.",
            "only root can",
            "root privileges",
            "as root!",
            "must be superuser",
            "requires superuser",
            "must be the superuser",
        ),
        LED + r"(?:are you root\?|must be run (?:as|by) root|(?:requires|needs|need|require) (?:to be )?(?:root"
        r"|superuser)(?: privileges?| access| permissions?)?(?:$|[.,;!])"
        r"|must be (?:run as )?(?:root|the superuser|superuser)\b|need to be root|[Pp]lease run (?:this |it "
        r")?(?:script )?as root\b[^ ]?$|only root can )",
        always(PrivilegeNeeded, user="root"),
        (
            "E: Could not open lock file - open (13: Permission denied), are you root?",
            PrivilegeNeeded(user="root"),
        ),
    ),
    signature(
        (
            "not be run as root",
            "as root is not ",
            "annot be run as root",
            "must not be root",
            "as root without ",
            "not run as root",
            "run configure as root",
            'root" execution of the',
            "to run as root",
            "annot run as root",
            "run mysqld as root",
            "elasticsearch as root",
        ),
        LED + r"(?:(?:can|must|should) ?not (?:be )?run (?:\w{1,20} )?as (?:the )?root|as root is not (?:permitted"
        r"|supported|allowed)|"
        r"as root without --no-sandbox|[Rr]efus(?:ing|es) to (?:be )?run as root|can ?not run \w{1,20} as root"
        r"|you should not run configure as root|how to run mysqld as root|\"root\" execution of the PostgreSQL server)",
        always(PrivilegeNeeded, user="ordinary"),
        (
            "initdb: error: cannot be run as root",
            PrivilegeNeeded(user="ordinary"),
        ),
        (
            "configure: error: you should not run configure as root (set FORCE_UNSAFE_CONFIGURE=1 in environment)",
            PrivilegeNeeded(user="ordinary"),
        ),
    ),
    signature(
        "TimeoutExpired",
        LED + r"subprocess\.TimeoutExpired: .{0,200}timed out after (?P<seconds>[\d.]{1,12}) seconds",
        always(TimedOut, weight=Weight.SYMPTOM),
        (
            "subprocess.TimeoutExpired: Command 'x' timed out after 30 seconds",
            TimedOut(seconds="30", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "ermission denied",
        r"(?:(?:\w{0,40}Error: |[\w/.-]{1,60}: ){0,2}EACCES: permission denied, \w{1,20} '(?P<first>[^']{1,200})'"
        r"|(?:panic: |[\w.]{1,40}: )?(?:open|mkdir|fork/exec|unlink|stat|chmod) (?P<second>/[^\s:]{1,200}): "
        r"permission denied$"
        r"|(?:.{0,120}: )?Permission denied @ \w{1,40} - (?P<third>\S{1,200}))",
        _refused,
        (
            "Error: EACCES: permission denied, mkdir '/home/ci/.cache'",
            PermissionRefused(path="/home/ci/.cache"),
        ),
        ("open /etc/x.key: permission denied", PermissionRefused(path="/etc/x.key")),
    ),
    signature(
        "ermission denied",
        r"(?:make(?:\[\d{1,3}\])?: |env: |/usr/bin/env: |npm ERR! |sh: |exec: "
        r")?[‘'\"]?(?P<path>[\w./+-]{2,200})[’'\"]?: Permission denied$",
        always(PermissionRefused, weight=Weight.SYMPTOM),
        (
            "make: ./autogen.sh: Permission denied",
            PermissionRefused(path="./autogen.sh", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "Terminated",
        r"g?make(?:\[\d{1,3}\])?: \*{3} \[(?:[^\]:]{1,80}:\d{1,6}: )?(?P<program>[^\]]{1,100})\] "
        r"(?P<signal>Terminated|Killed)",
        Killed,
        ("make: *** [Makefile:10: test] Terminated", Killed(program="test", signal="Terminated")),
    ),
    signature(
        "ould not lock config file",
        r"error: could not lock config file (?P<path>\S{1,200}): Permission denied",
        PermissionRefused,
        (
            "error: could not lock config file /home/ci/.gitconfig: Permission denied",
            PermissionRefused(path="/home/ci/.gitconfig"),
        ),
    ),
)
"""What is not the repository's doing, and what is of permissions."""
