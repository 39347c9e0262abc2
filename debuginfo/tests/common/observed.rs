//! Collects the values that a running program prints, and what gdb finds in registers and memory.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use debuginfo::{Function, Module, Param, ParameterPlace, RetPlace, RetReg};

use super::{bytes, function, hex, program, run};

/// Registers and memory at a function's first instruction.
pub struct Entry {
    ints: Vec<u64>,
    xmms: Vec<Vec<u8>>,
    stack: Vec<u8>,
    behind: Vec<Vec<u8>>,
}

/// Registers and memory after a function returned.
pub struct Return {
    rax: u64,
    rdx: u64,
    xmm0: Vec<u8>,
    xmm1: Vec<u8>,
    st0: Vec<u8>,
    behind_rax: Vec<u8>,
}

/// One run of a program.
pub struct Observed {
    /// Function, parameter, bytes, as printed by the program.
    pub args: Vec<(String, String, Vec<u8>)>,
    pub results: Vec<(String, Vec<u8>)>,
    pub entries: HashMap<u64, Entry>,
    pub returns: HashMap<u64, Return>,
}

/// Runs the program twice: alone, to learn which functions it calls, and under gdb with their addresses.
pub fn observe(path: &Path, module: &Module, main: u64) -> Observed {
    let mut observed = Observed {
        args: Vec::new(),
        results: Vec::new(),
        entries: HashMap::new(),
        returns: HashMap::new(),
    };
    observed.told(&run(&mut Command::new(path)));
    assert!(!observed.args.is_empty(), "the program told nothing");
    let args = observed.args.drain(..).map(|(function, ..)| function);
    let results = observed.results.drain(..).map(|(function, _)| function);
    let mut wanted: Vec<u64> = args
        .chain(results)
        .map(|name| function(module, &name).svma.0)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let output = path.with_extension("told");
    watch(path, main, &wanted, &output, &mut observed);
    observed.told(&std::fs::read_to_string(&output).expect("the program's output"));
    observed
}

impl Observed {
    fn told(&mut self, output: &str) {
        for line in output.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["ARG", function, param, value] => {
                    let (function, param) = (function.to_string(), param.to_string());
                    self.args.push((function, param, bytes(value)));
                }
                ["RET", function, _, value] => {
                    self.results.push((function.to_string(), bytes(value)));
                }
                _ => panic!("unexpected line {line}"),
            }
        }
    }
}

fn watch(path: &Path, main: u64, wanted: &[u64], output: &Path, observed: &mut Observed) {
    let list: Vec<String> = wanted.iter().map(|w| format!("{w:x}")).collect();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("watch.py"))
        .arg(path);
    gdb.env("WATCH", list.join(" "))
        .env("WATCH_MAIN", format!("{main:x}"));
    gdb.env("WATCH_OUTPUT", output);
    let seen = run(&mut gdb);
    for line in seen.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let big_endian = |w: &str| bytes(w).into_iter().rev().collect::<Vec<u8>>();
        let memory = |w: &str| if w == "-" { Vec::new() } else { bytes(w) };
        match words.first() {
            Some(&"ENTER") => {
                let entry = Entry {
                    ints: words[2..8].iter().map(|w| hex(w)).collect(),
                    xmms: words[8..16].iter().map(|w| big_endian(w)).collect(),
                    stack: bytes(words[16]),
                    behind: words[17..23].iter().map(|w| memory(w)).collect(),
                };
                observed.entries.insert(hex(words[1]), entry);
            }
            Some(&"LEAVE") => {
                let ret = Return {
                    rax: hex(words[2]),
                    rdx: hex(words[3]),
                    xmm0: big_endian(words[4]),
                    xmm1: big_endian(words[5]),
                    st0: big_endian(words[6]),
                    behind_rax: memory(words[7]),
                };
                observed.returns.insert(hex(words[1]), ret);
            }
            _ => {}
        }
    }
    for svma in wanted {
        assert!(
            observed.entries.contains_key(svma),
            "{svma:#x} was never entered:\n{seen}"
        );
    }
}

