"""A VFS that lets no remnants through to the store's file.

SQLite's `secure_delete` overwrites the cells that are deleted. Cells that were moved to another page while the tree was
balanced stay where they were, in the unused gap of the page that they left, and outlive the row: a forgotten turn would
still stand in the file. Whatever writes pages to the file does it through this VFS, which clears that gap on the way.
Log and index need no such care, since the log is emptied once it was moved.

The format of pages: https://www.sqlite.org/fileformat2.html, sections 1.5 to 1.8.
"""

import itertools
from typing import Any, Final

import apsw

_PAGE_ONE_HEADER: Final = 100

_INTERIOR: Final = frozenset({2, 5})
_LEAF: Final = frozenset({10, 13})

#: Pages of other kinds begin with a page number. In a file with fewer pages than this its first byte is 0 or 1, so that
#: none can be taken for a page of a tree: 128 GiB at 4 KiB a page. In a larger file remnants stay.
_TELLABLE_PAGES: Final = 2**25

_LEAST_PAGE_BYTES: Final = 512

#: Of one entry in a pointer map.
_POINTER_BYTES: Final = 5

_numbers: Final = itertools.count(1)


class WithoutRemnants(apsw.VFS):
    """Registered from its making to `unregister`; `base` is the VFS below, None for the system's."""

    def __init__(self, base: str | None) -> None:
        self.vfs_name = f"turnledger-{next(_numbers)}"
        self._base = base or ""
        super().__init__(self.vfs_name, self._base)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        kind = _StoreFile if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else apsw.VFSFile
        return kind(self._base, name, flags)


class _StoreFile(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:
        tellable = self.xFileSize() < _TELLABLE_PAGES * len(data)
        super().xWrite(without_remnants(data, offset) if tellable else data, offset)


def without_remnants(page: bytes, offset: int) -> bytes:
    """The page that is to be written at `offset`, its gap cleared if it is one of a tree."""
    if len(page) < _LEAST_PAGE_BYTES or offset % len(page) or _is_pointer_map(offset // len(page) + 1, len(page)):
        return page
    start = _PAGE_ONE_HEADER if offset == 0 else 0
    kind = page[start]
    if kind not in _INTERIOR and kind not in _LEAF:
        return page
    cells = int.from_bytes(page[start + 3 : start + 5])
    gap = start + (12 if kind in _INTERIOR else 8) + 2 * cells
    content = int.from_bytes(page[start + 5 : start + 7]) or 65_536
    if not gap < content <= len(page):
        return page
    return b"".join((page[:gap], bytes(content - gap), page[content:]))


def _is_pointer_map(number: int, page_bytes: int) -> bool:
    """Whether the page with this number, counted from 1, holds a part of the pointer map of incremental vacuum."""
    span = page_bytes // _POINTER_BYTES + 1
    return number >= 2 and (number - 2) % span == 0
