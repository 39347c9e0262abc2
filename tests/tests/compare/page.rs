//! The page of `--html` in a browser: it is drawn, both sides are next to each other, and it has no errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::{Ended, Program, Scratch, Status};
use serde_json::Value;

use crate::verdicts::with_a_bug;
use crate::{compare, ends_with};

/// The names that browsers have on different systems.
const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// Writes into the page the visible positions of both sides.
const LOOK: &str = "<script>addEventListener('load', () => {
  const seen = [...document.querySelectorAll('.sides section')].map(section => {
    const { left, top, width, height } = section.getBoundingClientRect();
    return { left, top, width, height, text: section.innerText };
  });
  document.documentElement.setAttribute('data-seen', encodeURIComponent(JSON.stringify(seen)));
})</script>";

/// How many colours a picture has, and how many of a thousand points are not of the one at its corner.
const COLOURS: &str = r#"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, packed = 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    if kind == b"IHDR": width, height, depth, colour = struct.unpack(">IIBB", body[:10])
    if kind == b"IDAT": packed += body
    at += size + 12
assert depth == 8 and colour in (2, 6), (depth, colour)
step = 3 if colour == 2 else 4
raw, row, colours, other = zlib.decompress(packed), bytearray(width * step), {}, 0
def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
for y in range(height):
    line = raw[y * (width * step + 1):(y + 1) * (width * step + 1)]
    way, line, last = line[0], bytearray(line[1:]), row
    if way or any(line):
        for i in range(len(line)):
            a, b, c = line[i - step] if i >= step else 0, last[i], last[i - step] if i >= step else 0
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth(a, b, c) if way == 4 else 0)[way]) & 255
    row = line
    for x in range(0, len(row), step):
        point = bytes(row[x:x + 3])
        colours[point] = colours.get(point, 0) + 1
        if not (x or y): corner = point
print(len(colours), 1000 - 1000 * colours[corner] // (width * height))
"#;

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

fn open(browser: &Path, scratch: &Scratch, options: &[&str], page: &str) -> Ended {
    let profile = format!("--user-data-dir={}", scratch.join("profile").display());
    let own = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        &*profile,
    ];
    let ended = Program::new(browser, scratch.path())
        .args(own)
        .args(["--enable-logging=stderr", "--window-size=1000,700"])
        .args(options)
        .args([format!("file://{}", scratch.join(page).display())])
        .env("HOME", scratch.path())
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ended
}

/// What the page said to the console.
fn said(ended: &Ended) -> Vec<String> {
    let errors = ended.errors();
    let lines = errors.lines().filter(|line| line.contains(":CONSOLE"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_page_is_drawn_with_both_sides() {
    let browser = browser().expect("a Chromium is installed, as .ci/run does");
    let scratch = Scratch::new("page");
    with_a_bug(&scratch);
    let ended = compare(&scratch, &["good", "bad", "--html", "page.html"]);
    ends_with(&ended, 1);

    let drawn = open(&browser, &scratch, &["--screenshot=page.png"], "page.html");
    assert_eq!(said(&drawn), Vec::<String>::new());
    let counted = Command::new("python3")
        .args(["-c", COLOURS])
        .arg(scratch.join("page.png"))
        .output()
        .expect("python3 starts");
    let told = String::from_utf8_lossy(&counted.stdout).into_owned();
    let mut numbers = told.split_whitespace().map(|number| number.parse::<u32>());
    let mut number = || numbers.next().and_then(Result::ok);
    let (colours, drawn) = (number(), number());
    let errors = String::from_utf8_lossy(&counted.stderr);
    // Letters are drawn in shades, on a mark, next to the lines of both sides.
    assert!(colours > Some(30), "{told}{errors}");
    assert!(drawn > Some(20) && drawn < Some(700), "{told}{errors}");

    let page = fs::read_to_string(scratch.join("page.html")).expect("the page");
    fs::write(scratch.join("seen.html"), page + LOOK).expect("the test's folder is writable");
    let ended = open(&browser, &scratch, &["--dump-dom"], "seen.html");
    let text = ended.text();
    let seen = text.split_once("data-seen=\"").expect("it was noted").1;
    let seen = seen.split_once('"').expect("an attribute ends").0;
    let seen: Vec<Value> = serde_json::from_str(&decoded(seen)).expect("JSON");
    // The changed line of the likeliest function, then the call that differs first.
    let call = ["tax_of(net=", "int tax = tax_of(net, &rates[region]);"];
    beside(&seen[0..2], [&["per_mille / 1000"], &["per_mille / 900"]]);
    beside(&seen[2..4], [&call, &call]);

    // The browser would report errors of the page.
    let wrong = "<script>nothing.at.all()</script>";
    fs::write(scratch.join("wrong.html"), wrong).expect("the test's folder is writable");
    let ended = open(&browser, &scratch, &["--dump-dom"], "wrong.html");
    assert!(said(&ended)[0].contains("nothing is not defined"));
}

/// The two sides are next to each other, and each has its texts.
#[track_caller]
fn beside(seen: &[Value], texts: [&[&str]; 2]) {
    for (side, texts) in seen.iter().zip(texts) {
        let shown = side["text"].as_str().expect("a text");
        for text in texts {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let of = |what: &str| side[what].as_f64().expect("a number");
        assert!(of("width") > 300.0 && of("height") > 20.0, "{side}");
    }
    let of = |side: usize, what: &str| seen[side][what].as_f64().expect("a number");
    assert!((of(0, "top") - of(1, "top")).abs() < 1.0, "{seen:?}");
    assert!(of(0, "left") + of(0, "width") <= of(1, "left"), "{seen:?}");
}

/// Undoes `encodeURIComponent`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, _) = match (first, byte) {
            (b'%', Some(byte)) => (&after[2..], bytes.push(byte)),
            _ => (after, bytes.push(*first)),
        };
    }
    String::from_utf8(bytes).expect("text")
}
