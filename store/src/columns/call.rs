//! The fields of a call and the columns that hold them. [`super::calls`] writes the columns.

use parquet::basic::{Repetition, Type};
use parquet::errors::Result as ParquetResult;
use parquet::schema::types;
use serde::{Deserialize, Serialize};

use super::page::Physical;
use crate::wire::{ENTER_MAX_XMM, INT_ARGS, LEAVE_XMM};

/// Numbers of the columns whose values are buffered row by row.
pub(super) mod buffered {
    use super::{ENTER_MAX_XMM, INT_ARGS, LEAVE_XMM};

    pub(in crate::columns) const END_SEQ: usize = 0;
    pub(in crate::columns) const START_SEQ: usize = 1;
    pub(in crate::columns) const TS_NS: usize = 2;
    pub(in crate::columns) const DUR_NS: usize = 3;
    pub(in crate::columns) const CHILD_NS: usize = 4;
    pub(in crate::columns) const FUNCTION_ID: usize = 5;
    pub(in crate::columns) const TID: usize = 6;
    pub(in crate::columns) const DEPTH: usize = 7;
    pub(in crate::columns) const PARENT_SEQ: usize = 8;
    pub(in crate::columns) const SP: usize = 9;
    pub(in crate::columns) const RET_ADDR: usize = 10;
    pub(in crate::columns) const RAX: usize = 11;
    pub(in crate::columns) const RDX: usize = 12;
    /// The first of the integer arguments.
    pub(in crate::columns) const ARGS: usize = 13;
    /// The first of the floating point arguments.
    pub(in crate::columns) const XMM: usize = ARGS + INT_ARGS;
    /// The first of the floating point return values.
    pub(in crate::columns) const RETURN_XMM: usize = XMM + ENTER_MAX_XMM;
    pub(in crate::columns) const COUNT: usize = RETURN_XMM + LEAVE_XMM;
}

pub(super) const UNWOUND: u8 = 1;
pub(super) const TAIL: u8 = 2;
pub(super) const RETURNED: u8 = 4;
pub(super) const RETURNED_XMM: u8 = 8;
pub(super) const OPEN_AT_END: u8 = 16;

pub(super) const NONE: i64 = -1;

/// The start of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStart {
    /// Seq of the enter event; also the call's id.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// Which function.
    pub function_id: u32,
    /// Enclosing traced calls.
    pub depth: u32,
    /// `seq` of the enclosing traced call.
    pub parent_seq: Option<u64>,
    /// Whether it is a tail call that replaced another call.
    pub tail: bool,
    /// Address of the stack word with the return address.
    pub slot: u64,
    /// The address at which the caller continues.
    pub return_addr: u64,
    /// rdi, rsi, rdx, rcx, r8 and r9.
    pub args: [u64; INT_ARGS],
    /// Number of captured values in `xmm`.
    pub xmm_count: u8,
    /// Low 64 bits of xmm0 to xmm7.
    pub xmm: [u64; ENTER_MAX_XMM],
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It returned.
    Returned {
        /// Seq of the leave event.
        seq: u64,
        /// When, in nanoseconds.
        ts_ns: i64,
        /// First integer return register.
        rax: u64,
        /// Second integer return register.
        rdx: u64,
        /// Low 64 bits of xmm0 and xmm1, where captured.
        xmm: Option<[u64; LEAVE_XMM]>,
    },
    /// It ended without a return: by an exception or longjmp.
    Unwound {
        /// Seq of the leave event that stands for it.
        seq: u64,
        /// The time at which that was noticed, in nanoseconds.
        ts_ns: i64,
    },
    /// It was open when its thread, or the process, ended.
    OpenAtEnd {
        /// Seq of the leave event that stands for it.
        seq: u64,
        /// When the thread ended, in nanoseconds.
        ts_ns: i64,
    },
    /// It was still open when the recording ended.
    Unfinished,
    /// Only its entry was recorded: nobody knows when it ended, or how, or what it called.
    NotRecorded,
}

/// One column of the file.
#[derive(Clone, Copy, Debug)]
pub struct CallColumn {
    /// Its name.
    pub name: &'static str,
    pub(super) physical: Physical,
    pub(super) source: ColumnSource,
}

