//! Goal: every column returns what was written, for any values, and readers can skip. Method: columns of different
//! shapes, with lengths around pages and row groups, read back with the `parquet` crate.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::{BoundaryOrder, Encoding};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use tempfile::TempDir;

use super::{
    CALL_COLUMNS, CallEnd, CallStart, CallsWriter, PAGE_ROWS, ROW_GROUP_ROWS, ReadCall, read_calls,
};

/// The shape of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Constant,
    Rising,
    Few,
    Near,
    Wide,
    /// Few values first, then more than any dictionary takes.
    Growing,
    /// Constant for some pages, then another constant.
    Steps,
}

const SHAPES: [Shape; 7] = [
    Shape::Constant,
    Shape::Rising,
    Shape::Few,
    Shape::Near,
    Shape::Wide,
    Shape::Growing,
    Shape::Steps,
];

/// Returns value `row` of a column, by a hash: it is stateless, so it can be computed again.
fn value(shape: Shape, column: u64, row: u64) -> u64 {
    let random = (row + column * 1_000_003 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let random = random ^ random >> 29;
    match shape {
        Shape::Constant => 77 + column,
        Shape::Rising => row * 3 + column,
        Shape::Few => random % 20 * 0x1111_1111_1111,
        Shape::Near => 0x5555_0000_0000 + random % 5000,
        Shape::Wide => random,
        Shape::Growing if row < 3 * PAGE_ROWS as u64 => random % 4,
        Shape::Growing => random % 60_000,
        Shape::Steps => row / (2 * PAGE_ROWS as u64 + 5),
    }
}

/// Returns the call in row `row` of a file whose columns begin with `shape`, and the row that is read back.
fn call(shape: Shape, row: u64) -> (CallStart, i64, CallEnd, ReadCall) {
    let first = SHAPES.iter().position(|s| *s == shape).unwrap();
    let at = |column: u64| {
        value(
            SHAPES[(first + column as usize) % SHAPES.len()],
            column,
            row,
        )
    };
    let small = |column: u64| (at(column) & 0xfff_ffff) as u32;
    let start = CallStart {
        seq: at(0) >> 1,
        ts_ns: (at(1) >> 2) as i64,
        function_id: small(2),
        depth: small(3),
        parent_seq: (at(4) % 3 != 0).then_some(at(5) >> 1),
        tail: at(6) % 2 == 1,
        slot: at(7),
        return_addr: at(8),
        args: std::array::from_fn(|i| at(9 + i as u64)),
        xmm_count: [0, 0, 2, 8][at(15) as usize % 4],
        xmm: std::array::from_fn(|i| at(16 + i as u64)),
    };
    let (seq, ts_ns) = (row * 2 + 5, start.ts_ns + (at(24) >> 2) as i64);
    let ret_xmm = (at(25) % 2 == 1).then_some([at(26), at(27)]);
    let end = match at(28) % 5 {
        0 => CallEnd::Unwound { seq, ts_ns },
        1 => CallEnd::OpenAtEnd { seq, ts_ns },
        _ => CallEnd::Returned {
            seq,
            ts_ns,
            rax: at(29),
            rdx: at(30),
            xmm: ret_xmm,
        },
    };
    let child_ns = (at(31) >> 1) as i64;
    let returned = matches!(end, CallEnd::Returned { .. });
    let read = ReadCall {
        end_seq: Some(seq),
        start_seq: start.seq,
        ts_ns: start.ts_ns,
        dur_ns: ts_ns - start.ts_ns,
        child_ns,
        function_id: start.function_id,
        tid: Some(small(33)),
        depth: start.depth,
        parent_seq: start.parent_seq,
        unwound: matches!(end, CallEnd::Unwound { .. }),
        open_at_end: matches!(end, CallEnd::OpenAtEnd { .. }),
        tail: start.tail,
        args: start.args,
        sp: start.slot,
        ret_addr: start.return_addr,
        rax: returned.then_some(at(29)),
        rdx: returned.then_some(at(30)),
        xmm: std::array::from_fn(|i| (i < usize::from(start.xmm_count)).then_some(start.xmm[i])),
        ret_xmm: match ret_xmm.filter(|_| returned) {
            Some(xmm) => xmm.map(Some),
            None => [None; 2],
        },
    };
    (start, child_ns, end, read)
}

fn write(dir: &TempDir, shape: Shape, rows: u64) -> PathBuf {
    let path = dir.path().join("calls.parquet");
    let mut writer = CallsWriter::new(File::create(&path).unwrap()).unwrap();
    for row in 0..rows {
        let (start, child_ns, end, read) = call(shape, row);
        writer.push(read.tid, &start, child_ns, &end).unwrap();
    }
    assert_eq!(writer.rows(), rows);
    writer.finish().unwrap();
    path
}

fn check(shape: Shape, rows: u64) {
    let dir = tempfile::tempdir().unwrap();
    let read = read_calls(&write(&dir, shape, rows)).unwrap();
    assert_eq!(read.len() as u64, rows, "{shape:?}");
    for (row, found) in read.iter().enumerate() {
        assert_eq!(
            *found,
            call(shape, row as u64).3,
            "{shape:?}, row {row} of {rows}"
        );
    }
}

#[test]
fn every_shape_of_values_comes_back_in_every_column() {
    for shape in SHAPES {
        check(shape, 5 * PAGE_ROWS as u64 + 3);
    }
}

#[test]
fn files_of_any_length_come_back() {
    let page = PAGE_ROWS as u64;
    for rows in [
        0,
        1,
        2,
        257,
        page - 1,
        page,
        page + 1,
        ROW_GROUP_ROWS as u64 + 1,
    ] {
        check(Shape::Few, rows);
    }
}

#[test]
fn unfinished_calls_have_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.parquet");
    let mut writer = CallsWriter::new(File::create(&path).unwrap()).unwrap();
    let (start, ..) = call(Shape::Few, 3);
    writer.push(None, &start, 4, &CallEnd::Unfinished).unwrap();
    writer.finish().unwrap();
    let read = read_calls(&path).unwrap().remove(0);
    assert_eq!(
        (read.end_seq, read.dur_ns, read.child_ns, read.tid),
        (None, -1, 4, None)
    );
    assert_eq!((read.rax, read.rdx, read.unwound), (None, None, false));
}

