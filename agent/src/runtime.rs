//! The compiled runtime library: where a target can load it from, and what it exports.

use std::{
    fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{Error, Result, wheel};

/// The library that is loaded into targets with a dynamic linker.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.so"));

/// The library for targets without one: it needs no other library, and finds a thread's data by the bases of fs and gs.
pub const SELF_CONTAINED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/self_contained.so"));

/// Version of `struct hs_exports` in agent/runtime/runtime.h.
pub const EXPORTS_VERSION: u64 = 2;

/// `HS_BLOCK_TID_GLIBC` in agent/runtime/layout.h: where glibc's block of a thread has the thread's id.
pub const BLOCK_TID_GLIBC: u32 = 0x2d0;

/// `HS_LOCAL_TID` there: where a thread's `struct hs_local` has it.
pub const LOCAL_TID: u8 = 112;

/// Common prefix of the library's file names, in all releases.
const NAME_START: &str = "runtime-";

/// Returns whether `path` is a library like `own`, of this or another release, that an earlier recording has left in a
/// target.
pub fn is_library(path: &Path, own: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name.is_some_and(|name| name.starts_with(NAME_START) && name.ends_with(".so"));
    path == own || is_named && path.parent() == own.parent()
}

/// Writes one of the two libraries to the user's cache unless it exists, and returns its path as the kernel reports it
/// for mappings, without symbolic links; by that path it is recognised among a target's modules. The name contains its
/// digest, so that targets of different releases do not meet. `copy` 1 is the first one; higher numbers are for a
/// target that still has the lower ones mapped, because the linker loads a file only once.
///
/// An existing file is never written: targets have it mapped, and would lose their linker's
/// changes in it.
///
/// # Errors
/// When there is no cache folder or it cannot be written to.
pub fn library_path(library: &[u8], copy: u32) -> Result<PathBuf> {
    written_to(&wheel::cache_folder()?, library, copy)
}

fn written_to(folder: &Path, library: &[u8], copy: u32) -> Result<PathBuf> {
    let digest = wheel::hex(&Sha256::digest(library));
    let folder = folder.canonicalize().map_err(|source| Error::File {
        action: "find",
        path: folder.to_owned(),
        source,
    })?;
    let name = match copy {
        0 | 1 => format!("{NAME_START}{}", &digest[..16]),
        _ => format!("{NAME_START}{}.{copy}", &digest[..16]),
    };
    let path = folder.join(format!("{name}.so"));
    if fs::read(&path).is_ok_and(|found| found == library) {
        return Ok(path);
    }
    let file_error = |action| {
        let path = path.clone();
        move |source| Error::File {
            action,
            path,
            source,
        }
    };
    let partial = folder.join(format!("{name}.partial-{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&partial)
        .map_err(file_error("create"))?;
    file.write_all(library).map_err(file_error("write"))?;
    file.set_permissions(fs::Permissions::from_mode(0o755))
        .map_err(file_error("write"))?;
    fs::rename(&partial, &path).map_err(file_error("create"))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_earlier_recordings_are_known_by_name_and_folder() {
        let own = Path::new("/home/ada/.cache/hindsight/runtime-0123456789abcdef.2.so");
        let cases = [
            (
                "/home/ada/.cache/hindsight/runtime-0123456789abcdef.2.so",
                true,
            ),
            (
                "/home/ada/.cache/hindsight/runtime-0123456789abcdef.so",
                true,
            ),
            (
                "/home/ada/.cache/hindsight/runtime-fedcba9876543210.so",
                true,
            ),
            ("/home/ada/shop/runtime-0123456789abcdef.so", false),
            ("/home/ada/.cache/hindsight/libshop.so", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_library(Path::new(path), own), expected, "{path}");
        }
    }

    #[test]
    fn a_cache_behind_a_link_is_told_as_the_kernel_tells_it() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        let link = folder.path().join("link");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let path = written_to(&link, LIBRARY, 1).unwrap();
        assert!(path.starts_with(&real), "{}", path.display());
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        assert_eq!(
            written_to(&link, LIBRARY, 1).unwrap(),
            path,
            "it is there already"
        );
    }
}
