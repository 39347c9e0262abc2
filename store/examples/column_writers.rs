//! Question: would the parquet crate's own column writers do as well as ours?
//!
//! Writes the calls of a sealed recording (`seal_bench` makes some) again, once with [`CallsWriter`] and once with the crate's
//! `SerializedFileWriter`, and prints processor time and length of both: `column_writers RECORDING`. The crate's writers get the
//! encoding and the compression that ours chose for each column of the first row group, without the time that choosing took.

use std::error::Error;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use parquet::basic::{Encoding, Repetition, Type};
use parquet::data_type::{BoolType, Int32Type, Int64Type};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::TypePtr;
use store::Recording;
use store::columns::{
    CallEnd, CallStart, CallsWriter, PAGE_ROWS, ROW_GROUP_ROWS, ReadCall, read_calls,
};
use store::seal::Part;

/// How often each writer writes the file; the fastest counts.
const ROUNDS: usize = 5;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path] = args.as_slice() else {
        return Err("usage: column_writers RECORDING".into());
    };
    let recording = Recording::open(Path::new(path))?;
    let calls = read_calls(&Part::calls_path(&recording.columns_dir(), 0))?;
    let rows: Vec<Row> = calls.iter().map(Row::new).collect();
    drop(calls);

    let (ours, file) = fastest(|| with_ours(&rows))?;
    report("ours", rows.len(), ours, file.len());
    let chosen = SerializedFileReader::new(Bytes::from(file))?;
    let (schema, chunks) = (
        chosen
            .metadata()
            .file_metadata()
            .schema_descr()
            .root_schema_ptr(),
        chosen.metadata().row_group(0).columns(),
    );
    let (theirs, file) = fastest(|| with_theirs(&rows, &schema, chunks))?;
    report("parquet's", rows.len(), theirs, file.len());
    Ok(())
}

fn report(name: &str, calls: usize, seconds: f64, len: usize) {
    println!(
        "{name}: {calls} calls, {:.1} ns and {:.2} B a call; {:.1} M events a processor second",
        seconds * 1e9 / calls as f64,
        len as f64 / calls as f64,
        2.0 * calls as f64 / seconds / 1e6
    );
}

fn fastest(mut write: impl FnMut() -> Result<Vec<u8>>) -> Result<(f64, Vec<u8>)> {
    let mut best = (f64::MAX, Vec::new());
    for _ in 0..ROUNDS {
        let before = cpu_seconds()?;
        let file = write()?;
        let seconds = cpu_seconds()? - before;
        if seconds < best.0 {
            best = (seconds, file);
        }
    }
    Ok(best)
}

/// A call as the sealer hands it over.
struct Row {
    tid: Option<u32>,
    start: CallStart,
    child_ns: i64,
    end: CallEnd,
}

impl Row {
    fn new(call: &ReadCall) -> Self {
        let xmm_count = call.xmm.iter().take_while(|xmm| xmm.is_some()).count();
        let ts_ns = call.ts_ns + call.dur_ns;
        let end = match (call.end_seq, call.rax) {
            (None, _) => CallEnd::Unfinished,
            (Some(seq), Some(rax)) => CallEnd::Returned {
                seq,
                ts_ns,
                rax,
                rdx: call.rdx.unwrap_or_default(),
                xmm: call.ret_xmm[0].map(|xmm| [xmm, call.ret_xmm[1].unwrap_or_default()]),
            },
            (Some(seq), None) => CallEnd::Unwound { seq, ts_ns },
        };
        Self {
            tid: call.tid,
            start: CallStart {
                seq: call.start_seq,
                ts_ns: call.ts_ns,
                function_id: call.function_id,
                depth: call.depth,
                parent_seq: call.parent_seq,
                tail: call.tail,
                slot: call.sp,
                return_addr: call.ret_addr,
                args: call.args,
                xmm_count: xmm_count as u8,
                xmm: call.xmm.map(Option::unwrap_or_default),
            },
            child_ns: call.child_ns,
            end,
        }
    }
}

fn with_ours(rows: &[Row]) -> Result<Vec<u8>> {
    let mut writer = CallsWriter::new(Vec::new())?;
    for row in rows {
        writer.push(row.tid, &row.start, row.child_ns, &row.end)?;
    }
    Ok(writer.finish()?)
}

fn with_theirs(rows: &[Row], schema: &TypePtr, chosen: &[ColumnChunkMetaData]) -> Result<Vec<u8>> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    for chunk in chosen {
        properties = as_chosen(properties, chunk);
    }
    let properties = properties.build().into();
    let mut file = SerializedFileWriter::new(Vec::new(), schema.clone(), properties)?;
    let mut columns: Vec<Column> = chosen.iter().map(Column::new).collect();
    for rows in rows.chunks(ROW_GROUP_ROWS) {
        for row in rows {
            push(&mut columns, row);
        }
        let mut group = file.next_row_group()?;
        for column in &mut columns {
            let mut writer = group.next_column()?.expect("the file has these columns");
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
    }
    Ok(file.into_inner()?)
}