impl Entry {
    fn at(&self, place: ParameterPlace, indirect: bool) -> Vec<u8> {
        match place {
            ParameterPlace::Int(index) if indirect => self.behind[usize::from(index)].clone(),
            ParameterPlace::Int(index) => self.ints[usize::from(index)].to_le_bytes().to_vec(),
            ParameterPlace::Sse(index) => self.xmms[usize::from(index)].clone(),
            ParameterPlace::Memory { offset } => self.stack[offset as usize..].to_vec(),
            ParameterPlace::Empty => Vec::new(),
            other => panic!("no bytes at {other:?}"),
        }
    }

    /// Returns the bytes at the parameter's stated place, up to `len`.
    pub fn value(&self, param: &Param, len: usize) -> Vec<u8> {
        let mut value = self.at(param.place, param.indirect);
        if let Some(second) = param.place2 {
            value.resize(usize::from(param.second_at), 0);
            value.extend(self.at(second, false));
        }
        value.truncate(len);
        value
    }
}

impl Return {
    fn register(&self, register: RetReg) -> Vec<u8> {
        match register {
            RetReg::Rax => self.rax.to_le_bytes().to_vec(),
            RetReg::Rdx => self.rdx.to_le_bytes().to_vec(),
            RetReg::Xmm0 => self.xmm0.clone(),
            RetReg::Xmm1 => self.xmm1.clone(),
        }
    }

    /// Returns the bytes at the result's stated place.
    pub fn value(&self, place: RetPlace, len: usize) -> Vec<u8> {
        let mut value = match place {
            RetPlace::Regs(first, None) => self.register(first),
            RetPlace::Regs(first, Some((second, from))) => {
                let mut value = self.register(first);
                value.truncate(usize::from(from));
                value.extend(self.register(second));
                value
            }
            RetPlace::Hidden => self.behind_rax.clone(),
            RetPlace::X87 => self.st0.clone(),
            other => panic!("no bytes at {other:?}"),
        };
        value.truncate(len);
        value
    }
}

/// Compares everything that the program printed with the places in `module`. Returns the number of values compared.
///
/// `lenient` names functions whose places may be unknown (but never wrong).
pub fn compare(module: &Module, observed: &Observed, lenient: &[&str]) -> usize {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, param, told) in &observed.args {
        let function = function(module, name);
        let Some(found) = function.params.iter().find(|p| p.name == *param) else {
            wrong.push(format!("{name} has no parameter {param}"));
            continue;
        };
        if found.place == ParameterPlace::Removed && lenient.contains(&name.as_str()) {
            continue;
        }
        if found.place == ParameterPlace::Unknown || found.place2 == Some(ParameterPlace::Unknown) {
            if function.params_known || !lenient.contains(&name.as_str()) {
                wrong.push(format!("{name}({param}) is at {:?}", found.place));
            }
            continue;
        }
        let seen = observed.entries[&function.svma.0].value(found, told.len());
        let told = if found.place == ParameterPlace::Empty && found.place2.is_none() {
            &seen
        } else {
            told
        };
        if *told != seen {
            wrong.push(format!(
                "{name}: {told:02x?} is not at {found:?}: {seen:02x?}"
            ));
        }
        compared += 1;
    }
    for (name, told) in &observed.results {
        let function = function(module, name);
        if function.ret_place == RetPlace::Unknown {
            if !lenient.contains(&name.as_str()) {
                wrong.push(format!("{name} returns at an unknown place"));
            }
            continue;
        }
        let seen = observed.returns[&function.svma.0].value(function.ret_place, told.len());
        if *told != seen {
            wrong.push(format!(
                "{name} returns {told:02x?}, not at {:?}: {seen:02x?}",
                function.ret_place
            ));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    compared
}

/// Checks the summary fields of every function against its parameters.
pub fn summaries_agree(functions: &[Function]) {
    for f in functions {
        let highest = |place: &ParameterPlace| match place {
            ParameterPlace::Sse(index) => index + 1,
            _ => 0,
        };
        let places = f
            .params
            .iter()
            .flat_map(|p| [Some(p.place), p.place2])
            .flatten();
        let used = places.map(|p| highest(&p)).max().unwrap_or(0);
        assert!(f.xmm.args >= used, "{f:?}");
        assert_eq!(
            f.xmm.ret && f.ret_place != RetPlace::Unknown,
            matches!(
                f.ret_place,
                RetPlace::Regs(RetReg::Xmm0 | RetReg::Xmm1, _)
                    | RetPlace::Regs(_, Some((RetReg::Xmm0, _)))
            ),
            "{f:?}"
        );
    }
}
