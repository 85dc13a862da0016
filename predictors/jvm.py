"""Gradle, Maven, Ant and sbt: toolchains of Java, artifacts, repositories."""

from __future__ import annotations

from specbuild.failures import (
    CertificateTrouble,
    DeadUrl,
    Failure,
    MissingCommand,
    MissingToolchain,
    NetworkTrouble,
    NotInstallable,
    RegistryTrouble,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.phrases import LED, RAISED
from specbuild.predictors.signature import always, signature

_GOAL = r"(?:(?:Failed to execute goal |Non-resolvable |Unresolveable |Plugin |Caused by: ).{0,900}?: )?"
"""Maven tells in one line what it did and why that failed."""


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def _transfer(subject: str, url: str, why: str, evidence: str) -> Failure:
    """Maven's words for every reason for which a repository gave nothing."""
    lower = why.lower()
    if "pkix" in lower or "certif" in lower:
        return CertificateTrouble(why="no trusted path to the repository", evidence=evidence)
    if status := next((one for one in ("404", "410") if f" {one}" in lower), ""):
        return DeadUrl(url=url, status=status, evidence=evidence)
    if status := next((one for one in ("401", "403", "429", "500", "502", "503") if f" {one}" in lower), ""):
        return RegistryTrouble(status=status, host=_host(url), evidence=evidence)
    return NetworkTrouble(host=_host(url), subject=subject, evidence=evidence)


def _gradle_get(url: str, evidence: str, why: str = "", status: str = "") -> Failure:
    if status in {"404", "410"}:
        return DeadUrl(url=url, status=status, evidence=evidence)
    if status:
        return RegistryTrouble(status=status, host=_host(url), evidence=evidence)
    del why
    return NetworkTrouble(host=_host(url), evidence=evidence)


def _artifact(requirement: str, evidence: str) -> Failure:
    return UnsatisfiableResolution(tool="maven", requirement=requirement, evidence=evidence)


def _enforced(tool: str, found: str, required: str, evidence: str) -> Failure:
    name = "java" if tool == "JDK" else "maven"
    return VersionOutOfRange(tool=name, required=required, found=found, evidence=evidence)


def _unknown_host(host: str, evidence: str) -> Failure:
    return NetworkTrouble(host=host, evidence=evidence)


SIGNATURES = (
    signature(
        ("annot find a Java installation", "No matching toolchains found", "o compatible toolchains found"),
        r"(?:Cannot find a Java installation on your machine|No (?:matching|compatible) toolchains? found)"
        r".{0,160}?\{languageVersion=(?P<required>\d{1,3})",
        always(VersionOutOfRange, tool="java", because="toolchain"),
        (
            "> Cannot find a Java installation on your machine (Linux) matching: {languageVersion=21, vendor=any}.",
            VersionOutOfRange(tool="java", required="21", because="toolchain"),
        ),
        (
            "   > No matching toolchains found for requested specification: {languageVersion=16, vendor=any}.",
            VersionOutOfRange(tool="java", required="16", because="toolchain"),
        ),
    ),
    signature(
        "not provide the required capabilities",
        r"Toolchain installation '[^']{1,200}' does not provide the required capabilities",
        always(MissingToolchain, language="java", program="javac"),
        (
            "> Toolchain installation '/usr/lib/jvm/j' does not provide the required capabilities: [JAVA_COMPILER]",
            MissingToolchain(language="java", program="javac"),
        ),
    ),
    signature(
        ("requires JVM ", "requires at least JVM ", "requires Java "),
        r"(?P<because>Gradle|Dependency|This build|\S{1,80}) requires (?:at least )?(?:JVM|Java)"
        r"(?: runtime version)? (?P<required>\d[\d.]{0,7})(?: or (?:later|newer|higher))?"
        r"(?: to run)?\.(?:.{0,60}? (?:configured to use|uses a|running on|using) (?:JVM|Java) "
        r"(?P<found>[\d.]{0,8}\d))?",
        always(VersionOutOfRange, tool="java"),
        (
            "> Gradle requires JVM 17 or later to run. Your build is currently configured to use JVM 11.",
            VersionOutOfRange(tool="java", required="17", found="11", because="Gradle"),
        ),
        (
            "> Dependency requires at least JVM runtime version 17. This build uses a Java 11 JVM.",
            VersionOutOfRange(tool="java", required="17", found="11", because="Dependency"),
        ),
    ),
    signature(
        "ould not transfer artifact ",
        _GOAL + r"Could not transfer artifact (?P<subject>\S{1,120}) from/to \S{1,40} "
        r"\((?P<url>https?://[^\s)]{1,160})\): (?P<why>.{1,300})",
        _transfer,
        (
            (
                "[ERROR] Could not transfer artifact a:b:pom:1 from/to central (https://m.example/maven2): m.example: "
                "Name or service not known"
            ),
            NetworkTrouble(host="m.example", subject="a:b:pom:1"),
        ),
        (
            (
                "[ERROR] Could not transfer artifact a:b:pom:1 from/to central (https://m.example/maven2): status "
                "code: 503"
            ),
            RegistryTrouble(status="503", host="m.example"),
        ),
    ),
    signature(
        ("ould not find artifact ", "ailure to find "),
        _GOAL + r"(?:Could not find artifact|Failure to find) (?P<requirement>[\w.:${}-]{3,120})(?: in|$)",
        _artifact,
        (
            "[ERROR]     Non-resolvable parent POM for a:d:1: Could not find artifact a:parent:pom:1 in central",
            UnsatisfiableResolution(tool="maven", requirement="a:parent:pom:1"),
        ),
    ),
    signature(
        "ould not find ",
        r"Could not find (?P<requirement>[\w.-]{1,80}:[\w.-]{1,80}(?::[\w.+-]{1,40})?)\.$",
        always(UnsatisfiableResolution, tool="gradle"),
        ("   > Could not find a.example:b:1.2.", UnsatisfiableResolution(tool="gradle", requirement="a.example:b:1.2")),
        near=("Could not find the answer.",),
    ),
    signature(
        ("ould not GET '", "ould not HEAD '"),
        r"Could not (?:GET|HEAD) '(?P<url>[^'\s]{1,200})'\."
        r"(?: Received status code (?P<status>\d{3}) from server)?",
        _gradle_get,
        (
            "      > Could not GET 'https://m.example/a.pom'. Received status code 503 from server: x",
            RegistryTrouble(status="503", host="m.example"),
        ),
        ("> Could not HEAD 'https://m.example/a.pom'.", NetworkTrouble(host="m.example")),
    ),
    signature(
        "UnknownHostException: ",
        r"(?:Exception in thread \"[^\"]{1,60}\" |Caused by: )?(?:java\.net\.)?UnknownHostException: "
        r"(?P<host>[\w.-]{1,120})",
        _unknown_host,
        (
            'Exception in thread "main" java.net.UnknownHostException: services.example',
            NetworkTrouble(host="services.example"),
        ),
    ),
    signature(
        "PKIX path ",
        LED + r"PKIX path (?:building|validation) failed",
        always(CertificateTrouble, why="no trusted path to the certificate"),
        (
            "javax.net.ssl.SSLHandshakeException: PKIX path building failed: x",
            CertificateTrouble(why="no trusted path to the certificate"),
        ),
    ),
    signature(
        "was not found in any of the following sources",
        r"(?:\* )?Plugin \[id: '(?P<requirement>[\w.-]{1,100})'.{0,80}\] was not found in any of the following sources",
        always(UnsatisfiableResolution, tool="gradle"),
        (
            "Plugin [id: 'a.example.b', version: '1.0'] was not found in any of the following sources:",
            UnsatisfiableResolution(tool="gradle", requirement="a.example.b"),
        ),
    ),
    signature(
        "tools.jar",
        r"(?:Unable to locate|Could not find) \S{0,100}tools\.jar",
        always(MissingToolchain, language="java", program="javac"),
        (
            "Unable to locate tools.jar. Expected to find it in /usr/lib/jvm/x/lib/tools.jar",
            MissingToolchain(language="java", program="javac"),
        ),
    ),
    signature(
        ("nable to find a javac compiler", "ould not find tools", "o Java compiler available", "Java compiler found"),
        LED + r"(?:Unable to find a javac compiler|No Java compiler (?:available|found))",
        always(MissingToolchain, language="java", program="javac"),
        ("BUILD FAILED x: Unable to find a javac compiler;", MissingToolchain(language="java", program="javac")),
    ),
    signature(
        "there is no POM in this directory",
        r"The goal you specified requires a project to execute but there is no POM in this directory",
        always(NotInstallable, tool="maven", problem="no-manifest"),
        (
            "[ERROR] The goal you specified requires a project to execute but there is no POM in this directory (/w).",
            NotInstallable(tool="maven", problem="no-manifest"),
        ),
    ),
    signature(
        ("ANDROID_HOME", "SDK location not found"),
        r"(?:\* )?(?:What went wrong: )?SDK location not found\. Define",
        always(MissingCommand, command="sdkmanager"),
        (
            "> SDK location not found. Define a valid SDK location with an ANDROID_HOME environment variable",
            MissingCommand(command="sdkmanager"),
        ),
    ),
    signature(
        "Unsupported Java. ",
        r"Unsupported Java\. ?$",
        always(VersionOutOfRange, tool="java", because="gradle", weight=Weight.CAUSE),
        ("Unsupported Java. ", VersionOutOfRange(tool="java", because="gradle")),
    ),
    signature(
        'not "opens ',
        RAISED + r"(?:Unable to make .{1,200} accessible: )?module (?P<because>[\w.]{1,60}) does not \"opens ",
        always(VersionOutOfRange, tool="java", required="<17"),
        (
            (
                "java.lang.reflect.InaccessibleObjectException: Unable to make field a accessible: module java.base "
                "does not "
                '"opens java.lang" to unnamed module @3059cbc'
            ),
            VersionOutOfRange(tool="java", required="<17", because="java.base"),
        ),
    ),
    signature(
        ("NoClassDefFoundError: ", "ClassNotFoundException: "),
        r"(?:\([\w/ ]{1,40}\) |\[error\] |Caused by: |Exception in thread \"[^\"]{1,40}\" "
        r"){0,2}(?:java\.lang\.)?(?:NoClassDefFoundError|ClassNotFoundException): "
        r"(?P<because>javax[./](?:xml[./]bind|annotation|activation|jws|xml[./]ws)[\w./]{0,80})",
        always(VersionOutOfRange, tool="java", required="<11"),
        (
            "Caused by: java.lang.ClassNotFoundException: javax.xml.bind.DatatypeConverter",
            VersionOutOfRange(tool="java", required="<11", because="javax.xml.bind.DatatypeConverter"),
        ),
        near=("Caused by: java.lang.ClassNotFoundException: com.acme.Own",),
    ),
    signature(
        "is not in the allowed range",
        r"Detected (?P<tool>JDK|Maven) [Vv]ersion:? (?P<found>[\d._]{1,20})(?: \([^)]{1,120}\))? is not in the "
        r"allowed range (?P<required>\S{1,29}[\d\])])",
        _enforced,
        (
            "[ERROR] Detected JDK version 11.0.20 (JAVA_HOME=/usr/lib/jvm/java-11) is not in the allowed range [17,).",
            VersionOutOfRange(tool="java", required="[17,)", found="11.0.20"),
        ),
    ),
    signature(
        ("Minimum supported Gradle version", "requires Gradle "),
        r"(?:Minimum supported Gradle version is |[\w ]{1,60} requires Gradle (?:version "
        r")?)(?P<required>[\d.]{1,8}\d)(?:[^.]{0,40}|)\.(?: Current version is (?P<found>[\d.]{1,8}\d))?",
        always(VersionOutOfRange, tool="gradle"),
        (
            "Minimum supported Gradle version is 8.0. Current version is 7.4.",
            VersionOutOfRange(tool="gradle", required="8.0", found="7.4"),
        ),
    ),
    signature(
        "plugin requires Java ",
        r"(?P<because>[\w ]{1,60}) requires Java (?P<required>\d[\d.]{0,6}) to run\. You are currently using "
        r"Java (?P<found>[\d.]{1,8}\d)",
        always(VersionOutOfRange, tool="java"),
        (
            "   > Android Gradle plugin requires Java 17 to run. You are currently using Java 11.",
            VersionOutOfRange(tool="java", required="17", found="11", because="Android Gradle plugin"),
        ),
    ),
)
"""What the build tools of Java say."""
