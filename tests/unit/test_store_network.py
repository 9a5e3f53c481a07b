"""SQLite on a network file system is refused, by the kernel's table of mounts."""

from pathlib import Path

import pytest

from cloudwhale.control.store.network import (
    NETWORKED,
    file_system,
    mount_table,
    refuse_network,
)
from cloudwhale.spi.errors import StoreUnusable

TABLE = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home rw shared:7 - nfs4 filer:/home rw,vers=4.2
31 30 0:41 / /home/ann/scratch rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/my\040share rw - cifs //filer/share rw
33 22 0:43 / /data rw - ext4 /dev/vdc rw
34 22 0:44 / /data rw - fuse.sshfs ann@host:/ rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/cloudwhale", "ext4"),
        ("/home/bob", "nfs4"),
        ("/homes", "ext4"),
        ("/home/ann/scratch/x", "xfs"),
        ("/mnt/my share/x", "cifs"),
        ("/data", "fuse.sshfs"),
    ],
)
def test_the_innermost_newest_mount_holds_a_folder(folder: str, kind: str) -> None:
    assert file_system(Path(folder), TABLE)[1] == kind


def test_a_database_on_a_network_file_system_is_refused() -> None:
    with pytest.raises(StoreUnusable, match="nfs4, mounted on /home") as fault:
        refuse_network(Path("/home/bob/cloudwhale.db"), TABLE)
    assert "CLOUDWHALE_HOME" in fault.value.remedy


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre"])
def test_every_network_file_system_that_is_known_is_refused(kind: str) -> None:
    with pytest.raises(StoreUnusable, match=kind):
        refuse_network(Path("/x/cloudwhale.db"), f"1 0 0:1 / / rw - {kind} server:/ rw")
    assert kind in NETWORKED


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "apfs"])
def test_local_file_systems_are_fine(kind: str) -> None:
    refuse_network(Path("/x/cloudwhale.db"), f"1 0 0:1 / / rw - {kind} disk rw")


def test_a_link_into_a_network_file_system_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    mounts = f"1 0 0:1 / / rw - ext4 disk rw\n2 1 0:2 / {tmp_path}/far rw - nfs filer:/ rw"
    with pytest.raises(StoreUnusable, match="nfs"):
        refuse_network(tmp_path / "near" / "cloudwhale.db", mounts)


def test_where_no_table_can_be_read_nothing_is_refused() -> None:
    refuse_network(Path("/x/cloudwhale.db"), "")


def test_this_hosts_own_table_is_understood() -> None:
    table = mount_table()
    # A chroot's table need not name its own root.
    expected = "/" if any(line.split()[4] == "/" for line in table.splitlines()) else ""
    assert file_system(Path("/"), table)[0] == expected
