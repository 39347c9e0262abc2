//! Defines the control events in the log's CONTROL frames: what the recorder itself observed or decided.

mod live;

use serde::{Deserialize, Serialize};

pub use live::{
    ByteBuf, Exception, ExceptionPhase, GENERAL_REGISTERS, LiveProbe, LogFormat, LogKind, LogPart,
    LogValue, LoggedWrite, MAX_STACK_LEN, Passed, Pause, PauseReason, ProbeKind, ProbePlace,
    ProbeState, REGISTER_NAMES, SavedRegisters, Snapshot, SnapshotReason, VECTOR_LEN,
    VECTOR_REGISTERS, Watched, Write,
};

pub use crate::wire::GapReason;

/// Largest function id plus one: ids have 28 bits.
pub const MAX_FUNCTIONS: u32 = 1 << 28;

/// One control event. `ticks` are what the time stamp counter showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Control {
    /// The target runs from here on.
    ProcessStart {
        /// When.
        ticks: u64,
        /// Process id.
        pid: u32,
        /// Command line.
        argv: Vec<String>,
        /// Path of the executable.
        exe: String,
        /// Working directory.
        cwd: String,
        /// True when the process ran before the recording.
        attached: bool,
    },
    /// The target ended: exactly one of code and signal is known, or neither.
    ProcessExit {
        /// When.
        ticks: u64,
        /// Exit code.
        code: Option<i32>,
        /// Number of the killing signal.
        signal: Option<i32>,
    },
    /// The recorder detached from a running target.
    Detached {
        /// When.
        ticks: u64,
    },
    /// An ELF file was mapped, or was mapped already when the recording began.
    ModuleLoad {
        /// When.
        ticks: u64,
        /// Number of the module, dense from 0.
        module: u32,
        /// Path of the file.
        path: String,
        /// GNU build id in hex.
        build_id: Option<String>,
        /// Where it is mapped in the process.
        addr: u64,
        /// Bytes from the first to the last one, `.bss` included.
        size: u64,
        /// True for libraries of the system.
        system: bool,
    },
    /// A module was unmapped.
    ModuleUnload {
        /// When.
        ticks: u64,
        /// Number of the module.
        module: u32,
    },
    /// A thread that had loaded modules waited until their functions were armed.
    Arming {
        /// When that was done.
        ticks: u64,
        /// Which thread.
        tid: u32,
        /// When its wait began.
        since: u64,
        /// The modules' paths.
        modules: Vec<String>,
    },
    /// Defines a function id that records may name from here on. No event.
    Function(FunctionDef),
    /// A requested probe that could not be armed. No event.
    Skipped {
        /// Number of the module.
        module: u32,
        /// Address inside the file.
        svma: u64,
        /// Name of the function.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The recorder saw a thread end.
    ThreadEnd {
        /// When it was seen.
        ticks: u64,
        /// The thread's ring.
        ring: u32,
        /// The use of that ring.
        tenancy: u32,
        /// Thread id.
        tid: u32,
    },
    /// Events were lost outside any ring.
    Gap {
        /// When it was seen.
        ticks: u64,
        /// Thread id, 0 when not known.
        tid: u32,
        /// How many.
        lost: u64,
        /// Why.
        reason: GapReason,
    },
    /// A message to the user.
    Warning {
        /// When.
        ticks: u64,
        /// A sentence.
        message: String,
    },
    /// The user's words.
    Note {
        /// When.
        ticks: u64,
        /// The text as given.
        text: String,
    },
    /// A user set a probe in the running program, or changed one.
    Probe(LiveProbe),
    /// A user removed such a probe.
    ProbeRemoved {
        /// When.
        ticks: u64,
        /// Its number.
        id: u32,
    },
    /// A thread was stopped.
    Pause(Box<Pause>),
    /// A stopped thread resumes.
    Resume {
        /// When.
        ticks: u64,
        /// Which thread.
        tid: u32,
        /// How, for people: `continue`, `step` and so on.
        action: String,
    },
    /// A user changed memory or a register.
    Write(Write),
    /// A thread passed a logpoint whose message the recorder made.
    Logpoint {
        /// When.
        ticks: u64,
        /// In which thread.
        tid: u32,
        /// Number of the live probe.
        probe: u32,
        /// The message.
        message: String,
        /// The expressions in it and their values as text.
        values: Vec<(String, String)>,
        /// The state of the thread, if it was kept.
        #[serde(default)]
        passed: Option<Box<Passed>>,
        /// The first expression without a value, and why it has none.
        #[serde(default)]
        error: Option<String>,
    },
    /// An exception, a panic or a signal was seen.
    Exception(Exception),
    /// A condition of a live probe could not be evaluated; it counts as false.
    ConditionError {
        /// When.
        ticks: u64,
        /// In which thread.
        tid: u32,
        /// Number of the live probe.
        probe: u32,
        /// The condition.
        condition: String,
        /// The reason.
        error: String,
    },
    /// Memory was copied while no thread ran.
    Snapshot(Snapshot),
    /// How the words of a logpoint's records become a message. No event.
    LogFormat(LogFormat),
    /// The program wrote to a place whose writes are logged.
    LoggedWrite(Box<LoggedWrite>),
    /// How long a thread, from its first record on, was ready to run and waited for a processor. Of a thread without one it is
    /// not known. No event.
    ProcessorWait {
        /// Which thread.
        tid: u32,
        /// All of it together, in ns.
        ns: u64,
    },
}

