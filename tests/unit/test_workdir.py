"""Working directories: what is packed, what is not, and that the archive is always the same."""

import os
import shutil
import socket
import stat
import subprocess
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from unpacking import unpack

from cloudwhale.control.workdir import FILE_MOST_BYTES, pack
from cloudwhale.spi.errors import SpecError, StoreUnusable

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))


def packed(folder: Path, *leave_out: Path) -> list[str]:
    """Pack a folder, unpack it as an agent does, and return the files that arrived."""
    archive, there = folder.parent / "packed.tar.gz", folder.parent / "there"
    shutil.rmtree(there, ignore_errors=True)
    pack(folder, archive, leave_out)
    with tarfile.open(archive) as tar:
        unpack(tar, there)
    return sorted(
        os.path.relpath(os.path.join(root, name), there)
        for root, _, names in os.walk(there)
        for name in names
    )


def test_files_arrive_with_content_and_the_right_to_run(folder: Path) -> None:
    write(folder, "a.py", "sub/deep/b.txt", "sub/run.sh")
    (folder / "sub/run.sh").chmod(0o700)
    (folder / "empty").mkdir()
    assert packed(folder) == ["a.py", "sub/deep/b.txt", "sub/run.sh"]
    there = folder.parent / "there"
    assert (there / "sub/deep/b.txt").read_text() == "sub/deep/b.txt"
    assert stat.S_IMODE((there / "sub/run.sh").stat().st_mode) & 0o111
    assert not stat.S_IMODE((there / "a.py").stat().st_mode) & 0o111
    assert (there / "empty").is_dir()


def test_the_same_content_is_the_same_archive(folder: Path, tmp_path: Path) -> None:
    write(folder, "b", "a", "sub/c")
    first = pack(folder, tmp_path / "1")
    again = tmp_path / "elsewhere"
    again.mkdir(mode=0o700)
    write(again, "sub/c", "a", "b")
    os.utime(again / "a", (0, 0))
    (again / "b").chmod(0o600)
    assert pack(again, tmp_path / "2") == first
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert (first.files, first.size_bytes) == (3, (tmp_path / "1").stat().st_size)
    write(again, "d")
    assert pack(again, tmp_path / "2").sha256 != first.sha256


def test_the_archive_names_no_owner_and_no_time(folder: Path, tmp_path: Path) -> None:
    write(folder, "a")
    pack(folder, tmp_path / "1")
    with tarfile.open(tmp_path / "1") as tar:
        (member,) = tar.getmembers()
    assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
    assert (tmp_path / "1").read_bytes()[4:8] == bytes(4)  # the time in gzip's header