/// Has a column written as ours wrote its first chunk.
fn as_chosen(
    properties: WriterPropertiesBuilder,
    chunk: &ColumnChunkMetaData,
) -> WriterPropertiesBuilder {
    let column = chunk.column_path().clone();
    let encodings: Vec<Encoding> = chunk.encodings().collect();
    let has_dictionary = encodings.contains(&Encoding::RLE_DICTIONARY);
    let properties = properties
        .set_column_compression(column.clone(), chunk.compression())
        .set_column_dictionary_enabled(column.clone(), has_dictionary);
    let others = [Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT];
    match others.into_iter().find(|other| encodings.contains(other)) {
        Some(encoding) => properties.set_column_encoding(column, encoding),
        None if chunk.column_type() == Type::BOOLEAN => {
            properties.set_column_encoding(column, Encoding::RLE)
        }
        None => properties.set_column_encoding(column, Encoding::PLAIN),
    }
}

/// The values of a row group.
struct Column {
    is_optional: bool,
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Bits(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
}

impl Column {
    fn new(chunk: &ColumnChunkMetaData) -> Self {
        let info = chunk.column_descr().self_type().get_basic_info();
        Self {
            is_optional: info.repetition() == Repetition::OPTIONAL,
            levels: Vec::new(),
            values: match chunk.column_type() {
                Type::BOOLEAN => Values::Bits(Vec::new()),
                Type::INT32 => Values::Ints(Vec::new()),
                _ => Values::Longs(Vec::new()),
            },
        }
    }

    #[inline]
    fn push(&mut self, value: Option<i64>) {
        if self.is_optional {
            self.levels.push(i16::from(value.is_some()));
        }
        let Some(value) = value else { return };
        match &mut self.values {
            Values::Bits(bits) => bits.push(value != 0),
            Values::Ints(ints) => ints.push(value as i32),
            Values::Longs(longs) => longs.push(value),
        }
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.is_optional.then_some(&self.levels[..]);
        match &mut self.values {
            Values::Bits(bits) => {
                writer.typed::<BoolType>().write_batch(bits, levels, None)?;
                bits.clear();
            }
            Values::Ints(ints) => {
                writer
                    .typed::<Int32Type>()
                    .write_batch(ints, levels, None)?;
                ints.clear();
            }
            Values::Longs(longs) => {
                writer
                    .typed::<Int64Type>()
                    .write_batch(longs, levels, None)?;
                longs.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

/// Appends a row to the columns, in the order of [`store::columns::CALL_COLUMNS`].
fn push(columns: &mut [Column], row: &Row) {
    let start = &row.start;
    let (end_seq, dur_ns, returned, xmm) = match row.end {
        CallEnd::Returned {
            seq,
            ts_ns,
            rax,
            rdx,
            xmm,
        } => (Some(seq), ts_ns - start.ts_ns, Some((rax, rdx)), xmm),
        CallEnd::Unwound { seq, ts_ns } | CallEnd::OpenAtEnd { seq, ts_ns } => {
            (Some(seq), ts_ns - start.ts_ns, None, None)
        }
        CallEnd::Unfinished | CallEnd::NotRecorded => (None, -1, None, None),
    };
    let unwound = matches!(row.end, CallEnd::Unwound { .. });
    let mut columns = columns.iter_mut();
    let mut push = |value: Option<i64>| columns.next().expect("there are 32").push(value);
    push(end_seq.map(|seq| seq as i64));
    push(Some(start.seq as i64));
    push(Some(start.ts_ns));
    push(Some(dur_ns));
    push(Some(row.child_ns));
    push(Some(i64::from(start.function_id)));
    push(row.tid.map(i64::from));
    push(Some(i64::from(start.depth)));
    push(start.parent_seq.map(|seq| seq as i64));
    push(Some(i64::from(unwound)));
    push(Some(i64::from(start.tail)));
    for arg in start.args {
        push(Some(arg as i64));
    }
    push(Some(start.slot as i64));
    push(Some(start.return_addr as i64));
    push(returned.map(|(rax, _)| rax as i64));
    push(returned.map(|(_, rdx)| rdx as i64));
    for (index, value) in start.xmm.iter().enumerate() {
        push((index < usize::from(start.xmm_count)).then_some(*value as i64));
    }
    for index in 0..2 {
        push(xmm.map(|xmm| xmm[index] as i64));
    }
    let is_open = matches!(row.end, CallEnd::OpenAtEnd { .. });
    push(Some(i64::from(is_open)));
}

/// Returns the processor time of this thread.
fn cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = stat.split(' ').next().ok_or("the file is empty")?;
    Ok(ns.parse::<f64>()? / 1e9)
}
