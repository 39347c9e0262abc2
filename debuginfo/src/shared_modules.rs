//! Modules that are open in this process. A session, its recording and other sessions look into the same files, and what was read of
//! one may take much memory: so they share it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::elf::Elf;
use crate::module::Module;

/// A file and its content: device, inode, size, and when it was changed, in seconds and nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    content: (u64, u64, u64, i64, i64),
}

type Open = (Vec<Identity>, Weak<Module>);

static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// Returns an open module of the same files, or else this one.
#[must_use]
pub fn shared_module(module: Module) -> Arc<Module> {
    let files = &module.files;
    let all = [
        Some(&files.main),
        files.debug.as_ref(),
        files.supplement.as_ref(),
    ];
    let identity: Option<Vec<Identity>> = all.into_iter().flatten().map(identity_of).collect();
    // A file that is gone, or was never one.
    let Some(identity) = identity else {
        return Arc::new(module);
    };
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|(_, known)| known.strong_count() > 0);
    let known = open.iter().find(|(other, _)| *other == identity);
    if let Some(known) = known.and_then(|(_, known)| known.upgrade()) {
        return known;
    }
    let module = Arc::new(module);
    open.push((identity, Arc::downgrade(&module)));
    module
}

fn identity_of(file: &Elf) -> Option<Identity> {
    let path: &Path = file.path();
    let about: Metadata = path.metadata().ok()?;
    Some(Identity {
        path: path.to_owned(),
        content: (
            about.dev(),
            about.ino(),
            about.size(),
            about.ctime(),
            about.ctime_nsec(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_is_shared_until_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy");
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let open = || shared_module(Module::open(&path).unwrap());
        let (first, second) = (open(), open());
        assert!(Arc::ptr_eq(&first, &second));
        let other = folder.path().join("other");
        std::fs::copy(&path, &other).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!Arc::ptr_eq(&first, &open()));
    }
}