def test_gitignore_files_are_honoured_where_they_stand(folder: Path) -> None:
    write(folder, "a.py", "x.log", "keep.log", "build/o", "sub/y.log", "sub/z.tmp", "z.tmp")
    (folder / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (folder / "sub/.gitignore").write_text("*.tmp\n!y.log\n")
    assert packed(folder) == [
        ".gitignore", "a.py", "keep.log", "sub/.gitignore", "sub/y.log", "z.tmp"
    ]  # fmt: skip


def test_git_itself_is_always_left_out(folder: Path) -> None:
    write(folder, "a", ".git/config", "sub/.git/config", ".github/x")
    write(folder, "module/.git")  # a submodule's is a file
    assert packed(folder) == [".github/x", "a"]


def test_the_repository_around_has_its_say(folder: Path) -> None:
    write(folder.parent, ".git/config")
    (folder.parent / ".gitignore").write_text("*.pyc\n/work/only-here\n")
    write(folder, "a.py", "a.pyc", "only-here", "sub/only-here")
    assert packed(folder) == ["a.py", "sub/only-here"]


def test_a_folder_that_its_repository_ignores_is_sent_all_the_same(folder: Path) -> None:
    write(folder.parent, ".git/config")
    (folder.parent / ".gitignore").write_text("work/\n*.pyc\n")
    write(folder, "a.py")
    assert packed(folder) == ["a.py"]


def test_a_line_that_git_passes_over_spoils_nothing(folder: Path) -> None:
    write(folder, "a.py", "a.pyc")
    (folder / ".gitignore").write_text("!\n*.pyc\n")
    assert packed(folder) == [".gitignore", "a.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git, which is not here")
def test_what_is_packed_is_what_git_would_track(folder: Path) -> None:
    write(
        folder, "a.log", "top", "sub/top", "a/b/x.py", "a/b/y.txt", "d/e/x.py", "deep/deep/q",
        "bb", "ca", "#x", "sp ace", "täst", "data/q/keep", "data/q/r/drop", "[x", "x]", "x-y", "dd",
    )  # fmt: skip
    (folder / ".gitignore").write_text(
        "/top\n**/deep\nb?\nc[[:alpha:]]\n\\#x\na/**\n!a/b/\n!a/b/x.py\ndata/**\n!data/**/\n"
        "!data/q/keep\nsp ace   \n[[]x\nx[\\]]\nx[!a-c]y\n[\\d]d\n# d\n!\n[open\n"
    )
    (folder / "d/.gitignore").write_text("*\n!*/\n!*.py\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=folder,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
        capture_output=True,
        check=True,
    )
    assert packed(folder) == sorted(listed.stdout.decode().split("\0")[:-1])


def test_our_own_state_is_left_out(folder: Path) -> None:
    write(folder, "a", "state/cloudwhale.db", "state/mailbox/x")
    assert packed(folder, folder / "state") == ["a"]
    assert pack(folder, folder / "mine.tar.gz").files == 3  # not the archive itself


def test_links_inside_are_kept_however_they_are_written(folder: Path) -> None:
    write(folder, "sub/a")
    (folder / "relative").symlink_to("sub/a")
    (folder / "absolute").symlink_to(folder / "sub" / "a")
    (folder / "sub/up").symlink_to("../sub/../sub/a")
    (folder / "dangling").symlink_to("sub/gone")
    (folder / "loop").symlink_to("loop")
    (folder / "folder").symlink_to(folder / "sub")
    packed(folder)
    there = folder.parent / "there"
    for name in ("relative", "absolute", "sub/up", "folder/a"):
        assert (there / name).read_text() == "sub/a"
    assert os.readlink(there / "absolute") == "sub/a"
    assert os.readlink(there / "dangling") == "sub/gone"
    assert (there / "folder").is_symlink()


@pytest.mark.parametrize("target", ["/etc/hostname", "../outside", "sub/../../outside", "/"])
def test_a_link_that_leaves_the_folder_is_refused(folder: Path, target: str) -> None:
    write(folder, "sub/a")
    write(folder.parent, "outside")
    (folder / "sub" / "way-out").symlink_to(target if target[0] == "/" else f"../{target}")
    with pytest.raises(SpecError, match="way-out is a link to .*outside the working dir") as caught:
        pack(folder, folder.parent / "1")
    assert ".gitignore" in caught.value.remedy
    (folder / ".gitignore").write_text("way-out\n")
    assert "sub/way-out" not in packed(folder)


def test_sockets_and_pipes_are_left_out_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "a")
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("talk")
        found = pack(folder, folder.parent / "1")
    assert found.files == 1
    assert found.skipped == (
        "pipe is a named pipe and was left out.",
        "talk is a socket and was left out.",
    )


def test_a_file_of_more_than_two_gigabytes_is_refused(folder: Path) -> None:
    with (folder / "weights.bin").open("wb") as sparse:
        sparse.truncate(FILE_MOST_BYTES + 1)
    with pytest.raises(SpecError, match=r"weights\.bin has 2\.0 GB.*at most 2 GB") as caught:
        pack(folder, folder.parent / "1")
    assert "`mounts` or `inputs`" in caught.value.remedy


@contextmanager
def as_nobody() -> Generator[None]:
    """Give up root's right to read everything for a while; others have none to give up."""
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(NOBODY)
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_file_that_cannot_be_read_is_named() -> None:
    with TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o777)
        folder = Path(open_to_all) / "work"
        write(folder, "a")
        (folder / "a").chmod(0)
        with as_nobody(), pytest.raises(SpecError, match="a cannot be packed: Permission denied"):
            pack(folder, folder.parent / "1")


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="gone cannot be packed: No such file"):
        pack(tmp_path / "gone", tmp_path / "1")


def test_an_archive_that_cannot_be_written_is_the_stores_matter(folder: Path) -> None:
    write(folder, "a")
    with pytest.raises(StoreUnusable, match="cannot write the archive") as caught:
        pack(folder, folder.parent / "no-such-folder" / "1")
    assert "TMPDIR" in caught.value.remedy


def test_a_full_disk_is_the_stores_matter(folder: Path) -> None:
    (folder / "a").write_bytes(os.urandom(1_000_000))
    with pytest.raises(StoreUnusable, match="No space left"):
        pack(folder, Path("/dev/full"))


def test_names_of_any_bytes_arrive(folder: Path) -> None:
    odd = ["täst", "a b", "x" * 200, os.fsdecode(b"caf\xe9"), "-rf", "new\nline"]
    write(folder, *odd, f"{'d' * 120}/{'e' * 120}")
    assert set(packed(folder)) == {*odd, f"{'d' * 120}/{'e' * 120}"}
