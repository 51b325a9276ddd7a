"""In which file systems a lake may lie, by texts of the kernel's that no mount is needed for."""

from pathlib import Path, PurePosixPath

import pytest

from jobs.locking import file_system
from jobs.locking.file_system import Mount, check_file_system, find_mount, refuse_shared
from jobs.locking.holder import find_this_holder
from jobs.locking.lock_file import find_writer, held_here, probe
from tests.support.hourly_trips import SPEC
from windowing.errors import UsageError
from windowing.spec.load import load_pipeline

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
30 22 0:40 / /data rw,noatime shared:9 master:3 - nfs4 nas:/export rw,vers=4.2
31 30 8:16 /local /data/here rw - xfs /dev/sdb rw
32 22 0:41 / /my\040lake rw - cifs //nas/lake rw
33 22 0:42 / /old/inner rw - nfs nas:/old rw
34 22 0:43 / /old rw - tmpfs tmpfs rw
35 22 0:44 / /twice rw - ext4 /dev/sdc rw
36 35 0:45 / /twice rw - ceph mon:/ rw
a line of another form
"""
SHARED = (
    *("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "glusterfs", "ocfs2"),
    *("fuse", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.juicefs"),
)
LOCAL = (
    *("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "ext3", "bcachefs", "ramfs"),
    *("fuseblk", "fuse.fuse-overlayfs", "apfs", "a type of tomorrow"),
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/lake", "ext4"),
        ("/data", "nfs4"),
        ("/data/lake/trips", "nfs4"),
        ("/database/lake", "ext4"),
        ("/data/here/lake", "xfs"),
        ("/my lake/trips", "cifs"),
        ("/old/inner/lake", "tmpfs"),
        ("/twice/lake", "ceph"),
    ],
)
def test_a_path_lies_in_the_mount_that_the_kernel_comes_to(path: str, kind: str) -> None:
    found = find_mount(MOUNTS, PurePosixPath(path))
    assert found is not None
    assert found.type == kind


def test_the_order_of_lines_does_not_matter_where_mounts_are_nested() -> None:
    turned = "\n".join(reversed(MOUNTS.splitlines()))
    for path in ("/data/here/lake", "/data/lake", "/twice/lake", "/old/inner/lake"):
        place = PurePosixPath(path)
        assert find_mount(turned, place) == find_mount(MOUNTS, place)


def test_a_root_may_have_a_parent_that_is_not_shown_or_is_itself() -> None:
    for parent in (1, 22):
        root = Mount(22, parent, PurePosixPath("/"), "ext4")
        text = f"22 {parent} 8:1 / / rw - ext4 /dev/sda1 rw\n"
        assert find_mount(text, PurePosixPath("/x")) == root
    assert find_mount("", PurePosixPath("/x")) is None


@pytest.mark.parametrize("kind", SHARED)
def test_a_shared_file_system_is_refused_unless_it_is_named(kind: str) -> None:
    mount = Mount(2, 1, PurePosixPath("/data"), kind)
    with pytest.raises(UsageError) as met:
        refuse_shared(Path("/data/lake/trips"), mount, "ext4, nfs3")
    assert str(met.value) == (
        f"/data/lake/trips lies in a file system of type {kind}, mounted at /data, where locks and "
        "renames do not keep two machines apart; use a local disk, S3 or HDFS, or set "
        f"TIDEMARK_ALLOW_FILE_SYSTEMS={kind} if one machine alone ever writes there"
    )
    refuse_shared(Path("/data/lake/trips"), mount, f"zfs, {kind}")


@pytest.mark.parametrize("kind", LOCAL)
def test_a_local_file_system_is_as_it_was(kind: str) -> None:
    refuse_shared(Path("/data/lake"), Mount(2, 1, PurePosixPath("/data"), kind), "")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that the kernel is said to have mounted from another machine."""
    place = tmp_path / "nas"
    place.mkdir()
    said = tmp_path / "mountinfo"
    said.write_text(f"22 1 8:1 / / rw - ext4 d rw\n30 22 0:40 / {place} rw - nfs4 nas:/ rw\n")
    monkeypatch.setattr(file_system, "_MOUNTS", said)
    monkeypatch.delenv(file_system.VARIABLE, raising=False)
    return place


def test_a_link_is_where_it_leads_to(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(shared)
    with pytest.raises(UsageError, match="of type nfs4"):
        check_file_system(tmp_path / "link" / "not there yet")
    check_file_system(tmp_path / "other")


def test_without_a_text_of_mounts_every_disk_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_system, "_MOUNTS", tmp_path / "none")
    check_file_system(tmp_path)


def test_no_command_takes_the_lock_there_and_nothing_is_written(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "trips.yaml").write_text(SPEC)
    pipeline = load_pipeline(str(shared / "trips.yaml"))
    with pytest.raises(UsageError, match="of type nfs4"):
        probe(pipeline)
    with pytest.raises(UsageError, match="of type nfs4"), held_here(pipeline):
        pass
    assert [file.name for file in shared.iterdir()] == ["trips.yaml"]
    monkeypatch.setenv(file_system.VARIABLE, "nfs4")
    probe(pipeline)
    pipeline.root.local.mkdir(parents=True)
    with held_here(pipeline):
        assert pipeline.table("_lock").local.exists()


def test_who_writes_there_is_told_without_the_setting(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "trips.yaml").write_text(SPEC)
    pipeline = load_pipeline(str(shared / "trips.yaml"))
    assert find_writer(pipeline) is None
    pipeline.root.local.mkdir(parents=True)
    monkeypatch.setenv(file_system.VARIABLE, "nfs4")
    with held_here(pipeline):
        monkeypatch.delenv(file_system.VARIABLE)
        assert find_writer(pipeline) == find_this_holder()
    assert find_writer(pipeline) is None
