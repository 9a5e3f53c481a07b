"""Whether a folder lies on a network file system, where SQLite's locks cannot be trusted."""

from pathlib import Path

from cloudwhale.spi.errors import StoreUnusable

MOUNTS = Path("/proc/self/mountinfo")

NETWORKED = frozenset(
    "9p afs beegfs ceph cifs coda davfs fuse.ceph fuse.davfs2 fuse.gcsfuse fuse.glusterfs "
    "fuse.goofys fuse.juicefs fuse.mount-s3 fuse.rclone fuse.s3fs fuse.sshfs gfs2 gpfs glusterfs "
    "lustre moosefs ncpfs nfs nfs4 ocfs2 orangefs pvfs2 smb smb2 smb3 smbfs weka wekafs".split()
)


def mount_table() -> str:
    """Return the kernel's list of mounts; empty where there is none to read (macOS)."""
    try:
        return MOUNTS.read_text()
    except OSError:
        return ""


def file_system(folder: Path, mounts: str) -> tuple[str, str]:
    """Return the mount point and the file system that a folder lies on; empty when unknown.

    `mounts` is in the format of /proc/self/mountinfo; of two mounts on one point the later hides
    the earlier.
    """
    best, found = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = _unescaped(left.split()[4])
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, found = point, right.split()[0]
    return best, found


def refuse_network(file: Path, mounts: str) -> None:
    """Raise StoreUnusable when the file's folder lies on a network file system."""
    point, kind = file_system(file.parent.resolve(), mounts)
    if kind in NETWORKED:
        raise StoreUnusable(
            f"{file} would lie on a network file system ({kind}, mounted on {point}), where two "
            "programs can both believe that they hold its lock",
            "Choose a place on a local disk, with CLOUDWHALE_HOME or `database`.",
        )


def _unescaped(text: str) -> str:
    r"""The kernel writes space, tab, newline and backslash as \040 and so on."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
