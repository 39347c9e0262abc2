//! Files, directories, names, attributes, pipes.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;

use crate::region::Region;

const HERE: u64 = libc::AT_FDCWD as u64;

/// A file of 100 bytes, and its path.
fn file() -> (tempfile::NamedTempFile, u64) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[b'-'; 100]).unwrap();
    let fd = file.as_raw_fd() as u64;
    (file, fd)
}

fn pipe() -> (u64, u64) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0] as u64, ends[1] as u64)
}

#[test]
fn what_is_read_is_as_long_as_the_result() {
    let region = Region::new();
    let (mut file, _) = file();
    let fd = fs::File::open(file.path()).unwrap();
    let fd = fd.as_raw_fd() as u64;
    let to = region.room(4000);
    region.ok(libc::SYS_read, &[fd, to, 30], 30);
    region.ok(libc::SYS_read, &[fd, to, 4000], 70);
    region.ok(libc::SYS_read, &[fd, to, 4000], 0);
    region.ok(libc::SYS_pread64, &[fd, to, 4000, 60], 40);
    let array = region.put_words(&[to, 10, 0, 0, to + 50, 7, to + 1000, 500]);
    region.ok(libc::SYS_preadv, &[fd, array, 4, 20, 0], 80);
    region.ok(libc::SYS_preadv2, &[fd, array, 2, 20, 0, 0], 10);
    region.ok(libc::SYS_lseek, &[fd, 0, libc::SEEK_SET as u64], 0);
    region.ok(libc::SYS_readv, &[fd, array, 4], 100);
    // The array itself is among the buffers.
    let own = region.put_words(&[0, 40]);
    region.put_at(own, &own.to_le_bytes());
    assert_eq!(region.unknown(libc::SYS_preadv, &[fd, own, 1, 0, 0]), 40);
    file.write_all(b"-").unwrap();
}

#[test]
fn a_pipe_may_write_more_than_it_says_before_memory_ends() {
    let region = Region::new();
    let (from, into) = pipe();
    // The second text does not fit into the page of the first.
    let text = region.put(&[b'='; 4090]);
    for len in [4090, 100] {
        region.ok(libc::SYS_write, &[into, text, len], 0);
    }
    let to = region.end() - 4140;
    assert_eq!(region.unknown(libc::SYS_read, &[from, to, 4200]), 4090);
    let to = region.end() - 50;
    let refused = region.unknown(libc::SYS_read, &[from, to, 200]);
    assert_eq!(refused, -i64::from(libc::EFAULT));
    region.ok(libc::SYS_read, &[from, to, 50], 50);
    region.fails(libc::SYS_ioctl, &[from, libc::TCGETS, to], libc::ENOTTY, 0);
}

#[test]
fn descriptions_of_files() {
    let region = Region::new();
    let (file, fd) = file();
    let path = region.text(file.path().to_str().unwrap());
    let to = region.room(256);
    region.ok(libc::SYS_stat, &[path, to], 144);
    region.ok(libc::SYS_lstat, &[path, to], 144);
    region.ok(libc::SYS_fstat, &[fd, to], 144);
    region.ok(libc::SYS_newfstatat, &[HERE, path, to, 0], 144);
    region.ok(libc::SYS_statx, &[HERE, path, 0, 0xfff, to], 256);
    region.ok(libc::SYS_statfs, &[path, to], 120);
    region.ok(libc::SYS_fstatfs, &[fd, to], 120);
    region.ok(libc::SYS_access, &[path, 0], 0);
    region.ok(libc::SYS_ftruncate, &[fd, 50], 0);
    let missing = region.text("/no such file");
    region.fails(libc::SYS_stat, &[missing, to], libc::ENOENT, 0);
    region.fails(libc::SYS_statfs, &[missing, to], libc::ENOENT, 0);
    // What can be written before the end of memory.
    let edge = region.end() - 40;
    region.fails(libc::SYS_fstat, &[fd, edge], libc::EFAULT, 40);
    region.fails(libc::SYS_fstat, &[fd, region.end()], libc::EFAULT, 0);
}

