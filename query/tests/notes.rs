//! Goal: a question about a name that the recording does not have is told so, with the names that were perhaps meant, and no other
//! question is.

mod common;

use common::{Asked, shop};

#[test]
fn names_that_are_not_in_the_recording_are_told() {
    let asked = Asked::new(|path| shop().record(path));
    for (sql, expected) in [
        (
            "select * from calls where function = 'pars'",
            "no function 'pars' in this recording; near: parse",
        ),
        (
            "select count(*) from calls c where c.function in ('main', 'order::totl')",
            "no function 'order::totl' in this recording; near: order::total",
        ),
        (
            "select name, calls from functions where file like 'shop.cc'",
            "no source file 'shop.cc' in this recording; near: shop.c",
        ),
        (
            "select seq, text from events where kind = 'leav'",
            "no event of kind 'leav' in this recording; near: leave",
        ),
        (
            "select calls from functions where name in ('main', 'pars')",
            "no function 'pars' in this recording; near: parse",
        ),
        (
            "select calls from functions f where f.short_name = 'pars'",
            "no function 'pars' in this recording; near: parse",
        ),
        ("select * from calls where function = 'parse'", ""),
        ("select * from calls where function like 'pars%'", ""),
        ("select * from calls where function <> 'pars'", ""),
        // The function free was recorded, and no function of locks.
        (
            "select * from allocations",
            "only allocations of the recorded functions are known: hindsight record --memory records all",
        ),
        (
            "select * from locks",
            "no lock was recorded: hindsight record --locks",
        ),
        // Events have functions that were not traced.
        ("select * from events where function = 'pars'", ""),
    ] {
        let notes = asked.session.not_recorded(sql);
        assert_eq!(notes.join("; "), expected, "{sql}");
    }
}
