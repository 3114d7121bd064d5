"""The version of Loopwright. Packages, images and manifests have it from here; `scripts/release` changes it."""

VERSION = "0.1.0"
