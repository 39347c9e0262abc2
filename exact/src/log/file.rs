//! The file: entries in MessagePack, compressed with zstd.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Entry;
use super::disk::Disk;
use crate::error::{Context, Error, Result};

const NAME: &str = "log.zst";
/// What the file begins with, and the version of what follows.
const MAGIC: &[u8] = b"hsexact";
const VERSION: u8 = 6;
/// The first one is the same without values to compare with, the second without some writes, the third without programs that are executed,
/// the fourth without what mappings share, the fifth without what repeated instructions did before a fault.
const READ: std::ops::RangeInclusive<u8> = 1..=VERSION;
/// Fast enough to keep up with a program that maps a lot of files.
const LEVEL: i32 = 1;

/// How much of a recording is lost at most when the recorder is killed.
const UNWRITTEN: Duration = Duration::from_millis(300);

/// A disk that takes no more is no error: what is added from then on is lost, and [`Writer::refused`] says why.
pub(crate) struct Writer {
    file: zstd::Encoder<'static, BufWriter<Disk>>,
    written: Instant,
    /// The log ends in the middle of an entry: nothing is added any more.
    is_cut: bool,
}

impl Writer {
    /// Makes the file in a folder that exists. `spare` is a file that is removed when the disk is full, so that there is room for
    /// the end of the log.
    pub(crate) fn create(folder: &Path, spare: Option<PathBuf>) -> Result<Writer> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(folder.join(NAME)).context("create the log")?;
        file.write_all(MAGIC)
            .and_then(|()| file.write_all(&[VERSION]))
            .context("write the log")?;
        let file = BufWriter::new(Disk::new(file, spare));
        Ok(Writer {
            file: zstd::Encoder::new(file, LEVEL).context("create the log")?,
            written: Instant::now(),
            is_cut: false,
        })
    }

    pub(crate) fn add(&mut self, entry: &Entry) -> Result<()> {
        if self.is_cut {
            return Ok(());
        }
        if let Err(error) = rmp_serde::encode::write(&mut self.file, entry) {
            return self.cut(io::Error::other(error));
        }
        if self.written.elapsed() > UNWRITTEN {
            if let Err(error) = self.file.flush() {
                return self.cut(error);
            }
            self.written = Instant::now();
        }
        Ok(())
    }

    /// Why the disk takes no more, if it does not.
    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.file.get_ref().get_ref().refused()
    }

    fn cut(&mut self, error: io::Error) -> Result<()> {
        self.is_cut = true;
        match self.refused() {
            Some(_) => Ok(()),
            None => Err(error).context("write the log"),
        }
    }

    /// Returns whether all that was added is there.
    pub(crate) fn finish(self) -> Result<bool> {
        if self.is_cut {
            return Ok(false);
        }
        let mut finished = match self.file.try_finish() {
            Ok(file) => file,
            Err((encoder, _)) if encoder.get_ref().get_ref().refused().is_some() => {
                return Ok(false);
            }
            Err((_, error)) => return Err(error).context("write the log"),
        };
        match finished.flush() {
            Err(_) if finished.get_ref().refused().is_some() => Ok(false),
            flushed => flushed.map(|()| true).context("write the log"),
        }
    }
}

pub(crate) struct Reader(zstd::Decoder<'static, BufReader<File>>);

impl Reader {
    pub(crate) fn open(folder: &Path) -> Result<Reader> {
        let mut file = File::open(folder.join(NAME)).context("open the log")?;
        let mut head = [0; 8];
        file.read_exact(&mut head)
            .map_err(|error| Error::Damaged(error.to_string()))?;
        match head.split_last() {
            Some((version, MAGIC)) if READ.contains(version) => {}
            Some((found, MAGIC)) => {
                return Err(Error::Version {
                    found: *found,
                    known: VERSION,
                });
            }
            _ => {
                return Err(Error::Damaged(String::from(
                    "it does not begin as a log does",
                )));
            }
        }
        Ok(Reader(zstd::Decoder::new(file).context("open the log")?))
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>> {
        match rmp_serde::decode::from_read(&mut self.0) {
            Ok(entry) => Ok(Some(entry)),
            // The end, or where the recorder was killed.
            Err(
                rmp_serde::decode::Error::InvalidMarkerRead(error)
                | rmp_serde::decode::Error::InvalidDataRead(error),
            ) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(Error::Damaged(error.to_string())),
        }
    }
}
