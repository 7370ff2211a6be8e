"""What pip asks of an archive that it downloads, its name and its version, answered from PKG-INFO: that the archive's setup.py is not run for it."""

from email import message_from_bytes
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """The folder of metadata, as PEP 517 has it; the archive lies unpacked in the working folder."""
    told = Path("PKG-INFO").read_bytes()
    release = message_from_bytes(told)
    folder = Path(metadata_directory, f"{release['Name']}-{release['Version']}.dist-info")
    folder.mkdir()
    folder.joinpath("METADATA").write_bytes(told)
    return folder.name
