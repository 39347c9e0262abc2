//! Describes the functions that give a table, for help: their arguments and columns.

/// The description of a function that is used as a table, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFunctionDoc {
    /// Its name in SQL.
    pub name: &'static str,
    /// Its arguments, as they are written.
    pub args: &'static str,
    /// Whether it is about a state: with several recordings, the run is its first argument.
    pub takes_run: bool,
    /// Its content, a fragment of a sentence.
    pub doc: &'static str,
    /// Name, type and meaning of each column, in order.
    pub columns: &'static [(&'static str, &'static str, &'static str)],
}

impl TableFunctionDoc {
    /// Returns how it is called, with several recordings or one.
    #[must_use]
    pub fn call(&self, is_many: bool) -> String {
        let run = if is_many && self.takes_run {
            "'RUN', "
        } else {
            ""
        };
        format!("{}({run}{})", self.name, self.args)
    }
}

/// Describes all of them.
pub const TABLE_FUNCTIONS: &[TableFunctionDoc] = &[
    TableFunctionDoc {
        name: "backtrace",
        args: "seq",
        takes_run: true,
        doc: "one row per frame of the event's thread just after it, the innermost first",
        columns: &[
            ("frame", "int64", "number of the frame, 0 for the innermost"),
            ("function", "text", "its function"),
            ("file", "text", "source file"),
            (
                "line",
                "int64",
                "line that is executed, or to which the frame returns",
            ),
            (
                "pc",
                "int64",
                "address of its instruction; NULL if not known",
            ),
            (
                "cfa",
                "int64",
                "canonical frame address: the stack pointer before the call",
            ),
            (
                "inlined",
                "bool",
                "the function is inlined into the next frame's",
            ),
        ],
    },
    TableFunctionDoc {
        name: "locals",
        args: "seq",
        takes_run: true,
        doc: "one row per variable in scope of the event's thread just after it",
        columns: &[
            ("name", "text", "name of the variable"),
            ("type", "text", "its type"),
            ("value", "text", "its value; NULL if not known"),
            ("unknown", "text", "why the value is not known"),
            (
                "stale_since",
                "int64",
                "the event whose value it is, if it may have changed since",
            ),
        ],
    },
    TableFunctionDoc {
        name: "history",
        args: "'EXPRESSION'[, 'FUNCTION']",
        takes_run: true,
        doc: "one row per change of a value that the recording shows",
        columns: &[
            ("seq", "int64", "the event that shows the new value"),
            ("ts_ns", "int64", "its time"),
            ("tid", "int64", "its thread"),
            ("function", "text", "function that was executed"),
            ("file", "text", "its source file"),
            ("line", "int64", "its line"),
            (
                "old",
                "text",
                "the last known value before; NULL for the first",
            ),
            ("new", "text", "the new value"),
        ],
    },
    TableFunctionDoc {
        name: "diff_functions",
        args: "'A', 'B'",
        takes_run: false,
        doc: "one row per function that two recordings have, with what differs",
        columns: &[
            ("function", "text", "name of the function"),
            ("calls_a", "int64", "its calls in A"),
            ("calls_b", "int64", "its calls in B"),
            ("total_ns_a", "int64", "their time in A"),
            ("total_ns_b", "int64", "their time in B"),
            (
                "self_ns_a",
                "int64",
                "their time in A without the recorded calls that they made",
            ),
            ("self_ns_b", "int64", "the same in B"),
            ("other_args", "int64", "calls with other arguments"),
            (
                "other_results",
                "int64",
                "calls with the same arguments and another result",
            ),
            (
                "other_calls_inside",
                "int64",
                "calls with the same of both that made other calls",
            ),
            ("only_a", "int64", "calls that only A has"),
            ("only_b", "int64", "calls that only B has"),
            (
                "first_seq_a",
                "int64",
                "event in A at which the first of them begins",
            ),
            ("first_seq_b", "int64", "the same in B"),
            (
                "code_differs",
                "bool",
                "its code differs; NULL if not known, or the builds are the same",
            ),
        ],
    },
    TableFunctionDoc {
        name: "diff_calls",
        args: "'A', 'B'",
        takes_run: false,
        doc: "one row per call that differs in two recordings, at most 10,000",
        columns: &[
            (
                "difference",
                "text",
                "arguments, result, inside, only_a or only_b",
            ),
            ("function", "text", "name of the function"),
            ("seq_a", "int64", "event in A at which the call begins"),
            ("seq_b", "int64", "the same in B"),
            ("args_a", "text", "its arguments in A"),
            ("args_b", "text", "its arguments in B"),
            ("ret_a", "text", "its result in A"),
            ("ret_b", "text", "its result in B"),
        ],
    },
];