fn metadata(path: &PathBuf) -> ParquetMetaData {
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    reader.try_parse(&File::open(path).unwrap()).unwrap();
    reader.finish().unwrap()
}

#[test]
fn skipping_rows_gives_the_rows_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 6 * PAGE_ROWS;
    for shape in [Shape::Growing, Shape::Steps] {
        let path = write(&dir, shape, rows as u64);
        let whole = batches(&path, None);
        let (mut ranges, mut from) = (Vec::new(), 0);
        for (number, len) in [1, 5, 4000, 3, 9000, 100, 1, 8192, 7]
            .into_iter()
            .enumerate()
        {
            from += 1 + number * 531;
            ranges.push(from..from + len);
            from += len;
        }
        assert!(from < rows);
        let picked = batches(&path, Some(&ranges));
        let expected: Vec<RecordBatch> = ranges
            .iter()
            .map(|range| whole.slice(range.start, range.len()))
            .collect();
        assert_eq!(
            picked,
            concat_batches(&whole.schema(), &expected).unwrap(),
            "{shape:?}"
        );
    }
}

/// Returns all rows of a file, or those of some ranges, in one batch.
fn batches(path: &PathBuf, ranges: Option<&[Range<usize>]>) -> RecordBatch {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let file = File::open(path).unwrap();
    let mut builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    if let Some(ranges) = ranges {
        let rows = builder.metadata().file_metadata().num_rows() as usize;
        let selection = RowSelection::from_consecutive_ranges(ranges.iter().cloned(), rows);
        builder = builder.with_row_selection(selection);
    }
    let schema = builder.schema().clone();
    let found: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &found).unwrap()
}

