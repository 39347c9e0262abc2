//! `try record FOLDER PROGRAM [ARG...]`
use std::path::Path;
fn main() {
    let args: Vec<_> = std::env::args_os().collect();
    let start = std::time::Instant::now();
    let folder = Path::new(&args[2]);
    match args[1].to_str() {
        Some("record") => {
            std::fs::create_dir_all(folder).unwrap();
            let summary = exact::record(Path::new(&args[3]), &args[3..], folder, exact::Options::default());
            eprintln!("{summary:?} {:?}", start.elapsed());
        }
        Some("recordx") => {
            std::fs::create_dir_all(folder).unwrap();
            let summary = exact::record(Path::new(&args[3]), &args[3..], folder, exact::Options::default()).unwrap();
            eprintln!("@@{summary:?} {:?}", start.elapsed());
            std::process::exit(summary.code.unwrap_or_else(|| 128 + summary.signal.unwrap_or(0)));
        }
        Some("replay") => {
            let mut replay = exact::Replay::open(folder).unwrap();
            let end = replay.end();
            eprintln!("end {end} {:?}", start.elapsed());
            for goal in args[3..].iter().map(|goal| goal.to_str().unwrap().parse().unwrap()).chain([end]) {
                let start = std::time::Instant::now();
                match replay.goto(goal) {
                    Ok(()) => {
                        let r = replay.registers().unwrap();
                        eprintln!("{goal}: rip {:x} rsp {:x} rax {:x} rbx {:x} r15 {:x} {:?}", r.rip, r.rsp, r.rax, r.rbx, r.r15, start.elapsed());
                    }
                    Err(error) => { let r = replay.registers().unwrap();
                        let mut b=[0u8;16]; replay.read(r.rip,&mut b);
                        eprintln!("{goal}: {error} {:?} {r:x?} {b:x?}", start.elapsed()) }
                }
            }
        }
        Some("who") => {
            let mut replay = exact::Replay::open(folder).unwrap();
            let address = u64::from_str_radix(args[3].to_str().unwrap(), 16).unwrap();
            let end = replay.end();
            let found = replay.last_write(address, 4, end).unwrap();
            eprintln!("{found:?} {:?}", start.elapsed());
            if let Some(found) = found {
                for at in [found, found + 1] {
                    replay.goto(at).unwrap();
                    let r = replay.registers().unwrap();
                    let mut value = [0; 4];
                    replay.read(address, &mut value);
                    eprintln!("{at}: rip {:x} value {value:x?}", r.rip);
                }
            }
        }
        Some("stops") => {
            let mut replay = exact::Replay::open(folder).unwrap();
            let address = u64::from_str_radix(args[3].to_str().unwrap(), 16).unwrap();
            let end = replay.end();
            let mut forward = Vec::new();
            while let Some(at) = replay.next_stop(&[address], end, &mut |_| true).unwrap() {
                forward.push(at);
                assert_eq!(replay.registers().unwrap().rip, address);
            }
            eprintln!("{} {:?} {:?} {:?}", forward.len(), forward.first(), forward.last(), start.elapsed());
            replay.goto(end).unwrap();
            let mut backward = Vec::new();
            while let Some(at) = replay.previous_stop(&[address], &mut |_| true).unwrap() && backward.len() < 30 {
                backward.push(at);
                assert_eq!(replay.registers().unwrap().rip, address);
            }
            backward.reverse();
            assert_eq!(forward[forward.len() - backward.len()..], backward);
            eprintln!("same backwards {:?}", start.elapsed());
        }
        Some("trace") => {
            let entries: Vec<u64> = args[3..].iter().map(|arg| u64::from_str_radix(arg.to_str().unwrap(), 16).unwrap()).collect();
            let mut counts = [0u64; 3];
            let mut shown = 0;
            exact::trace(folder, &entries, &mut |traced| {
                match traced {
                    exact::Traced::Enter { .. } => counts[0] += 1,
                    exact::Traced::Leave { .. } => counts[1] += 1,
                    _ => counts[2] += 1,
                }
                shown += 1;
                if shown < 5 {
                    eprintln!("{traced:x?}");
                }
                true
            })
            .unwrap();
            eprintln!("{counts:?} {:?}", start.elapsed());
        }
        Some("log") => {
            let number = |index: usize| args[index].to_str().unwrap().parse().unwrap();
            for line in exact::Replay::open(folder).unwrap().entries(number(3), number(4)) {
                println!("{line}");
            }
        }
        _ => panic!("?"),
    }
}
