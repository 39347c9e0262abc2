//! Goal: an answer is right, or there is none: damage on the disk is reported with file and place. Method: the shop
//! recording, with single bits of its sealed files flipped.

mod common;

use std::path::Path;

use query::{Options, Session};
use store::seal::{Ending, SealOptions, Sealer};

/// Asks for every column of every table of sealed rows.
fn ask_all(recording: &Path) -> Result<usize, query::Error> {
    let session = Session::open_with(recording, Options::default())?;
    let mut rows = 0;
    for question in ["SELECT * FROM calls", "SELECT * FROM events"] {
        for batch in session.sql(question)? {
            rows += batch?.num_rows();
        }
    }
    Ok(rows)
}

#[test]
fn a_bit_that_was_turned_over_is_found_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let recording = common::shop().record(&dir.path().join("shop")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    let rows = ask_all(recording.dir()).unwrap();
    assert!(rows > 10, "only {rows}");
    for name in ["calls-000000.parquet", "events-000000.parquet"] {
        let path = recording.dir().join("columns").join(name);
        let right = std::fs::read(&path).unwrap();
        for at in (0..right.len()).step_by(41) {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << (at % 8);
            std::fs::write(&path, &wrong).unwrap();
            let error = match ask_all(recording.dir()) {
                Ok(rows) => panic!("byte {at} of {name} is damaged, and there are {rows} rows"),
                Err(error) => error.to_string(),
            };
            assert!(
                error.contains(name) && error.contains("at offset 0"),
                "byte {at}: {error}"
            );
        }
        std::fs::write(&path, &right[..right.len() - 1]).unwrap();
        let error = ask_all(recording.dir()).unwrap_err().to_string();
        assert!(
            error.contains(name) && error.contains("instead of"),
            "{error}"
        );
        std::fs::write(&path, &right).unwrap();
    }
    assert_eq!(ask_all(recording.dir()).unwrap(), rows);
}
