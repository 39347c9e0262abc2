//! The user at the other end of a socket, as reported by the kernel, not by the client.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Returns the user id of the peer at the time it connected.
///
/// # Errors
/// A system call fails.
pub fn uid(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("twelve");
    // SAFETY: `peer` is a ucred of `len` bytes, which is what SO_PEERCRED writes; both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut len,
        )
    };
    match done {
        0 => Ok(peer.uid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns whether user `peer` may give orders to a daemon of user `own`. No other user may, not even root: otherwise the
/// rights of a session's program would depend on which client started it.
#[must_use]
pub fn may_ask(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_end_is_ours() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(uid(&one).unwrap(), crate::paths::own_uid());
    }

    #[test]
    fn only_the_same_user_may_ask() {
        assert!(may_ask(1000, 1000));
        assert!(!may_ask(1001, 1000));
        assert!(!may_ask(0, 1000));
        assert!(!may_ask(1000, 0));
    }
}
