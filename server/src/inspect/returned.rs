//! Return values, as they are on the wire.

use debuginfo::scope::returned;
use debuginfo::value::Look;
use debuginfo::{AddressSpace, Machine};
use expr::Kept;
use serde::{Deserialize, Serialize};

use super::values::{Manner, Shown, shown};

/// The value that a function has returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedReport {
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The type of the value, if known.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Its number among the values that the session keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The value.
    #[serde(flatten)]
    pub shown: Shown,
}

impl ReturnedReport {
    /// Reads what the function that begins at `entry` has returned to the thread's position; `None` if it returns
    /// nothing. A known value is kept.
    #[must_use]
    pub fn read(
        space: &AddressSpace,
        machine: &dyn Machine,
        function: Option<String>,
        entry: u64,
        kept: &Kept,
    ) -> Option<ReturnedReport> {
        let look = Look { space, machine };
        let mut number = None;
        let (type_name, shown) = match returned(space, machine, entry) {
            Ok(None) => return None,
            Ok(Some(value)) => {
                let shown = Shown {
                    // No expression names it.
                    left_out: None,
                    ..shown(&value, "", Manner::of_one(false), &look)
                };
                number = shown.value.is_some().then(|| kept.show(&value));
                (Some(value.ty.name()), shown)
            }
            Err(unknown) => {
                let unknown = Some(unknown.to_string());
                (
                    None,
                    Shown {
                        unknown,
                        ..Shown::default()
                    },
                )
            }
        };
        Some(ReturnedReport {
            function,
            type_name,
            number,
            shown,
        })
    }
}