/// The source of a column's values; numbers are those of buffered columns.
#[derive(Clone, Copy, Debug)]
pub(super) enum ColumnSource {
    /// Every row has a value.
    Always(usize),
    /// Rows with -1 are null.
    UnlessNone(usize),
    /// Rows without that flag are null.
    IfFlag(usize, u8),
    /// The flag is the value.
    Flag(u8),
    /// Rows with at most that many captured xmm registers are null.
    Xmm(usize),
}

impl CallColumn {
    const fn int64(name: &'static str, source: ColumnSource) -> Self {
        Self {
            name,
            physical: Physical::Int64,
            source,
        }
    }

    const fn int32(name: &'static str, source: ColumnSource) -> Self {
        Self {
            name,
            physical: Physical::Int32,
            source,
        }
    }

    const fn flag(name: &'static str, flag: u8) -> Self {
        Self {
            name,
            physical: Physical::Boolean,
            source: ColumnSource::Flag(flag),
        }
    }

    /// Returns whether rows may be null in this column.
    pub const fn is_optional(&self) -> bool {
        !matches!(self.source, ColumnSource::Always(_) | ColumnSource::Flag(_))
    }

    pub(super) fn to_parquet(self) -> ParquetResult<types::Type> {
        let physical = match self.physical {
            Physical::Boolean => Type::BOOLEAN,
            Physical::Int32 => Type::INT32,
            Physical::Int64 => Type::INT64,
        };
        let repetition = match self.is_optional() {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        types::Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .build()
    }
}

/// How many of the columns files had at first.
pub(super) const CALL_COLUMNS_AT_LEAST: usize = 31;

/// The columns of the file, in order.
pub const CALL_COLUMNS: [CallColumn; 32] = {
    use ColumnSource::{Always, IfFlag, UnlessNone, Xmm};
    [
        CallColumn::int64("end_seq", UnlessNone(buffered::END_SEQ)),
        CallColumn::int64("start_seq", Always(buffered::START_SEQ)),
        CallColumn::int64("ts_ns", Always(buffered::TS_NS)),
        CallColumn::int64("dur_ns", Always(buffered::DUR_NS)),
        CallColumn::int64("child_ns", Always(buffered::CHILD_NS)),
        CallColumn::int32("function_id", Always(buffered::FUNCTION_ID)),
        CallColumn::int32("tid", UnlessNone(buffered::TID)),
        CallColumn::int32("depth", Always(buffered::DEPTH)),
        CallColumn::int64("parent_seq", UnlessNone(buffered::PARENT_SEQ)),
        CallColumn::flag("unwound", UNWOUND),
        CallColumn::flag("tail", TAIL),
        CallColumn::int64("a0", Always(buffered::ARGS)),
        CallColumn::int64("a1", Always(buffered::ARGS + 1)),
        CallColumn::int64("a2", Always(buffered::ARGS + 2)),
        CallColumn::int64("a3", Always(buffered::ARGS + 3)),
        CallColumn::int64("a4", Always(buffered::ARGS + 4)),
        CallColumn::int64("a5", Always(buffered::ARGS + 5)),
        CallColumn::int64("sp", Always(buffered::SP)),
        CallColumn::int64("ret_addr", Always(buffered::RET_ADDR)),
        CallColumn::int64("rax", IfFlag(buffered::RAX, RETURNED)),
        CallColumn::int64("rdx", IfFlag(buffered::RDX, RETURNED)),
        CallColumn::int64("x0", Xmm(0)),
        CallColumn::int64("x1", Xmm(1)),
        CallColumn::int64("x2", Xmm(2)),
        CallColumn::int64("x3", Xmm(3)),
        CallColumn::int64("x4", Xmm(4)),
        CallColumn::int64("x5", Xmm(5)),
        CallColumn::int64("x6", Xmm(6)),
        CallColumn::int64("x7", Xmm(7)),
        CallColumn::int64("xr0", IfFlag(buffered::RETURN_XMM, RETURNED_XMM)),
        CallColumn::int64("xr1", IfFlag(buffered::RETURN_XMM + 1, RETURNED_XMM)),
        CallColumn::flag("open_at_end", OPEN_AT_END),
    ]
};
