//! Examines queries before they are planned, and explains what is wrong with them.

mod aliases;
mod depth;
mod diagnose;
mod dialects;
mod differences;
mod exact;
mod float_comparisons;
mod headings;
mod joins;
mod percentiles;
mod place;
mod positions;
mod read_only;
mod same_names;
mod subqueries;
mod suggest;
mod texts;
mod unknown;

pub use depth::{STACK_BYTES, check as check_depth};
pub use diagnose::{
    Names, check_words, diagnose, hint_of, memory_message, message_of, no_columns, no_unknown,
    second_question,
};
pub use dialects::{is_alias, notes};
pub use differences::SignedDifferences;
pub use exact::make_exact;
pub use float_comparisons::FloatComparisons;
pub use headings::Headings;
pub use percentiles::ascending;
pub use positions::resolve;
pub use read_only::check;
pub use same_names::{are_the_reason as same_names, sorts_or_groups, tell_apart};
pub use suggest::suggest;
pub use unknown::{check_not_in, with_unknown};
