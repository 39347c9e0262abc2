//! The file: entries in MessagePack, compressed with zstd.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Entry;
use crate::error::{Context, Error, Result};

const NAME: &str = "log.zst";
/// What the file begins with, and the version of what follows.
const MAGIC: &[u8] = b"hsexact";
const VERSION: u8 = 3;
/// The first one is the same without values to compare with, the second without some writes.
const READ: std::ops::RangeInclusive<u8> = 1..=VERSION;
/// Fast enough to keep up with a program that maps a lot of files.
const LEVEL: i32 = 1;

/// How much of a recording is lost at most when the recorder is killed.
const UNWRITTEN: Duration = Duration::from_millis(300);

pub(crate) struct Writer {
    file: zstd::Encoder<'static, BufWriter<File>>,
    written: Instant,
}

impl Writer {
    /// Makes the file in a folder that exists.
    pub(crate) fn create(folder: &Path) -> Result<Writer> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(folder.join(NAME)).context("create the log")?;
        file.write_all(MAGIC)
            .and_then(|()| file.write_all(&[VERSION]))
            .context("write the log")?;
        Ok(Writer {
            file: zstd::Encoder::new(BufWriter::new(file), LEVEL).context("create the log")?,
            written: Instant::now(),
        })
    }

    pub(crate) fn add(&mut self, entry: &Entry) -> Result<()> {
        rmp_serde::encode::write(&mut self.file, entry).map_err(|error| Error::System {
            what: "write the log",
            source: std::io::Error::other(error),
        })?;
        if self.written.elapsed() > UNWRITTEN {
            self.file.flush().context("write the log")?;
            self.written = Instant::now();
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file
            .finish()
            .and_then(|mut file| file.flush())
            .context("write the log")
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
