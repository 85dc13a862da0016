"""Publishes an image to a registry, by the client of `specbuild.oci`."""

from __future__ import annotations

from specbuild.export.image import Image
from specbuild.oci.content import Descriptor
from specbuild.oci.push import Upload, push_image
from specbuild.oci.reference import parse_reference


async def push(image: Image, name: str) -> str:
    """Publish the image under `HOST/NAME:TAG`; the digest of its manifest. Raises as `push_image` does."""
    config = image.config
    uploads = [Upload(_descriptor(config.media_type, config.digest, len(config.data)), config.data)]
    uploads += [
        Upload(_descriptor(layer.media_type, layer.digest, layer.size), layer.path) for layer in image.blobs.values()
    ]
    return await push_image(parse_reference(name), image.manifest.data, image.manifest.media_type, uploads)


def _descriptor(media_type: str, digest: str, size: int) -> Descriptor:
    return Descriptor(media_type=media_type, digest=digest, size=size)
