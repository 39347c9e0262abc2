//! Goal: in a recording, each parameter of a pack of C++ has its own value, and so have those behind it. g++ describes a pack in a
//! way of its own, and clang gives all of its parameters one name. Method: a program whose source states the values, by two
//! compilers, without optimisation and with some.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Hindsight, Program, Recording, Scratch, Status, in_turn};

const APP: &str = "template <class... A> __attribute__((noinline)) int first(A... a, int last) {
  return (0 + ... + int(a)) + last;
}
template <class... A> __attribute__((noinline)) int given(int n, A &&...a) {
  return n + (0 + ... + int(a));
}
int main() { return first<int, double>(1, 2.5, 77) == 80 && given(1, 2, 3.5, 'c') == 105 ? 0 : 1; }
";

fn recorded(compiler: &str, level: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new("packs");
    std::fs::write(scratch.join("app.cc"), APP).expect("the test's folder is writable");
    let arguments = ["-std=c++17", "-g", level, "-o", "app", "app.cc"];
    let built = Program::new(compiler, scratch.path()).args(arguments).run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let program = Program::new(scratch.join("app"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--pointees"], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    (scratch, recording)
}

fn arguments(recording: &Recording, function: &str) -> String {
    let sql = format!("SELECT args FROM calls WHERE function = '{function}'");
    let row = recording.row(&sql);
    row["args"].as_str().expect("arguments are text").to_owned()
}

#[test]
fn each_parameter_of_a_pack_has_its_own_value() {
    for level in in_turn(["-O0", "-O1"]) {
        let (_scratch, recording) = recorded("/usr/bin/g++", level);
        let first = arguments(&recording, "first<int, double>");
        assert_eq!(first, "arg0=1, arg1=2.5, last=77", "{level}");
        let given = arguments(&recording, "given<int, double, char>");
        assert!(given.starts_with("n=1, arg1=0x"), "{level}: {given}");

        let (_scratch, recording) = recorded("/usr/bin/clang++", level);
        let first = arguments(&recording, "first<int, double>");
        assert_eq!(first, "a=1, a#1=2.5, last=77", "{level}");
        let given = arguments(&recording, "given<int, double, char>");
        let right = "n=1, a=2, a#1=3.5, a#2=";
        assert!(given.starts_with(right), "{level}: {given}");
    }
}
