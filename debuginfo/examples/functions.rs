//! Prints what the library knows about a module's functions: `cargo run --release -p debuginfo --example functions FILE
//! [NAME]`.

use std::time::Instant;

fn main() -> debuginfo::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("usage: functions FILE [NAME]");
    let wanted = args.next();
    let started = Instant::now();
    let module = debuginfo::Module::open(path)?;
    let functions = module.functions();
    let elapsed = started.elapsed();
    for f in &functions.list {
        if wanted.as_ref().is_some_and(|w| !f.name.contains(w)) {
            continue;
        }
        let place = f.file.as_deref().unwrap_or("?");
        println!("{} +{} {} [{}]", f.svma, f.size, f.name, f.linkage);
        println!("    {place}:{}", f.line.unwrap_or(0));
        for p in &f.params {
            let kind = format!("{:?}", p.kind);
            let rest = p.place2.map(|p| format!(" {p:?}")).unwrap_or_default();
            let indirect = if p.indirect { " (address)" } else { "" };
            println!(
                "    {}: {kind:.60} at {:?}{rest}{indirect}",
                p.name, p.place
            );
        }
        println!(
            "    -> {:.60} at {:?}; known {} variadic {} xmm {}",
            format!("{:?}", f.ret),
            f.ret_place,
            f.params_known,
            f.variadic,
            f.xmm.args
        );
    }
    for warning in module.warnings().iter().chain(&functions.warnings) {
        println!("warning: {warning}");
    }
    println!("{} functions in {elapsed:?}", functions.list.len());
    Ok(())
}
