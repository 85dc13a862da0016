"""Images as registries and engines hold them: names, manifests, layers, and how they are fetched and published.

Follows the OCI distribution, image and runtime-independent parts of the image specification, and what Docker's
registries do beside them. Nothing here knows of bases or sandboxes but the shape of a base's source.
"""