impl Control {
    /// Returns the time of the event, or `None` for definitions, which are not events.
    pub fn ticks(&self) -> Option<u64> {
        match self {
            Self::ProcessStart { ticks, .. }
            | Self::ProcessExit { ticks, .. }
            | Self::Detached { ticks }
            | Self::ModuleLoad { ticks, .. }
            | Self::ModuleUnload { ticks, .. }
            | Self::Arming { ticks, .. }
            | Self::ThreadEnd { ticks, .. }
            | Self::Gap { ticks, .. }
            | Self::Warning { ticks, .. }
            | Self::Note { ticks, .. }
            | Self::ProbeRemoved { ticks, .. }
            | Self::Resume { ticks, .. }
            | Self::Logpoint { ticks, .. }
            | Self::ConditionError { ticks, .. } => Some(*ticks),
            Self::Probe(probe) => Some(probe.ticks),
            Self::Pause(pause) => Some(pause.ticks),
            Self::Write(write) => Some(write.ticks),
            Self::LoggedWrite(write) => Some(write.ticks),
            Self::Exception(exception) => Some(exception.ticks),
            Self::Snapshot(snapshot) => Some(snapshot.ticks),
            Self::LogFormat(format) => Some(format.ticks),
            Self::Function(_) | Self::Skipped { .. } | Self::ProcessorWait { .. } => None,
        }
    }

    /// Returns whether the definitions file keeps this one: modules, functions, probes that could not be armed, the history
    /// of live probes, and how long threads waited for a processor.
    pub fn is_definition(&self) -> bool {
        matches!(
            self,
            Self::Function(_)
                | Self::Skipped { .. }
                | Self::ProcessorWait { .. }
                | Self::ModuleLoad { .. }
                | Self::Probe(_)
                | Self::ProbeRemoved { .. }
        )
    }
}

/// The function that an id stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionDef {
    /// Function id, below [`MAX_FUNCTIONS`], dense from 0.
    pub id: u32,
    /// Number of its module.
    pub module: u32,
    /// Address inside the module's file.
    pub svma: u64,
    /// Length in bytes, 0 when not known.
    pub size: u64,
    /// Name for people, demangled.
    pub name: String,
    /// Name for the linker.
    pub linkage: String,
    /// Source file of the declaration.
    pub file: Option<String>,
    /// Source line of the declaration, from 1.
    pub line: Option<u32>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Its return value.
    pub ret: ValueKind,
    /// False if the debug information lacks the parameters and the return value.
    pub params_known: bool,
    /// Where the return value is; `None` if the debug information does not say.
    #[serde(default)]
    pub ret_place: Option<RetPlace>,
}

impl FunctionDef {
    /// Makes one of which only the names are known.
    #[must_use]
    pub fn named(name: String, linkage: String) -> FunctionDef {
        FunctionDef {
            id: 0,
            module: 0,
            svma: 0,
            size: 0,
            name,
            linkage,
            file: None,
            line: None,
            params: Vec::new(),
            ret: ValueKind::Unknown,
            params_known: false,
            ret_place: None,
        }
    }
}

