"""The packages of an Environment as a bill of materials: CycloneDX 1.6 in JSON.

https://cyclonedx.org/docs/1.6/json/, package addresses by https://github.com/package-url/purl-spec.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any
from urllib.parse import quote

from specbuild.environment import Environment, Package
from specbuild.export.image import created_at, image_name
from specbuild.export.text import committed, without_users
from specbuild.model import digest_of
from specbuild.recipe import BaseRef

_SPACE = uuid.UUID("a7f0c5f4-6f0e-5d0a-9c57-3a1d8a4f9b5e")
"""Of the serial numbers: the same packages on the same base for the same tree have the same."""


def sbom(environment: Environment) -> str:
    """The text of the document; the same for the same Environment. Raises UsageError if nothing was committed."""
    base, recipe, _ = committed(environment)
    components = [_component(package, base) for package in environment.lock]
    root = image_name(environment)
    serial = uuid.uuid5(_SPACE, digest_of([recipe.digest, [each["bom-ref"] for each in components]]))
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": created_at(environment),
            "tools": {"components": [_tool(environment.specbuild_version)]},
            "component": _subject(environment, root),
        },
        "components": [_system(base), *components],
        "dependencies": [{"ref": root, "dependsOn": ["base", *(each["bom-ref"] for each in components)]}],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def package_url(package: Package, base: BaseRef) -> str:
    """The purl of a package."""
    version = quote(package.version, safe=":")
    if package.ecosystem == "pypi":
        return f"pkg:pypi/{re.sub(r'[-_.]+', '-', package.name).lower()}@{version}"
    name = quote(package.name.partition(":")[0])
    vendor = base.name.partition(":")[0] if base.name.startswith(("debian:", "ubuntu:")) else "debian"
    qualifiers = {"arch": package.architecture, "distro": base.release or ""}
    tail = "&".join(f"{key}={quote(value)}" for key, value in qualifiers.items() if value)
    return f"pkg:deb/{vendor}/{name}@{version}{f'?{tail}' if tail else ''}"


def _component(package: Package, base: BaseRef) -> dict[str, Any]:
    url = package_url(package, base)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": url,
        "name": package.name.partition(":")[0],
        "version": package.version,
        "purl": url,
    }
    if len(package.hashes) == 1:  # several are of files of which one was installed
        component["hashes"] = [{"alg": "SHA-256", "content": package.hashes[0].removeprefix("sha256:")}]
    if package.source:
        component["properties"] = [{"name": "specbuild:source", "value": without_users(package.source)}]
    return component


def _system(base: BaseRef) -> dict[str, Any]:
    name, _, version = base.name.partition(":")
    return {
        "type": "operating-system",
        "bom-ref": "base",
        "name": name,
        "version": base.release or version or base.digest,
        "properties": [{"name": "specbuild:base.digest", "value": base.digest}],
    }


def _subject(environment: Environment, ref: str) -> dict[str, Any]:
    name, _, version = ref.rpartition(":")
    return {
        "type": "application",
        "bom-ref": ref,
        "name": name.rpartition("/")[2],
        "version": environment.repo.revision or version,
        "properties": [
            {"name": "specbuild:environment", "value": environment.id},
            {"name": "specbuild:source.digest", "value": environment.repo.digest},
        ],
    }


def _tool(version: str) -> dict[str, Any]:
    return {"type": "application", "name": "specbuild", "version": version}