#[test]
fn directories_and_names() {
    let region = Region::new();
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two", "a third one"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let to = region.room(4096);
    for number in [libc::SYS_getdents, libc::SYS_getdents64] {
        let fd = fs::File::open(folder.path()).unwrap();
        let fd = fd.as_raw_fd() as u64;
        let (small, claimed) = region.call(number, &[fd, to, 60]);
        assert!(small > 0);
        assert_eq!(claimed, Some(small as u64));
        let (count, claimed) = region.call(number, &[fd, to, 4096]);
        assert!(count > 0);
        assert_eq!(claimed, Some(count as u64));
        region.ok(number, &[fd, to, 4096], 0);
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("to nowhere", &link).unwrap();
    let link = region.text(link.to_str().unwrap());
    region.ok(libc::SYS_readlink, &[link, to, 4096], 10);
    region.ok(libc::SYS_readlinkat, &[HERE, link, to, 4], 4);
    region.fails(libc::SYS_readlink, &[link, to, 0], libc::EINVAL, 0);
    let here = std::env::current_dir().unwrap().as_os_str().len() as u64 + 1;
    region.ok(libc::SYS_getcwd, &[to, 4096], here);
    region.fails(libc::SYS_getcwd, &[to, 2], libc::ERANGE, 0);
}

#[test]
fn attributes() {
    let region = Region::new();
    let (file, fd) = file();
    let path = region.text(file.path().to_str().unwrap());
    let (name, value) = (region.text("trusted.kind"), region.text("some"));
    let to = region.room(500);
    region.ok(libc::SYS_fsetxattr, &[fd, name, value, 4, 0], 0);
    region.ok(libc::SYS_getxattr, &[path, name, to, 500], 4);
    region.ok(libc::SYS_lgetxattr, &[path, name, to, 500], 4);
    region.ok(libc::SYS_fgetxattr, &[fd, name, to, 500], 4);
    region.ok(libc::SYS_fgetxattr, &[fd, name, to, 0], 0);
    region.fails(libc::SYS_fgetxattr, &[fd, name, to, 1], libc::ERANGE, 0);
    let (count, _) = region.call(libc::SYS_flistxattr, &[fd, to, 0]);
    region.ok(libc::SYS_listxattr, &[path, to, 500], count as u64);
    region.ok(libc::SYS_llistxattr, &[path, to, 500], count as u64);
    region.ok(libc::SYS_flistxattr, &[fd, to, 500], count as u64);
}

#[test]
fn offsets_of_copies() {
    let region = Region::new();
    let (_from, fd) = file();
    let (_into, other) = file();
    let (start, zero) = (region.put_words(&[20]), region.put_words(&[0]));
    let sent = region.ok(libc::SYS_sendfile, &[other, fd, start, 30], 8);
    assert_eq!(sent, 30);
    region.fails(libc::SYS_sendfile, &[999, fd, start, 30], libc::EBADF, 8);
    region.ok(
        libc::SYS_copy_file_range,
        &[fd, start, other, zero, 10, 0],
        16,
    );
    region.ok(libc::SYS_copy_file_range, &[fd, start, other, 0, 10, 0], 8);
    let (from, into) = pipe();
    region.ok(libc::SYS_splice, &[fd, zero, into, 0, 40, 0], 8);
    let (tee_from, tee_into) = pipe();
    region.ok(libc::SYS_tee, &[from, tee_into, 40, 0], 0);
    region.ok(libc::SYS_splice, &[from, 0, other, zero, 40, 0], 8);
    let to = region.room(100);
    let array = region.put_words(&[to, 25, to + 50, 50]);
    assert_eq!(
        region.ok(libc::SYS_vmsplice, &[tee_from, array, 2, 0], 40),
        40
    );
    region.ok(libc::SYS_pipe, &[to], 8);
    region.ok(libc::SYS_pipe2, &[to, libc::O_CLOEXEC as u64], 8);
    region.fails(libc::SYS_pipe2, &[to, 12345], libc::EINVAL, 0);
}

#[test]
fn handles_and_pages_of_files() {
    let region = Region::new();
    let (file, fd) = file();
    let path = region.text(file.path().to_str().unwrap());
    let (handle, mount) = (region.put_int(0), region.room(8));
    region.put_at(handle + 4, &[0; 4]);
    let args = [HERE, path, handle, mount, 0];
    region.fails(libc::SYS_name_to_handle_at, &args, libc::EOVERFLOW, 12);
    let needed = region.int(handle) as u64;
    assert!(needed > 0);
    let (handle, mount) = (region.room(200), region.room(8));
    region.put_at(handle, &128_u32.to_le_bytes());
    let args = [HERE, path, handle, mount, 0];
    region.ok(libc::SYS_name_to_handle_at, &args, 8 + needed + 4);
    let (range, to) = (region.put_words(&[0, 100]), region.room(40));
    let (result, claimed) = region.call(451, &[fd, range, to, 0]);
    assert!(result == 0 && claimed == Some(40) || result == -i64::from(libc::ENOSYS));
}

#[test]
fn locks_and_owners_of_descriptors() {
    let region = Region::new();
    let (_file, fd) = file();
    let lock = region.put(&[0; 32]);
    for command in [libc::F_GETLK, libc::F_OFD_GETLK] {
        region.ok(libc::SYS_fcntl, &[fd, command as u64, lock], 32);
    }
    let to = region.room(16);
    region.ok(libc::SYS_fcntl, &[fd, 16, to], 8);
    region.ok(libc::SYS_fcntl, &[fd, 17, to], 8);
    region.ok(libc::SYS_fcntl, &[fd, 1035, to], 8);
    region.ok(libc::SYS_fcntl, &[fd, libc::F_GETFL as u64, to], 0);
    region.ok(libc::SYS_fcntl, &[fd, libc::F_GETFD as u64, to], 0);
    region.fails(libc::SYS_fcntl, &[fd, 7777, to], libc::EINVAL, 0);
    region.fails(libc::SYS_fcntl, &[999, 16, to], libc::EBADF, 0);
}
