"""JSON documents with one value changed, for tests of what readers refuse."""

from __future__ import annotations

import json
from typing import Any


def changed(text: str, path: str, value: Any) -> str:
    """Return a document with the value at a path such as `buffers.0.size` replaced.

    The value `...` removes what is there.
    """
    document = json.loads(text)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = document
    for step in parents:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)
