"""How the words of a command line reach a driver in YARN's cluster mode as they are.

Pure. Spark and YARN write such words into a script for bash, in which a back-quote runs what follows it, `{{` is made a `$`, and `}}` and
`<LOG_DIR>` are replaced: in a word that may be a name, or a partition's value, that a table's owner has chosen.
"""

from __future__ import annotations

import base64
import re
from typing import List, Optional, Sequence

from hivekeeper.config.sources import MASK, SECRET

# In front of words that are encoded.
CARRIED_WORDS = "carried-words"

# What no shell, and nothing of Spark's or YARN's, reads as anything but itself.
PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=-]+")


def carry(words: Sequence[str]) -> Optional[str]:
    """The words in one of letters, digits, `+`, `/` and `=`; None if they can go as they are.

    It contains no secrets, as the driver has its configuration elsewhere from, and what is encoded looks like none.
    """
    shown = [_mask(word, before) for before, word in zip(["", *words], words)]
    if all(map(PLAIN.fullmatch, shown)):
        return None
    return base64.b64encode("".join(f"{word}\0" for word in shown).encode("utf-8", "surrogateescape")).decode()


def unpack(words: List[str]) -> List[str]:
    """The words as they were given to the launcher; any others as they are, also what cannot be decoded, for the parser to refuse."""
    if words[:1] != [CARRIED_WORDS] or len(words) != 2:
        return words
    try:
        return base64.b64decode(words[1], validate=True).decode("utf-8", "surrogateescape").split("\0")[:-1]
    except ValueError:
        return words


def _mask(word: str, before: str) -> str:
    """A word without the secret of an assignment, which is in the word after `--set` or in its own."""
    option, sign, own = word.partition("=")
    assigned = word if before == "--set" else own if option == "--set" and sign else ""
    name, _, value = assigned.partition("=")
    is_secret = name.strip().startswith("spark.extra_conf.") and (SECRET.search(name) or SECRET.search(value))
    return f"{word[: -len(value)]}{MASK}" if is_secret and value else word
