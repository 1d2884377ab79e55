"""
Checks the language of the tree by docs/style.md and docs/glossary.md.

  python3 tests/language.py               one line per violation, exit code 1 if there is one
  python3 tests/language.py --self-test   checks that the patterns find what the documents replace

Two rules: a line of a comment or a document has at most 100 columns, and no text or name has a word
that the documents replace. Names are split at underscores and capitals, so that `keepsBeating` has
the word `beating`. Names of the interface and of other software are allowed.
"""

import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
COLUMNS = 100

# What the documents replace, by its pattern. The key is the phrase in docs/style.md or the word in
# docs/glossary.md; a word of the glossary that is right in other senses has its wrong sense here.
PATTERNS = {
    # docs/style.md
    "Was nothing done, only told?": r"\b(tell|tells|told|telling)\b",
    "Takes leave of the server": r"\btakes leave\b",
    "How many candidates are looked at, in limits.": r"\blooked at\b",
    "The message table was waited for in vain": r"\bin vain\b",
    "no limit is not to be had": r"\bto be had\b",
    "A heartbeat that beats while PHP cannot.": r"\bheartbeat that beats\b",
    "Only the newest release is mended.": r"\b(mend|mends|mended)\b",
    # docs/style.md, rules 2 and 5
    "persons": r"\b(nobody|somebody|someone|anybody|everybody|whoever|no one)(s)?\b",
    "metaphors": r"\b(bell|grave|goodbye|farewell|landing|landed)\b",
    # docs/glossary.md
    "job": r"\b(hung|agent) jobs?\b",
    "task": r"\bagent tasks?\b",
    "consumer": r"\bconsumers? executes?\b",
    "agent": r"\bagents? claims?\b",
    "cleaner": r"\bcleaners?\b",
    "holder (of a run)": r"\bholders? of (a|the) runs?\b",
    "take": r"\btakes? a queued run\b",
    "grab": r"\bgrabs?\b",
    "is over": r"\bleases? (that )?(is|was|are|were) over\b",
    "runs out": r"\bleases? (that )?(runs|ran) out\b",
    "beat": r"\b(beat|beats|beating)\b",
    "is beaten": r"\bbeaten\b",
    "keeper": r"\bkeepers?\b",
    "silent": r"\bsilent (leases?|workers?|runs?)\b",
    "resting": r"\b(resting|rests)\b",
    "fence alone": r"\b(?<!write )(fence|fences|fenced)\b",
    "dead": r"\bdead runs?\b",
    "old": r"\bold runs?\b",
    "hand on": r"\bhand(s|ed)? on\b",
    "take back": r"\b(taken|takes|take|taking|took) back\b",
    "reset": r"\bresets? (a|the) runs?\b",
    "tries": r"\bnumber of tries\b",
    "settle": r"\b(settle|settles|settled|settling|settlement|settlements)\b",
    "wake": r"\b(wake|wakes|waking|waken|woke)\b",
    "woken": r"\bwoken\b",
    "lost": r"\blost runs?\b",
    "busy": r"\bbusy rows?\b",
    "doors": r"\bdoors?\b",
    "takeover": r"\btakeovers?\b",
    "seam": r"\bseams?\b",
    "story": r"\b(story|stories)\b",
    "judge": r"\b(judge|judges|judged|judging)\b",
    "trouble": r"\btroubles?\b",
}

# Allowed everywhere: names of the interface, of modules and classes, and of the settings of TYPO3's
# extension.
NAMES = re.compile(
    r"\bbeats\(|\bnrllm_kept_lease_beats\b|`beats`|\"beats\"|\bbeats: \*mut"
    r"|\bwoken_?[uU]p\b|(?<![a-zA-Z])[wW]ake[-_]?[uU]ps?(?![a-z])|wake-stranded"
    r"|\bkeeper(?=::|/|\.rs|\.inc)|\bsrc/keeper\b|\bcrate::keeper\b|\bmod keeper\b"
    r"|\b[wW]rite_?[- ]?[fF]ences?\b"
)

# Not searched: the documents with the words themselves, what other projects or machines have
# written, and the C header, which is generated from src/ffi.
UNSEARCHED = re.compile(
    r"^(docs/(style|glossary)\.md|tests/language\.py|docs/measurements/|php-ffi/nrllm_runtime\.h)"
    r"|(^|/)(LICENSE|Cargo\.lock)$|\.(svg|snap|json|lock)$"
)