/// Where a return value is after the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetPlace {
    /// There is no return value.
    Nowhere,
    /// In rax.
    Rax,
    /// In xmm0.
    Xmm0,
    /// In two of rax, rdx, xmm0 and xmm1.
    Registers,
    /// In memory that the caller provides; its address is in rax.
    Memory,
    /// On the stack of the x87.
    X87,
    /// The debug information does not say.
    Unknown,
}

/// One parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name, empty when it has none.
    pub name: String,
    /// How to read its bits.
    pub kind: ValueKind,
    /// Its place when the function is entered: all of it, or the part before `second`.
    pub place: ParameterPlace,
    /// The place of the rest, if it is passed in two registers, like a `&str`.
    #[serde(default)]
    pub second: Option<SecondPlace>,
    /// `place` holds the address of the value: large structures of Rust, classes of C++ with a destructor.
    #[serde(default)]
    pub is_indirect: bool,
}

impl Param {
    /// Makes one that is wholly in one place.
    #[must_use]
    pub fn in_one_place(name: &str, kind: ValueKind, place: ParameterPlace) -> Param {
        Param {
            name: name.to_owned(),
            kind,
            place,
            second: None,
            is_indirect: false,
        }
    }

    /// Returns its general registers when the function is entered, if it is wholly in such registers.
    #[must_use]
    pub fn registers(&self) -> Option<ParamRegisters> {
        let second = match self.second {
            Some(second) => Some((second.from, second.place.register()?)),
            None => None,
        };
        Some(ParamRegisters {
            first: self.place.register()?,
            second,
        })
    }
}

/// The general registers of a parameter, by their DWARF numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamRegisters {
    /// Holds all of it, or the part before `second`.
    pub first: u16,
    /// The parameter's first byte in another register, and that register.
    pub second: Option<(u8, u16)>,
}

/// The place of the second part of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondPlace {
    /// Its first byte inside the parameter, from 1 to 8.
    pub from: u8,
    /// Its place.
    pub place: ParameterPlace,
}

/// The place of a parameter in the System V calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterPlace {
    /// In rdi, rsi, rdx, rcx, r8, r9: 0 to 5.
    Int(u8),
    /// In xmm0 to xmm7: 0 to 7.
    Sse(u8),
    /// On the stack or through a hidden pointer.
    Memory,
}

impl ParameterPlace {
    /// DWARF's numbers of the integer argument registers: rdi, rsi, rdx, rcx, r8, r9 (System V ABI for x86-64, figure
    /// 3.36).
    pub const INT_REGISTERS: [u16; 6] = [5, 4, 1, 2, 8, 9];
    /// DWARF's number of xmm0; xmm1 to xmm7 follow.
    const XMM0: u16 = 17;

    /// Returns DWARF's number of the register; `None` in memory.
    #[must_use]
    pub fn register(self) -> Option<u16> {
        match self {
            ParameterPlace::Int(number) => ParameterPlace::INT_REGISTERS
                .get(usize::from(number))
                .copied(),
            ParameterPlace::Sse(number) => Some(ParameterPlace::XMM0 + u16::from(number)),
            ParameterPlace::Memory => None,
        }
    }
}

