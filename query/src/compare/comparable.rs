//! Whether two recordings can be compared at all. A comparison of what is not whole, or not of the same program, would
//! report differences that the programs did not make.

use store::recording::RecordingState;

use super::identity::Identities;
use crate::error::{Error, Result};
use crate::rows::ask;
use crate::session::Session;

/// A program with fewer functions has the names of another one by chance.
const FEW: usize = 4;

fn refused(message: String, hint: Option<String>) -> Error {
    Error::NotComparable { message, hint }
}

/// Checks one recording; `name` is how the user calls it.
///
/// # Errors
/// [`Error::NotComparable`] with the reason.
pub fn check_whole(session: &Session, name: &str) -> Result<()> {
    match session.extent().state {
        RecordingState::Closed => {}
        RecordingState::Live => {
            let hint = "compare it when the program has ended".to_owned();
            return Err(refused(
                format!("{name} is still being recorded"),
                Some(hint),
            ));
        }
        RecordingState::Interrupted => {
            let hint = format!(
                "see what there is with: hindsight check {}",
                store::shell::word(name)
            );
            return Err(refused(
                format!("{name} is cut: its recorder did not close it"),
                Some(hint),
            ));
        }
    }
    if session.extent().events == 0 {
        return Err(refused(format!("{name} has no events"), None));
    }
    let sql = "select count(*), coalesce(sum(lost), 0), min(seq) from gaps where reason <> 'memory not copied'";
    let gaps = ask(session, sql)?;
    let number = |column| gaps.first().and_then(|row| row.count(column));
    if let (Some(1..), lost, Some(seq)) = (number(0), number(1).unwrap_or(0), number(2)) {
        let message = format!("{name} lost {lost} events, the first ones at seq {seq}");
        let hint = "record it again without --on-full drop".to_owned();
        return Err(refused(message, Some(hint)));
    }
    Ok(())
}

/// Returns the name of the program's file.
fn program(session: &Session) -> String {
    let manifest = session.reader().recording().manifest();
    let first = session
        .definitions()
        .module(0)
        .map(|module| module.name().to_owned());
    first
        .or_else(|| manifest.argv.first().cloned())
        .unwrap_or_default()
}

/// Checks both recordings, each with the name that the user gave it.
///
/// # Errors
/// [`Error::NotComparable`] with the reason.
pub fn check(a: (&Session, &str), b: (&Session, &str), identities: &Identities) -> Result<()> {
    check_differs(a, b)?;
    check_whole(a.0, a.1)?;
    check_whole(b.0, b.1)?;
    check_program(a, b, identities)
}

/// Checks that two are not the same recording.
///
/// # Errors
/// [`Error::NotComparable`]: they are.
pub fn check_differs(a: (&Session, &str), b: (&Session, &str)) -> Result<()> {
    let id = |session: &Session| session.reader().recording().manifest().recording_id;
    if id(a.0) != id(b.0) {
        return Ok(());
    }
    let message = format!("{} and {} are the same recording", a.1, b.1);
    let hint = "record the program once more, and compare both";
    Err(refused(message, Some(hint.to_owned())))
}

/// Checks that two recordings are of one program.
///
/// # Errors
/// [`Error::NotComparable`]: they are not.
pub fn check_program(
    a: (&Session, &str),
    b: (&Session, &str),
    identities: &Identities,
) -> Result<()> {
    let (name_a, name_b) = (program(a.0), program(b.0));
    let functions = |session: &Session| session.definitions().functions().count();
    let (of_a, of_b) = (functions(a.0), functions(b.0));
    let (fewer, shared) = (of_a.min(of_b), identities.shared.len());
    // Functions of the same name in files of other names are often others, such as `main`.
    let in_place = shared - identities.moved;
    let is_renamed = fewer >= FEW && shared * 4 >= fewer * 3;
    let is_other = match name_a == name_b {
        true => fewer > 0 && in_place == 0 && shared * 2 <= fewer,
        false => in_place * 2 < fewer.max(1) && !is_renamed,
    };
    if is_other {
        let both = match in_place == shared {
            true => format!("{shared} in both"),
            false => format!("{shared} names in both, {in_place} of them in the same source file"),
        };
        let message = format!(
            "{} and {} are of different programs: {name_a} with {of_a} functions, {name_b} with {of_b}, and {both}",
            a.1, b.1
        );
        return Err(refused(
            message,
            Some("compare two recordings of one program".to_owned()),
        ));
    }
    Ok(())
}