# Lines with at most 100 columns: comments, by the signs of the kind of file, and documents.
SLASHES = re.compile(r"\s*(//|/\*(?![M!])|\*( |$|/))")
HASHES = re.compile(r"\s*#(?![!\[])")
DASHES = re.compile(r"\s*--( |$)")
COMMENTS = {
    **dict.fromkeys(("rs", "c", "h", "php", "inc", "phpt"), SLASHES),
    **dict.fromkeys(("py", "sh", "toml", "yml", "yaml", "neon", ""), HASHES),
    "sql": DASHES,
    # Documents: all but tables and links.
    "md": re.compile(r"(?!\||\s*(- )?!?\[)"),
}


def words(text: str) -> str:
    """Returns a text without allowed names, and with its names split into words."""
    text = NAMES.sub(" ", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.replace("_", " "))
    return text.lower()


def violations(text: str) -> list[str]:
    """Returns the keys of PATTERNS that a line of text violates."""
    line = words(text)
    return [key for key, pattern in PATTERNS.items() if re.search(pattern, line)]


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=TOP, capture_output=True, text=True, check=True,
    )
    return [name for name in sorted(listed.stdout.split()) if not UNSEARCHED.search(name)]


def check(name: str, exceptions: dict[str, str]) -> list[str]:
    path = TOP / name
    if path.is_symlink() or not path.is_file():
        return []
    try:
        lines = path.read_text().split("\n")
    except UnicodeDecodeError:
        return []
    comment = COMMENTS.get(path.suffix.lstrip("."))
    found = []
    before = ""
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= path.suffix == ".md" and line.lstrip().startswith("```")
        is_text = comment and comment.match(line) and not in_code
        if is_text and len(line) > COLUMNS:
            found.append(f"{name}:{number}: {len(line)} columns")
        # A term of two words may be broken between two lines of a comment.
        joined = re.sub(r"^[\s/*#!-]*", "write " if before.endswith("write") else "", line)
        before = line.rstrip().lower()
        for key in violations(joined):
            if not re.search(exceptions.get(key, r"$^"), name):
                found.append(f"{name}:{number}: {key!r}: {line.strip()[:100]}")
    return found


# Words that are right in some files: where, by key.
EXCEPTIONS = {
    # A parameter of the C interface.
    "beat": r"^src/ffi/lease\.rs$",
    # The module, and the option and the check of TYPO3's package, have this name.
    "keeper": r"^(typo3/|src/|tests/keeper\.rs|bin/suites/20-rust|docs/architecture\.md|Cargo\.toml)",
    # Keys of the JSON of TYPO3's commands, and what nr_llm's own methods do.
    "settle": r"^(typo3/|src/php/interrupt\.rs)",
    "woken": r"^(typo3/|src/ops/reap/)",
    "wake": r"^(typo3/|src/ops/reap/)",
    # A method of nr_llm, in its fixture.
    "fence alone": r"^typo3/Tests/Fixtures/NrLlm/",
}


def documented() -> list[tuple[str, str]]:
    """Returns the phrases and words that the documents replace, each with its key."""
    found = []
    style = (TOP / "docs/style.md").read_text()
    found += [(phrase, phrase) for phrase in re.findall(r'^\| "([^"]+)" \|', style, re.MULTILINE)]
    glossary = (TOP / "docs/glossary.md").read_text()
    for row in re.findall(r"^\|[^|]+\|[^|]+\|([^|]*)\|$", glossary, re.MULTILINE)[2:]:
        row = re.sub(r"\((the interface|of a)[^)]*\)|, except .*", lambda m: m[0] if m[0].startswith("(of") else "", row)
        found += [(word.strip(), word.strip()) for word in row.split(",") if word.strip()]
    return found


def self_test() -> list[str]:
    failed = []
    for phrase, key in documented():
        if key not in PATTERNS:
            failed.append(f"no pattern for {phrase!r}")
        elif phrase[0].isupper() and key not in violations(phrase):
            failed.append(f"the pattern does not find {phrase!r}")
    for planted in ("fn keepsBeating()", "the lease_is_over", "$nobodyListens", "KEEPER_THREAD"):
        if not violations(planted):
            failed.append(f"not found: {planted!r}")
    for allowed in ("$lease->beats()", "woken_up: bool", "a wake-up", "the write fence", "wakeUp"):
        if violations(allowed):
            failed.append(f"found: {allowed!r}")
    return failed


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        found = self_test()
    else:
        found = [line for name in files() for line in check(name, EXCEPTIONS)]
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
