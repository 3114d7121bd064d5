"""Fill the pages of docs/reference with what the code says now."""

from __future__ import annotations

from pathlib import Path

from docs.hooks.reference import filled


def main() -> None:
    for page in sorted(Path("docs/reference").rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)


if __name__ == "__main__":
    main()
