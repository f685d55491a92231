"""Content-Disposition after RFC 6266: a name of any script, and a plain one for old clients."""

import unicodedata
from urllib.parse import quote

ATTR_CHARACTERS = "!#$&+-.^_`|~"
MAX_NAME = 200


def attachment(source_name: str) -> str:
    """The header's value for a file that is to be saved under this name. Folders of the name are left out."""
    name = "".join(c for c in source_name.replace("\\", "/").rpartition("/")[2] if c.isprintable()).strip()
    name = name[-MAX_NAME:].lstrip(".") or "document"
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = "".join(c if c.isalnum() or c in " ._-()" else "_" for c in plain).strip() or "document"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=ATTR_CHARACTERS)}"