/// How to read the bits of a parameter or of a return value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueKind {
    /// There is no value.
    Void,
    /// One byte, zero or not.
    Bool,
    /// One byte of text.
    Char,
    /// One character of Unicode, or a part of it.
    Unicode {
        /// 2 or 4.
        bytes: u8,
    },
    /// An integer.
    Int {
        /// 1, 2, 4, 8 or 16.
        bytes: u8,
        /// Whether it is sign-extended.
        signed: bool,
    },
    /// A floating point number.
    Float {
        /// 4, 8, 10 or 16.
        bytes: u8,
    },
    /// An address.
    Pointer,
    /// An integer with names for some of its values.
    Enum {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it is sign-extended.
        signed: bool,
        /// Value and name of each enumerator.
        names: Vec<(i64, String)>,
    },
    /// An aggregate.
    Struct {
        /// Its size.
        bytes: u64,
    },
    /// No debug information.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::FileSum;
    use crate::synth::{SynthFrame, debugged, pause};

    #[test]
    fn control_events_survive_messagepack() {
        let function = Control::Function(FunctionDef {
            id: 7,
            module: 1,
            svma: 0x1139,
            size: 40,
            name: "parse(int)".into(),
            linkage: "_Z5parsei".into(),
            file: Some("parse.cc".into()),
            line: None,
            params: vec![Param {
                name: "n".into(),
                kind: ValueKind::Enum {
                    bytes: 4,
                    signed: true,
                    names: vec![(-1, "none".into())],
                },
                place: ParameterPlace::Int(0),
                second: Some(SecondPlace {
                    from: 8,
                    place: ParameterPlace::Sse(1),
                }),
                is_indirect: false,
            }],
            ret: ValueKind::Struct { bytes: 24 },
            params_known: true,
            ret_place: Some(RetPlace::Memory),
        });
        let gap = Control::Gap {
            ticks: 5,
            tid: 0,
            lost: 3,
            reason: GapReason::Other(9),
        };
        let mut controls = vec![function, gap, Control::Detached { ticks: 1 }];
        let live = debugged().frames().into_iter();
        controls.extend(live.filter_map(|frame| match frame {
            SynthFrame::Control(control) => Some(control),
            SynthFrame::Block { .. } | SynthFrame::Watermark(_) => None,
        }));
        assert!(controls.len() > 20);
        for control in controls {
            let bytes = rmp_serde::to_vec(&control).unwrap();
            assert_eq!(rmp_serde::from_slice::<Control>(&bytes).unwrap(), control);
        }
    }

    #[test]
    fn functions_without_a_place_of_the_result_are_read() {
        let place = (None::<String>, None::<u32>);
        let params = Vec::<Param>::new();
        let ret = ValueKind::Void;
        let fields = (
            1, 0, 4096, 64, "f", "f", place.0, place.1, params, ret, true,
        );
        let bytes = rmp_serde::to_vec(&fields).unwrap();
        let read: FunctionDef = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!((read.name.as_str(), read.ret_place), ("f", None));
    }

    #[test]
    fn bytes_are_written_as_bytes() {
        let stack = vec![0xff; MAX_STACK_LEN];
        let pause = Pause {
            stack: stack.into(),
            ..pause(1, 2, PauseReason::User)
        };
        let bytes = rmp_serde::to_vec(&Control::Pause(Box::new(pause))).unwrap();
        let rest = bytes.len() - MAX_STACK_LEN;
        assert!(rest < 1000, "{rest} bytes besides the stack");
    }

    #[test]
    fn bytes_are_messagepacks_bin() {
        let write = Write {
            ticks: 1,
            tid: 2,
            target: "x".into(),
            addr: None,
            register: None,
            old: Some(vec![1, 0xff].into()),
            new: vec![3].into(),
            by: "me".into(),
        };
        let expected = b"\x98\x01\x02\xa1x\xc0\xc0\xc4\x02\x01\xff\xc4\x01\x03\xa2me";
        assert_eq!(rmp_serde::to_vec(&write).unwrap(), expected);
        let sum = FileSum {
            len: 5,
            crc32c: 6,
            blocks: vec![7, 8, 9, 0xaa].into(),
        };
        let expected = b"\x93\x05\x06\xc4\x04\x07\x08\x09\xaa";
        assert_eq!(rmp_serde::to_vec(&sum).unwrap(), expected);
        let registers = SavedRegisters {
            general: [1; GENERAL_REGISTERS],
            vectors: [[0xee; 16]; 16],
        };
        let expected = [
            &b"\x92\xdc\x00\x1b"[..],
            &[1; GENERAL_REGISTERS],
            b"\xc5\x01\x00",
            &[0xee; 256],
        ];
        assert_eq!(rmp_serde::to_vec(&registers).unwrap(), expected.concat());
    }

    #[test]
    fn vectors_of_another_length_are_refused() {
        for len in [0, 255, 257, 272] {
            let wrong = rmp_serde::to_vec(&([0u64; 27], ByteBuf::from(vec![0; len]))).unwrap();
            assert!(rmp_serde::from_slice::<SavedRegisters>(&wrong).is_err());
        }
        let right = rmp_serde::to_vec(&([0u64; 27], ByteBuf::from(vec![7; 256]))).unwrap();
        let right: SavedRegisters = rmp_serde::from_slice(&right).unwrap();
        assert_eq!(right.vectors[15], [7; 16]);
    }
}