#[test]
fn a_range_of_a_thousand_numbers_touches_at_most_two_pages() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 2 * ROW_GROUP_ROWS as u64 + 17;
    let metadata = metadata(&write(&dir, Shape::Near, rows));
    assert_eq!(metadata.num_row_groups(), 3);
    let sorted = metadata.row_group(0).sorting_columns().unwrap();
    assert_eq!((sorted[0].column_idx, sorted[0].descending), (0, false));
    let mut ranges = Vec::new();
    for row_group in metadata.column_index().unwrap() {
        let ColumnIndexMetaData::INT64(index) = &row_group[0] else {
            panic!("end_seq is a column of 64 bits");
        };
        assert_eq!(
            row_group[0].get_boundary_order(),
            Some(BoundaryOrder::ASCENDING)
        );
        ranges.extend(index.min_values().iter().zip(index.max_values()));
    }
    assert!(ranges.len() as u64 >= rows / PAGE_ROWS as u64);
    for from in (5..rows as i64 * 2 - 1000).step_by(9_973) {
        let touched = ranges
            .iter()
            .filter(|(min, max)| **min < from + 1000 && **max >= from);
        assert!((1..=2).contains(&touched.count()), "from {from}");
    }
}

#[test]
fn pages_of_all_columns_add_up_to_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rows = ROW_GROUP_ROWS as u64 + PAGE_ROWS as u64 + 1;
    let metadata = metadata(&write(&dir, Shape::Growing, rows));
    for (number, row_group) in metadata.row_groups().iter().enumerate() {
        assert_eq!(row_group.num_columns(), CALL_COLUMNS.len());
        for column in 0..CALL_COLUMNS.len() {
            let pages = metadata.offset_index().unwrap()[number][column].page_locations();
            let chunk = row_group.column(column);
            let (start, len) = chunk.byte_range();
            let last = pages.last().unwrap();
            assert_eq!(
                last.offset as u64 + last.compressed_page_size as u64,
                start + len
            );
            assert!(
                pages
                    .windows(2)
                    .all(|p| p[0].first_row_index < p[1].first_row_index)
            );
            assert!(last.first_row_index < row_group.num_rows());
            assert_eq!(chunk.num_values(), row_group.num_rows());
        }
    }
}

#[test]
fn columns_that_never_change_are_one_page_of_a_few_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.parquet");
    let mut writer = CallsWriter::new(File::create(&path).unwrap()).unwrap();
    for row in 0..ROW_GROUP_ROWS as u64 {
        let (mut start, ..) = call(Shape::Constant, 0);
        start.seq = row * 2;
        let (seq, ts_ns) = (row * 2 + 1, start.ts_ns + 5);
        let end = CallEnd::Returned {
            seq,
            ts_ns,
            rax: 1,
            rdx: 2,
            xmm: None,
        };
        writer.push(Some(1), &start, 0, &end).unwrap();
    }
    writer.finish().unwrap();
    let metadata = metadata(&path);
    for column in metadata.row_group(0).columns() {
        let name = column.column_path().string();
        let expected = if name.ends_with("_seq") && name != "parent_seq" {
            8000
        } else {
            120
        };
        assert!(
            column.compressed_size() < expected,
            "{name}: {}",
            column.compressed_size()
        );
    }
    assert!(std::fs::metadata(&path).unwrap().len() < 30_000);
}

#[test]
fn random_bits_are_not_made_longer() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = metadata(&write(&dir, Shape::Wide, 3 * PAGE_ROWS as u64));
    let wide = metadata.row_group(0).columns().iter().find(|column| {
        column.encodings().any(|e| e == Encoding::PLAIN)
            && column.column_path().string() == "ret_addr"
    });
    let len = wide.unwrap().compressed_size() as usize;
    assert!(len < 3 * PAGE_ROWS * 8 + 500, "{len}");
}
