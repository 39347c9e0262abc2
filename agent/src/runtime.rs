//! The compiled runtime library: where it is put so that a target can load it, and what it exports.

use std::{
    fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{Error, Result, wheel};

/// The library that is loaded into targets.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.so"));

/// Version of `struct hs_exports` in agent/runtime/runtime.h.
pub const EXPORTS_VERSION: u64 = 1;

/// Writes the library to the user's cache unless it is there, and returns its path as the kernel tells it of mappings,
/// without symbolic links: that is how it is known among a target's modules. The name holds its digest, so that targets of
/// different releases do not meet.
///
/// # Errors
/// When there is no cache folder or it cannot be written to.
pub fn library_path() -> Result<PathBuf> {
    written_to(&wheel::cache_folder()?)
}

fn written_to(folder: &Path) -> Result<PathBuf> {
    let digest = wheel::hex(&Sha256::digest(LIBRARY));
    let folder = folder.canonicalize().map_err(|source| Error::File {
        action: "find",
        path: folder.to_owned(),
        source,
    })?;
    let path = folder.join(format!("runtime-{}.so", &digest[..16]));
    if fs::read(&path).is_ok_and(|found| found == LIBRARY) {
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
    let partial = folder.join(format!("runtime-{}.{}", &digest[..16], std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&partial)
        .map_err(file_error("create"))?;
    file.write_all(LIBRARY).map_err(file_error("write"))?;
    file.set_permissions(fs::Permissions::from_mode(0o755))
        .map_err(file_error("write"))?;
    fs::rename(&partial, &path).map_err(file_error("create"))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_behind_a_link_is_told_as_the_kernel_tells_it() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        let link = folder.path().join("link");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let path = written_to(&link).unwrap();
        assert!(path.starts_with(&real), "{}", path.display());
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        assert_eq!(written_to(&link).unwrap(), path, "it is there already");
    }
}
