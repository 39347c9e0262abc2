//! A small process beside the recorder that takes all patches back should the recorder die without doing so.
//!
//! It learns of every patch before it is written, through a pipe; the pipe's end without a word of farewell is the
//! recorder's death, however that came. What it takes back is only what it finds to be ours, so that hearing of a patch
//! that was never written does no harm.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use crate::{
    Error, Result,
    arm::patch::{Written, take_back},
    process::ExitWatch,
    stop::while_stopped,
};

/// Length of a message: an address, the bytes before and after the patch. Address 0 is the farewell.
const MESSAGE_BYTES: usize = 8 + 5 + 5;
/// How long the program's threads may take to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// The recorder's end.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    pipe: ChildStdin,
}

impl Guardian {
    /// Starts `command`, which must call [`guard`] with `pid`, its last argument.
    pub fn start(command: &[std::ffi::OsString], pid: i32) -> Result<Self> {
        let failed = Error::system("start the process that guards the program");
        let mut guardian = Command::new(&command[0]);
        guardian
            .args(&command[1..])
            .arg(pid.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C and a terminal that closes are for the recorder.
            .process_group(0);
        let mut child = guardian.spawn().map_err(failed)?;
        let pipe = child.stdin.take().expect("its standard input is a pipe");
        Ok(Self { child, pipe })
    }

    /// Tells of patches that are about to be written. A guardian that was killed hears nothing, and the recording goes on.
    pub fn tell(&mut self, patches: impl Iterator<Item = (u64, Written)>) {
        let mut messages = Vec::new();
        for (entry, written) in patches {
            messages.extend(entry.to_le_bytes());
            messages.extend(written.original);
            messages.extend(written.jump);
        }
        let _ = self.pipe.write_all(&messages);
    }

    /// Ends it: the program has ended, or the patches were taken back. Dropped without that, it takes them back.
    pub fn farewell(mut self) {
        let _ = self.pipe.write_all(&[0; MESSAGE_BYTES]);
        let _ = self.child.wait();
    }
}

/// Guards process `pid` until the recorder, at the other end of standard input, says goodbye or dies; then takes the
/// patches back.
///
/// # Errors
/// When the process cannot be watched or stopped, or its memory not be written.
pub fn guard(pid: i32) -> Result<()> {
    let watch = ExitWatch::new(pid, false).map_err(Error::system("watch the program"))?;
    let Some(written) = listen(io::stdin().lock()) else {
        return Ok(());
    };
    if watch.poll().is_some() {
        return Ok(());
    }
    while_stopped(pid, PATIENCE, |process| take_back(&written, process))??;
    Ok(())
}

/// Returns the patches that were told of, or `None` after the farewell.
fn listen(mut from: impl Read) -> Option<BTreeMap<u64, Written>> {
    let mut written = BTreeMap::new();
    let mut message = [0; MESSAGE_BYTES];
    while from.read_exact(&mut message).is_ok() {
        let (address, bytes) = message.split_at(8);
        let address = u64::from_le_bytes(address.try_into().expect("eight bytes"));
        if address == 0 {
            return None;
        }
        let (original, jump) = bytes.split_at(5);
        let patch = Written {
            original: original.try_into().expect("five bytes"),
            jump: jump.try_into().expect("five bytes"),
        };
        written.insert(address, patch);
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(address: u64) -> Vec<u8> {
        [
            &address.to_le_bytes()[..],
            b"before"[..5].as_ref(),
            b"jumps",
        ]
        .concat()
    }

    #[test]
    fn death_leaves_what_was_told_whole() {
        let mut said = message(0x1000);
        said.extend(message(0x2000));
        said.extend(&message(0x3000)[..9]);
        let written = listen(&said[..]).expect("no farewell");
        assert_eq!(
            written.keys().copied().collect::<Vec<_>>(),
            [0x1000, 0x2000]
        );
        assert_eq!(&written[&0x2000].original, b"befor");
        assert_eq!(&written[&0x2000].jump, b"jumps");
    }

    #[test]
    fn farewell_leaves_nothing_to_do() {
        let said = [message(0x1000), vec![0; MESSAGE_BYTES]].concat();
        assert!(listen(&said[..]).is_none());
    }
}
